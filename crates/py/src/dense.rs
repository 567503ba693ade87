//! Optimizers of dense parameters, as Python sees them: lists of flat arrays.

#![expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use clickmill_table::dense::{DenseRule, square_sum};
use numpy::{PyArray1, PyArrayMethods, PyReadwriteArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Array, Array1, Reads1};
use crate::errors;

/// State of one optimizer over parameters of the given sizes.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct DenseOptimizer {
    inner: Mutex<clickmill_table::dense::DenseOptimizer>,
}

impl DenseOptimizer {
    pub(crate) fn lock(&self) -> MutexGuard<'_, clickmill_table::dense::DenseOptimizer> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl DenseOptimizer {
    #[new]
    fn new(py: Python<'_>, config_json: &str, sizes: Vec<usize>) -> PyResult<Self> {
        let rule = DenseRule::from_json(config_json).map_err(|error| errors::table(py, &error))?;
        Ok(Self {
            inner: Mutex::new(clickmill_table::dense::DenseOptimizer::new(rule, sizes)),
        })
    }

    /// Moves each parameter in place by the sum of its gradients over the parts of a batch, times `scale`.
    ///
    /// `parts` has for each part of the batch a list of gradients, one for each parameter.
    #[pyo3(signature = (parameters, parts, learning_rate, scale = 1.0))]
    fn step(
        &self,
        py: Python<'_>,
        parameters: Vec<Array1<'_, f32>>,
        parts: Vec<Vec<Reads1<'_, f32>>>,
        learning_rate: f32,
        scale: f32,
    ) -> PyResult<()> {
        let expected = self.lock().sizes().to_vec();
        let sizes = parameters.iter().map(|array| array.len()).collect();
        check_sizes("parameters", &sizes, &expected)?;
        for part in &parts {
            let sizes = part.iter().map(|array| array.len()).collect();
            check_sizes("gradients", &sizes, &expected)?;
        }
        let mut parameters = parameters
            .iter()
            .map(|array| Ok(array.try_readwrite()?))
            .collect::<PyResult<Vec<PyReadwriteArray1<'_, f32>>>>()?;
        let by_parameter = transpose(&parts)?;
        let mut work = Vec::with_capacity(parameters.len());
        for (parameter, gradients) in parameters.iter_mut().zip(by_parameter) {
            work.push((parameter.as_slice_mut()?, gradients));
        }
        py.detach(|| {
            let mut inner = self.lock();
            let step = inner.begin(learning_rate, scale)?;
            for (number, (parameter, gradients)) in work.into_iter().enumerate() {
                inner.update(step, number, parameter, &gradients)?;
            }
            Ok(())
        })
        .map_err(|error| errors::table(py, &error))
    }

    /// Steps made, and the state arrays: for each parameter its kinds of state, in order.
    fn state<'py>(&self, py: Python<'py>) -> (u64, Vec<Array1<'py, f32>>) {
        let inner = self.lock();
        let arrays = inner
            .states()
            .iter()
            .map(|state| Array(PyArray1::from_slice(py, state)))
            .collect();
        (inner.step_count(), arrays)
    }

    fn load_state(&self, py: Python<'_>, step: u64, states: Vec<Reads1<'_, f32>>) -> PyResult<()> {
        let states = states
            .iter()
            .map(|state| Ok(state.as_slice()?.to_vec()))
            .collect::<PyResult<Vec<_>>>()?;
        self.lock()
            .load(step, states)
            .map_err(|error| errors::table(py, &error))
    }

    /// Sum of the squares of the gradients, each summed over the parts: its root is the norm.
    #[staticmethod]
    fn square_sum(py: Python<'_>, parts: Vec<Vec<Reads1<'_, f32>>>) -> PyResult<f64> {
        if let Some(first) = parts.first() {
            let expected: Vec<usize> = first.iter().map(|array| array.len()).collect();
            for part in &parts {
                let sizes = part.iter().map(|array| array.len()).collect();
                check_sizes("gradients", &sizes, &expected)?;
            }
        }
        let by_parameter = transpose(&parts)?;
        Ok(py.detach(|| by_parameter.iter().map(|parts| square_sum(parts)).sum()))
    }
}

fn check_sizes(what: &str, found: &Vec<usize>, expected: &Vec<usize>) -> PyResult<()> {
    if found == expected {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "{what} have sizes {found:?}, expected {expected:?}"
    )))
}

/// From a list of gradients for each part to a list of parts for each parameter.
fn transpose<'a>(parts: &'a [Vec<Reads1<'_, f32>>]) -> PyResult<Vec<Vec<&'a [f32]>>> {
    let num_parameters = parts.first().map_or(0, Vec::len);
    (0..num_parameters)
        .map(|number| {
            let slices = parts.iter().map(|part| Ok(part[number].as_slice()?));
            slices.collect::<PyResult<Vec<_>>>()
        })
        .collect()
}
