//! The global metrics of a run: one set of accumulators, counted where the ledger is kept.
//!
//! A set begins as the states of empty accumulators that a trainer has made, so that this side needs to
//! know no settings, and gives its states back for whoever wants the numbers.

use std::collections::BTreeMap;

use clickmill_metrics::{Accumulator, BinaryMetrics, Error, ExactAuc, GroupAuc, RegressionMetrics};

/// States by the name of the accumulator, as Python's metric sets keep them.
pub(crate) type States = BTreeMap<String, Vec<u8>>;

enum Part {
    Binary(Box<BinaryMetrics>),
    Regression(RegressionMetrics),
    Exact(ExactAuc),
    Group(GroupAuc),
}

/// Scored samples of one batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scored {
    pub scores: Vec<f32>,
    pub labels: Vec<f32>,
    pub weights: Option<Vec<f32>>,
    pub groups: Option<Vec<u64>>,
}

#[derive(Default)]
pub(crate) struct Metrics {
    parts: BTreeMap<String, Part>,
}

impl Metrics {
    pub(crate) fn from_states(states: &States) -> Result<Self, Error> {
        let parts = states
            .iter()
            .filter_map(|(name, state)| Some((name, part(name, state)?)))
            .map(|(name, part)| Ok((name.clone(), part?)))
            .collect::<Result<_, Error>>()?;
        Ok(Self { parts })
    }

    pub(crate) fn states(&self) -> States {
        self.parts
            .iter()
            .map(|(name, part)| {
                let state = match part {
                    Part::Binary(metric) => metric.to_bytes(),
                    Part::Regression(metric) => metric.to_bytes(),
                    Part::Exact(metric) => metric.to_bytes(),
                    Part::Group(metric) => metric.to_bytes(),
                };
                (name.clone(), state)
            })
            .collect()
    }

    /// Every number by name; those that are not finite are left out.
    pub(crate) fn numbers(&mut self) -> BTreeMap<String, f64> {
        let mut numbers = BTreeMap::new();
        for part in self.parts.values_mut() {
            match part {
                Part::Binary(metric) => {
                    numbers.extend(metric.report().named());
                    numbers.insert("batch_auc", metric.batch_auc());
                }
                Part::Regression(metric) => numbers.extend(metric.report().named()),
                Part::Exact(metric) => {
                    numbers.insert("exact_auc", metric.auc());
                }
                Part::Group(metric) => {
                    numbers.insert("gauc", metric.report().gauc);
                }
            }
        }
        let finite = numbers.into_iter().filter(|(_, number)| number.is_finite());
        finite.map(|(name, number)| (name.to_owned(), number)).collect()
    }

    pub(crate) fn update(&mut self, batch: &Scored) -> Result<(), Error> {
        let (scores, labels, weights) = (&batch.scores, &batch.labels, batch.weights.as_deref());
        for part in self.parts.values_mut() {
            match part {
                Part::Binary(metric) => metric.update(scores, labels, weights)?,
                Part::Regression(metric) => metric.update(scores, labels, weights)?,
                Part::Exact(metric) => metric.update(scores, labels, weights)?,
                Part::Group(metric) => {
                    metric.update(
                        batch.groups.as_deref().unwrap_or_default(),
                        scores,
                        labels,
                        weights,
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// None for a name of a later version, whose numbers nobody here can count.
fn part(name: &str, state: &[u8]) -> Option<Result<Part, Error>> {
    Some(match name {
        "binary" => BinaryMetrics::from_bytes(state).map(|metric| Part::Binary(Box::new(metric))),
        "regression" => RegressionMetrics::from_bytes(state).map(Part::Regression),
        "exact" => ExactAuc::from_bytes(state).map(Part::Exact),
        "group" => GroupAuc::from_bytes(state).map(Part::Group),
        _ => return None,
    })
}
