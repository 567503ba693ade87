//! Metrics, as Python sees them: arrays in without a copy, numbers and bytes out.
//!
//! A batch of a thousand samples takes some microseconds, and several trainer threads may share one
//! accumulator, so every call detaches from the interpreter before it takes the lock.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arrays over by value")]

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clickmill_metrics::{GroupWeight, Spacing};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Reads1, Scalar};
use crate::errors;

type Floats<'py> = Reads1<'py, f32>;

fn slice<'a, T: Scalar>(what: &str, array: &'a Reads1<'_, T>) -> PyResult<&'a [T]> {
    array
        .as_slice()
        .map_err(|_| PyValueError::new_err(format!("{what} must be one contiguous array")))
}

fn optional_slice<'a>(what: &str, array: Option<&'a Floats<'_>>) -> PyResult<Option<&'a [f32]>> {
    array.map(|array| slice(what, array)).transpose()
}

/// No code that can panic runs under these locks half-way through a change: an update checks its batch first.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A copy of the other side, taken before one's own lock, so that two merges can never wait for each other.
fn copied<T: Clone + Send>(py: Python<'_>, mutex: &Mutex<T>) -> T
where
    Mutex<T>: Sync,
{
    py.detach(|| locked(mutex).clone())
}

/// Streaming metrics of probabilities against labels of 0 and 1.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct BinaryMetrics {
    inner: Mutex<clickmill_metrics::BinaryMetrics>,
}

#[pymethods]
impl BinaryMetrics {
    /// `thresholds`: uniform buckets as in the seeds (4096); none: buckets that are finer near 0 and 1.
    /// `window`: how many batches `batch_auc` looks back.
    #[new]
    #[pyo3(signature = (thresholds=None, window=20))]
    fn new(py: Python<'_>, thresholds: Option<u32>, window: usize) -> PyResult<Self> {
        let spacing = thresholds
            .map_or(Ok(Spacing::Logit), Spacing::uniform)
            .map_err(|error| errors::metrics(py, &error))?;
        Ok(Self {
            inner: Mutex::new(clickmill_metrics::BinaryMetrics::new(spacing, window)),
        })
    }

    /// Takes the whole batch, or nothing of it when a value is not allowed.
    #[pyo3(signature = (scores, labels, weights=None))]
    fn update(
        &self,
        py: Python<'_>,
        scores: Floats<'_>,
        labels: Floats<'_>,
        weights: Option<Floats<'_>>,
    ) -> PyResult<()> {
        let (scores, labels) = (slice("scores", &scores)?, slice("labels", &labels)?);
        let weights = optional_slice("weights", weights.as_ref())?;
        py.detach(|| locked(&self.inner).update(scores, labels, weights))
            .map_err(|error| errors::metrics(py, &error))
    }

    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        let other = copied(py, &other.inner);
        py.detach(|| locked(&self.inner).merge(&other))
            .map_err(|error| errors::metrics(py, &error))
    }

    fn reset(&self, py: Python<'_>) {
        py.detach(|| locked(&self.inner).reset());
    }

    /// Samples so far, whatever they weigh.
    #[getter]
    fn count(&self, py: Python<'_>) -> u64 {
        py.detach(|| locked(&self.inner).count())
    }

    /// AUC since the last reset; 0.5 while a class is empty.
    fn auc(&self, py: Python<'_>) -> f64 {
        py.detach(|| locked(&self.inner).auc())
    }

    /// AUC of the last `window` batches; 0.5 while a class is empty.
    fn batch_auc(&self, py: Python<'_>) -> f64 {
        py.detach(|| locked(&self.inner).batch_auc())
    }

    /// Everything by name but `batch_auc`; NaN where there is nothing to divide by.
    fn report(&self, py: Python<'_>) -> HashMap<&'static str, f64> {
        let report = py.detach(|| locked(&self.inner).report());
        HashMap::from([
            ("count", report.count as f64),
            ("auc", report.auc),
            ("logloss", report.log_loss),
            ("ne", report.normalised_entropy),
            ("copc", report.copc),
            ("mae", report.mae),
            ("rmse", report.rmse),
            ("actual_ctr", report.actual_ctr),
            ("predicted_ctr", report.predicted_ctr),
            ("bucket_error", report.bucket_error),
            ("mean_q", report.mean_q_value),
        ])
    }

    /// The whole state; `from_state` gives an accumulator that goes on exactly where this one stands.
    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| locked(&self.inner).to_bytes()))
    }

    #[staticmethod]
    fn from_state(py: Python<'_>, state: &[u8]) -> PyResult<Self> {
        let inner = clickmill_metrics::BinaryMetrics::from_bytes(state)
            .map_err(|error| errors::metrics(py, &error))?;
        Ok(Self {
            inner: Mutex::new(inner),
        })
    }
}

/// AUC over all scores, which it keeps: 8 bytes a sample, `limit` samples at most.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct ExactAuc {
    inner: Mutex<clickmill_metrics::ExactAuc>,
}

#[pymethods]
impl ExactAuc {
    #[new]
    fn new(limit: usize) -> Self {
        Self {
            inner: Mutex::new(clickmill_metrics::ExactAuc::new(limit)),
        }
    }

    #[pyo3(signature = (scores, labels, weights=None))]
    fn update(
        &self,
        py: Python<'_>,
        scores: Floats<'_>,
        labels: Floats<'_>,
        weights: Option<Floats<'_>>,
    ) -> PyResult<()> {
        let (scores, labels) = (slice("scores", &scores)?, slice("labels", &labels)?);
        let weights = optional_slice("weights", weights.as_ref())?;
        py.detach(|| locked(&self.inner).update(scores, labels, weights))
            .map_err(|error| errors::metrics(py, &error))
    }

    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        let other = copied(py, &other.inner);
        py.detach(|| locked(&self.inner).merge(&other))
            .map_err(|error| errors::metrics(py, &error))
    }

    fn reset(&self, py: Python<'_>) {
        py.detach(|| locked(&self.inner).reset());
    }

    #[getter]
    fn count(&self, py: Python<'_>) -> usize {
        py.detach(|| locked(&self.inner).count())
    }

    /// 0.5 while a class is empty.
    fn auc(&self, py: Python<'_>) -> f64 {
        py.detach(|| locked(&self.inner).auc())
    }

    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| locked(&self.inner).to_bytes()))
    }

    #[staticmethod]
    fn from_state(py: Python<'_>, state: &[u8]) -> PyResult<Self> {
        let inner =
            clickmill_metrics::ExactAuc::from_bytes(state).map_err(|error| errors::metrics(py, &error))?;
        Ok(Self {
            inner: Mutex::new(inner),
        })
    }
}

/// Mean of the exact AUC inside each group; keeps 16 bytes a sample, `limit` samples at most.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct GroupAuc {
    inner: Mutex<clickmill_metrics::GroupAuc>,
}

#[pymethods]
impl GroupAuc {
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
        Ok(Self {
            inner: Mutex::new(clickmill_metrics::GroupAuc::new(weight, limit)),
        })
    }

    #[pyo3(signature = (groups, scores, labels, weights=None))]
    fn update(
        &self,
        py: Python<'_>,
        groups: Reads1<'_, u64>,
        scores: Floats<'_>,
        labels: Floats<'_>,
        weights: Option<Floats<'_>>,
    ) -> PyResult<()> {
        let groups = slice("groups", &groups)?;
        let (scores, labels) = (slice("scores", &scores)?, slice("labels", &labels)?);
        let weights = optional_slice("weights", weights.as_ref())?;
        py.detach(|| locked(&self.inner).update(groups, scores, labels, weights))
            .map_err(|error| errors::metrics(py, &error))
    }

    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        let other = copied(py, &other.inner);
        py.detach(|| locked(&self.inner).merge(&other))
            .map_err(|error| errors::metrics(py, &error))
    }

    fn reset(&self, py: Python<'_>) {
        py.detach(|| locked(&self.inner).reset());
    }

    #[getter]
    fn count(&self, py: Python<'_>) -> usize {
        py.detach(|| locked(&self.inner).count())
    }

    /// `gauc` (0.5 while no group has both classes), `num_groups` in the mean, `num_skipped` of one class.
    fn report(&self, py: Python<'_>) -> HashMap<&'static str, f64> {
        let report = py.detach(|| locked(&self.inner).report());
        HashMap::from([
            ("gauc", report.gauc),
            ("num_groups", report.num_groups as f64),
            ("num_skipped", report.num_skipped as f64),
        ])
    }

    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| locked(&self.inner).to_bytes()))
    }

    #[staticmethod]
    fn from_state(py: Python<'_>, state: &[u8]) -> PyResult<Self> {
        let inner =
            clickmill_metrics::GroupAuc::from_bytes(state).map_err(|error| errors::metrics(py, &error))?;
        Ok(Self {
            inner: Mutex::new(inner),
        })
    }
}

/// Errors of scores against labels that are any numbers.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct RegressionMetrics {
    inner: Mutex<clickmill_metrics::RegressionMetrics>,
}

#[pymethods]
impl RegressionMetrics {
    #[new]
    fn new() -> Self {
        Self {
            inner: Mutex::new(clickmill_metrics::RegressionMetrics::new()),
        }
    }

    #[pyo3(signature = (scores, labels, weights=None))]
    fn update(
        &self,
        py: Python<'_>,
        scores: Floats<'_>,
        labels: Floats<'_>,
        weights: Option<Floats<'_>>,
    ) -> PyResult<()> {
        let (scores, labels) = (slice("scores", &scores)?, slice("labels", &labels)?);
        let weights = optional_slice("weights", weights.as_ref())?;
        py.detach(|| locked(&self.inner).update(scores, labels, weights))
            .map_err(|error| errors::metrics(py, &error))
    }

    fn merge(&self, py: Python<'_>, other: &Self) {
        let other = copied(py, &other.inner);
        py.detach(|| locked(&self.inner).merge(&other));
    }

    fn reset(&self, py: Python<'_>) {
        py.detach(|| locked(&self.inner).reset());
    }

    #[getter]
    fn count(&self, py: Python<'_>) -> u64 {
        py.detach(|| locked(&self.inner).count())
    }

    /// NaN while there is no sample.
    fn report(&self, py: Python<'_>) -> HashMap<&'static str, f64> {
        let report = py.detach(|| locked(&self.inner).report());
        HashMap::from([
            ("count", report.count as f64),
            ("mae", report.mae),
            ("rmse", report.rmse),
            ("mean_label", report.mean_label),
            ("mean_score", report.mean_score),
        ])
    }

    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| locked(&self.inner).to_bytes()))
    }

    #[staticmethod]
    fn from_state(py: Python<'_>, state: &[u8]) -> PyResult<Self> {
        let inner = clickmill_metrics::RegressionMetrics::from_bytes(state)
            .map_err(|error| errors::metrics(py, &error))?;
        Ok(Self {
            inner: Mutex::new(inner),
        })
    }
}
