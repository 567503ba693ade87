//! Optimizers of dense parameters, as Python sees them: lists of flat arrays.

use std::sync::{Mutex, MutexGuard, PoisonError};

use clickmill_table::dense::{DenseRule, square_sum};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadwriteArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;

/// State of one optimizer over parameters of the given sizes.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct DenseOptimizer {
    inner: Mutex<clickmill_table::dense::DenseOptimizer>,
}

impl DenseOptimizer {
    fn lock(&self) -> MutexGuard<'_, clickmill_table::dense::DenseOptimizer> {
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

    /// Writes each parameter of `sources`, moved by its gradient times `scale`, to `params`.
    ///
    /// `params[i]` and `sources[i]` may be the same array; they must not overlap otherwise.
    #[pyo3(signature = (params, sources, gradients, learning_rate, scale = 1.0))]
    fn step(
        &self,
        py: Python<'_>,
        params: Vec<Bound<'_, PyArray1<f32>>>,
        sources: Vec<Bound<'_, PyArray1<f32>>>,
        gradients: Vec<PyReadonlyArray1<'_, f32>>,
        learning_rate: f32,
        scale: f32,
    ) -> PyResult<()> {
        let expected = self.lock().sizes().to_vec();
        for (what, sizes) in [
            (
                "params",
                params.iter().map(PyUntypedArrayMethods::len).collect::<Vec<_>>(),
            ),
            (
                "sources",
                sources.iter().map(PyUntypedArrayMethods::len).collect(),
            ),
            ("gradients", gradients.iter().map(|array| array.len()).collect()),
        ] {
            if sizes != expected {
                return Err(PyValueError::new_err(format!(
                    "{what} have sizes {sizes:?}, the optimizer was made for {expected:?}"
                )));
            }
        }
        let is_same = |(param, source): (&Bound<'_, PyArray1<f32>>, &Bound<'_, PyArray1<f32>>)| {
            param.data() == source.data()
        };
        let in_place: Vec<bool> = params.iter().zip(&sources).map(is_same).collect();
        let mut params = params
            .iter()
            .map(|array| Ok(array.try_readwrite()?))
            .collect::<PyResult<Vec<PyReadwriteArray1<'_, f32>>>>()?;
        let sources = sources
            .iter()
            .zip(&in_place)
            .map(|(array, &same)| {
                if same {
                    Ok(None)
                } else {
                    Ok(Some(array.try_readonly()?))
                }
            })
            .collect::<PyResult<Vec<Option<PyReadonlyArray1<'_, f32>>>>>()?;
        let mut work = Vec::with_capacity(params.len());
        for ((param, source), gradient) in params.iter_mut().zip(&sources).zip(&gradients) {
            let source = source.as_ref().map(|source| source.as_slice()).transpose()?;
            work.push((param.as_slice_mut()?, source, gradient.as_slice()?));
        }
        py.detach(|| {
            let mut inner = self.lock();
            let step = inner.begin(learning_rate, scale)?;
            for (number, (param, source, gradient)) in work.into_iter().enumerate() {
                inner.update(step, number, param, source, gradient)?;
            }
            Ok(())
        })
        .map_err(|error| errors::table(py, &error))
    }

    /// Steps made, and the state arrays: for each parameter its kinds of state, in order.
    fn state<'py>(&self, py: Python<'py>) -> (u64, Vec<Bound<'py, PyArray1<f32>>>) {
        let inner = self.lock();
        let arrays = inner
            .states()
            .iter()
            .map(|state| PyArray1::from_slice(py, state))
            .collect();
        (inner.step_count(), arrays)
    }

    fn load_state(&self, py: Python<'_>, step: u64, states: Vec<PyReadonlyArray1<'_, f32>>) -> PyResult<()> {
        let states = states
            .iter()
            .map(|state| Ok(state.as_slice()?.to_vec()))
            .collect::<PyResult<Vec<_>>>()?;
        self.lock()
            .load(step, states)
            .map_err(|error| errors::table(py, &error))
    }

    /// Sum of the squares of all gradients: its root is the norm that clipping needs.
    #[staticmethod]
    fn square_sum(py: Python<'_>, gradients: Vec<PyReadonlyArray1<'_, f32>>) -> PyResult<f64> {
        let slices = gradients
            .iter()
            .map(|array| Ok(array.as_slice()?))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(py.detach(|| slices.into_iter().map(square_sum).sum()))
    }
}
