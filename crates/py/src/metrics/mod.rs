//! Metrics, as Python sees them: arrays in without a copy, numbers and bytes out.

mod shared;

use std::collections::HashMap;

use clickmill_metrics::{Accumulator, GroupWeight, Spacing};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::Reads1;
use crate::errors;
use shared::{Shared, slice};

/// A Python class around the accumulator of the same name: its own methods and those that all metrics have.
///
/// A class has one block of methods only, so they have to come together here. In the brackets are the
/// columns that `update` takes before scores, labels and weights.
macro_rules! metric {
    (
        $(#[$doc:meta])*
        class $name:ident [$($column:ident: $element:ty)?] { $($own:tt)* }
    ) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "clickmill._core")]
        pub(crate) struct $name(Shared<clickmill_metrics::$name>);

        #[pymethods]
        impl $name {
            $($own)*

            /// Takes the whole batch, or nothing of it when a value is not allowed.
            #[pyo3(signature = ($($column,)? scores, labels, weights = None))]
            fn update(
                &self,
                py: Python<'_>,
                $($column: Reads1<'_, $element>,)?
                scores: Reads1<'_, f32>,
                labels: Reads1<'_, f32>,
                weights: Option<Reads1<'_, f32>>,
            ) -> PyResult<()> {
                $(let $column = slice(stringify!($column), &$column)?;)?
                let (scores, labels) = (slice("scores", &scores)?, slice("labels", &labels)?);
                let weights = weights.as_ref().map(|weights| slice("weights", weights)).transpose()?;
                self.0.change(py, |metric| metric.update($($column,)? scores, labels, weights))
            }

            /// Adds what `other` has counted.
            fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                self.0.merge(py, &other.0)
            }

            /// Forgets all samples and keeps the settings.
            fn reset(&self, py: Python<'_>) {
                self.0.with(py, Accumulator::reset);
            }

            /// Samples so far, whatever they weigh.
            #[getter]
            fn count(&self, py: Python<'_>) -> u64 {
                self.0.with(py, |metric| metric.count())
            }

            /// The whole state; `from_state` gives an accumulator that goes on exactly where this one stands.
            fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                self.0.state(py)
            }

            #[staticmethod]
            fn from_state(py: Python<'_>, state: &[u8]) -> PyResult<Self> {
                Shared::from_state(py, state).map(Self)
            }
        }
    };
}

metric! {
    /// Streaming metrics of probabilities against labels of 0 and 1.
    class BinaryMetrics [] {
        /// `thresholds`: uniform buckets as in the seeds (4096); none: buckets that are finer near 0 and 1.
        /// `window`: how many batches `batch_auc` looks back.
        #[new]
        #[pyo3(signature = (thresholds = None, window = 20))]
        fn new(py: Python<'_>, thresholds: Option<u32>, window: usize) -> PyResult<Self> {
            let spacing = thresholds
                .map_or(Ok(Spacing::Logit), Spacing::uniform)
                .map_err(|error| errors::metrics(py, &error))?;
            Ok(Self(Shared::new(clickmill_metrics::BinaryMetrics::new(spacing, window))))
        }

        /// AUC since the last reset; 0.5 while a class is empty.
        fn auc(&self, py: Python<'_>) -> f64 {
            self.0.with(py, |metric| metric.auc())
        }

        /// AUC of the last `window` batches; 0.5 while a class is empty.
        fn batch_auc(&self, py: Python<'_>) -> f64 {
            self.0.with(py, |metric| metric.batch_auc())
        }

        /// Everything by name but `batch_auc`; NaN where there is nothing to divide by.
        fn report(&self, py: Python<'_>) -> HashMap<&'static str, f64> {
            HashMap::from(self.0.with(py, |metric| metric.report()).named())
        }
    }
}

metric! {
    /// AUC over all scores, which it keeps: 8 bytes a sample, `limit` samples at most.
    class ExactAuc [] {
        #[new]
        fn new(limit: usize) -> Self {
            Self(Shared::new(clickmill_metrics::ExactAuc::new(limit)))
        }

        /// 0.5 while a class is empty.
        fn auc(&self, py: Python<'_>) -> f64 {
            self.0.with(py, clickmill_metrics::ExactAuc::auc)
        }
    }
}

metric! {
    /// Mean of the exact AUC inside each group; keeps 16 bytes a sample, `limit` samples at most.
    class GroupAuc [groups: u64] {
        /// `weight`: what a group counts for, `impressions`, `clicks` or `uniform`.
        #[new]
        fn new(weight: &str, limit: usize) -> PyResult<Self> {
            let weight = match weight {
                "impressions" => GroupWeight::Impressions,
                "clicks" => GroupWeight::Clicks,
                "uniform" => GroupWeight::Uniform,
                other => {
                    return Err(PyValueError::new_err(format!(
                        "weight is {other:?}; allowed: impressions, clicks, uniform"
                    )));
                }
            };
            Ok(Self(Shared::new(clickmill_metrics::GroupAuc::new(weight, limit))))
        }

        /// `gauc` (0.5 while no group has both classes), `num_groups` in the mean, `num_skipped` of one class.
        fn report(&self, py: Python<'_>) -> HashMap<&'static str, f64> {
            let report = self.0.with(py, clickmill_metrics::GroupAuc::report);
            HashMap::from([
                ("gauc", report.gauc),
                ("num_groups", report.num_groups as f64),
                ("num_skipped", report.num_skipped as f64),
            ])
        }
    }
}

metric! {
    /// Errors of scores against labels that are any numbers.
    class RegressionMetrics [] {
        #[new]
        fn new() -> Self {
            Self(Shared::new(clickmill_metrics::RegressionMetrics::new()))
        }

        /// NaN while there is no sample.
        fn report(&self, py: Python<'_>) -> HashMap<&'static str, f64> {
            HashMap::from(self.0.with(py, |metric| metric.report()).named())
        }
    }
}
