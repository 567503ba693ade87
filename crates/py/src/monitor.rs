//! Metrics, health and readiness of a Python process.

use std::collections::BTreeMap;

use clickmill_monitor::{Metrics, Monitor as RustMonitor};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors;

type Labels = BTreeMap<String, String>;

fn borrowed(labels: Option<&Labels>) -> Vec<(&str, &str)> {
    let labels = labels.into_iter().flatten();
    labels
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// Answers `/metrics`, `/healthz` and `/readyz` on a thread of its own, until it is closed.
///
/// Port 0 takes a free one. An address beyond this machine needs a token, which readers of metrics send as
/// `Authorization: Bearer` or as `X-Clickmill-Token`, unless `is_insecure`. The process is not ready until
/// `set_ready` says so.
#[pyclass(frozen)]
pub(crate) struct Monitor {
    // Taken out by `close`.
    server: std::sync::Mutex<Option<RustMonitor>>,
    metrics: Metrics,
    address: String,
}

impl Monitor {
    /// Nothing is done where it is closed already.
    pub(crate) fn with(&self, work: impl FnOnce(&RustMonitor)) {
        let server = self.server.lock().expect("nobody panics with it");
        if let Some(server) = &*server {
            work(server);
        }
    }
}

#[pymethods]
impl Monitor {
    #[new]
    #[pyo3(signature = (address, token = None, is_insecure = false))]
    fn new(py: Python<'_>, address: &str, token: Option<&str>, is_insecure: bool) -> PyResult<Self> {
        let metrics = Metrics::default();
        let server = py
            .detach(|| RustMonitor::start(address, token, is_insecure, metrics.clone()))
            .map_err(|error| errors::monitor(py, &error))?;
        Ok(Self {
            address: server.address().to_string(),
            server: std::sync::Mutex::new(Some(server)),
            metrics,
        })
    }

    /// `host:port` that it listens on.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// Say whether the process can be used; `reason` tells people what it waits for.
    #[pyo3(signature = (is_ready, reason = "not ready"))]
    fn set_ready(&self, is_ready: bool, reason: &str) {
        self.with(|server| {
            if is_ready {
                server.set_ready();
            } else {
                server.set_not_ready(reason);
            }
        });
    }

    /// The counter of this name, which ends in `_total`, and of these labels.
    #[pyo3(signature = (name, help, labels = None))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the binding hands over what it has converted"
    )]
    fn counter(&self, py: Python<'_>, name: &str, help: &str, labels: Option<Labels>) -> PyResult<Counter> {
        let counter = self.metrics.counter(name, help, &borrowed(labels.as_ref()));
        counter.map(Counter).map_err(|error| errors::monitor(py, &error))
    }

    /// The gauge of this name and these labels.
    #[pyo3(signature = (name, help, labels = None))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the binding hands over what it has converted"
    )]
    fn gauge(&self, py: Python<'_>, name: &str, help: &str, labels: Option<Labels>) -> PyResult<Gauge> {
        let gauge = self.metrics.gauge(name, help, &borrowed(labels.as_ref()));
        gauge.map(Gauge).map_err(|error| errors::monitor(py, &error))
    }

    /// The histogram of this name and these labels; `bounds` ascend, values above the last are counted too.
    #[pyo3(signature = (name, help, bounds, labels = None))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the binding hands over what it has converted"
    )]
    fn histogram(
        &self,
        py: Python<'_>,
        name: &str,
        help: &str,
        bounds: Vec<f64>,
        labels: Option<Labels>,
    ) -> PyResult<Histogram> {
        let histogram = self
            .metrics
            .histogram(name, help, &bounds, &borrowed(labels.as_ref()));
        histogram
            .map(Histogram)
            .map_err(|error| errors::monitor(py, &error))
    }

    /// Stop answering; a monitor that is closed keeps counting, for nobody.
    fn close(&self, py: Python<'_>) {
        let server = self.server.lock().expect("nobody panics with it").take();
        py.detach(|| drop(server));
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception: "object"))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

/// Only ever rises.
#[pyclass(frozen)]
pub(crate) struct Counter(clickmill_monitor::Counter);

#[pymethods]
impl Counter {
    /// Less than nothing, or not a number, adds nothing.
    #[pyo3(signature = (value = 1.0))]
    fn add(&self, value: f64) {
        self.0.add(value);
    }
}

#[pyclass(frozen)]
pub(crate) struct Gauge(clickmill_monitor::Gauge);

#[pymethods]
impl Gauge {
    fn set(&self, value: f64) {
        self.0.set(value);
    }

    fn add(&self, value: f64) {
        self.0.add(value);
    }
}

/// How often values fell below each of its bounds.
#[pyclass(frozen)]
pub(crate) struct Histogram(clickmill_monitor::Histogram);

#[pymethods]
impl Histogram {
    fn observe(&self, value: f64) {
        self.0.observe(value);
    }
}
