//! Numbers by name and labels.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge;
use prometheus_client::metrics::histogram;
use prometheus_client::registry::Registry;

use crate::{Error, names};

type Refresh = Box<dyn Fn() + Send>;
type Labels = Vec<(String, String)>;
type CounterCell = counter::Counter<f64, AtomicU64>;
type GaugeCell = gauge::Gauge<f64, AtomicU64>;

/// Only ever rises.
#[derive(Clone, Debug)]
pub struct Counter(CounterCell);

impl Counter {
    /// Less than nothing, or not a number, adds nothing.
    pub fn add(&self, value: f64) {
        if value > 0.0 {
            self.0.inc_by(value);
        }
    }
}

#[derive(Clone, Debug)]
pub struct Gauge(GaugeCell);

impl Gauge {
    pub fn set(&self, value: f64) {
        self.0.set(value);
    }

    pub fn add(&self, value: f64) {
        self.0.inc_by(value);
    }
}

/// How often values fell below each of its bounds.
#[derive(Clone, Debug)]
pub struct Histogram(histogram::Histogram);

impl Histogram {
    pub fn observe(&self, value: f64) {
        self.0.observe(value);
    }
}

#[derive(Clone)]
struct Bounds(Arc<[f64]>);

impl MetricConstructor<histogram::Histogram> for Bounds {
    fn new_metric(&self) -> histogram::Histogram {
        histogram::Histogram::new(self.0.iter().copied())
    }
}

/// All series of one name.
#[derive(Clone)]
enum Series {
    Counters(Family<Labels, CounterCell>),
    Gauges(Family<Labels, GaugeCell>),
    Histograms(Family<Labels, histogram::Histogram, Bounds>, Arc<[f64]>),
}

struct Known {
    series: Series,
    labels: Vec<String>,
}

#[derive(Default)]
struct Inner {
    registry: Registry,
    known: BTreeMap<String, Known>,
}

/// The metrics of a process; a clone speaks of the same ones.
///
/// Asking for a name and labels again gives the same series, so that nobody has to carry it around; it
/// takes a lock and some allocations, though: hot loops keep what they were given.
#[derive(Clone, Default)]
pub struct Metrics {
    inner: Arc<Mutex<Inner>>,
    refreshes: Arc<Mutex<Vec<Refresh>>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.lock().known.keys().cloned().collect();
        formatter.debug_tuple("Metrics").field(&names).finish()
    }
}

impl Metrics {
    /// `name` ends in `_total`.
    pub fn counter(&self, name: &str, help: &str, labels: &[(&str, &str)]) -> Result<Counter, Error> {
        names::check(name, true, labels)?;
        let series = self.series(name, labels, |registry| {
            let family = Family::<Labels, CounterCell>::default();
            // The encoding puts the end on by itself.
            let stem = name.strip_suffix(names::TOTAL).unwrap_or(name);
            registry.register(stem, sentence(help), family.clone());
            Series::Counters(family)
        })?;
        match series {
            Series::Counters(family) => Ok(Counter(family.get_or_create_owned(&owned(labels)))),
            Series::Gauges(_) | Series::Histograms(..) => Err(another_kind(name)),
        }
    }

    pub fn gauge(&self, name: &str, help: &str, labels: &[(&str, &str)]) -> Result<Gauge, Error> {
        names::check(name, false, labels)?;
        let series = self.series(name, labels, |registry| {
            let family = Family::<Labels, GaugeCell>::default();
            registry.register(name, sentence(help), family.clone());
            Series::Gauges(family)
        })?;
        match series {
            Series::Gauges(family) => Ok(Gauge(family.get_or_create_owned(&owned(labels)))),
            Series::Counters(_) | Series::Histograms(..) => Err(another_kind(name)),
        }
    }

    /// `bounds` ascend; values above the last are counted too.
    pub fn histogram(
        &self,
        name: &str,
        help: &str,
        bounds: &[f64],
        labels: &[(&str, &str)],
    ) -> Result<Histogram, Error> {
        names::check(name, false, labels)?;
        let is_ascending = bounds.windows(2).all(|pair| pair[0] < pair[1]);
        if bounds.is_empty() || !is_ascending || !bounds.iter().all(|bound| bound.is_finite()) {
            return Err(Error::metric(name, "bounds are finite numbers that ascend"));
        }
        let series = self.series(name, labels, |registry| {
            let bounds: Arc<[f64]> = bounds.into();
            let family = Family::new_with_constructor(Bounds(Arc::clone(&bounds)));
            registry.register(name, sentence(help), family.clone());
            Series::Histograms(family, bounds)
        })?;
        match series {
            Series::Histograms(family, known) if *known == *bounds => {
                Ok(Histogram(family.get_or_create_owned(&owned(labels))))
            }
            Series::Histograms(..) => Err(Error::metric(name, "it is known with other bounds")),
            Series::Counters(_) | Series::Gauges(_) => Err(another_kind(name)),
        }
    }

    /// `refresh` runs before the metrics are read, to set what is not counted as it happens.
    pub fn before_reading(&self, refresh: impl Fn() + Send + 'static) {
        self.refreshes
            .lock()
            .expect("a refresh does not panic")
            .push(Box::new(refresh));
    }

    /// In the text format of `OpenMetrics`, which Prometheus reads.
    pub fn text(&self) -> String {
        for refresh in self.refreshes.lock().expect("a refresh does not panic").iter() {
            refresh();
        }
        let mut text = String::new();
        encode(&mut text, &self.lock().registry).expect("a string takes all that is written to it");
        text
    }

    fn series(
        &self,
        name: &str,
        labels: &[(&str, &str)],
        register: impl FnOnce(&mut Registry) -> Series,
    ) -> Result<Series, Error> {
        let inner = &mut *self.lock();
        let names: Vec<String> = owned(labels).into_iter().map(|(name, _)| name).collect();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::metric(name, "a label stands there twice"));
        }
        let known = inner.known.entry(name.to_owned()).or_insert_with(|| Known {
            series: register(&mut inner.registry),
            labels: names.clone(),
        });
        if known.labels != names {
            let labels = known.labels.join(", ");
            return Err(Error::metric(name, format!("its labels are [{labels}]")));
        }
        Ok(known.series.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics with it")
    }
}

/// By name, so that their order does not make another series.
fn owned(labels: &[(&str, &str)]) -> Labels {
    let mut owned: Labels = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    owned.sort();
    owned
}

/// The encoding ends help with a full stop of its own.
fn sentence(help: &str) -> String {
    help.trim_end_matches('.').replace('\n', " ")
}

fn another_kind(name: &str) -> Error {
    Error::metric(name, "it is known as a metric of another kind")
}
