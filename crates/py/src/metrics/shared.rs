//! An accumulator that several trainer threads share, and the slices of the batches that it takes.
//!
//! A batch of a thousand samples takes some microseconds, and another thread may hold the lock for as long,
//! so every call detaches from the interpreter before it takes the lock.

use std::sync::{Mutex, PoisonError};

use clickmill_metrics::{Accumulator, Error};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Reads1, Scalar};
use crate::errors;

pub(super) struct Shared<A>(Mutex<A>);

impl<A: Accumulator> Shared<A> {
    pub(super) fn new(accumulator: A) -> Self {
        Self(Mutex::new(accumulator))
    }

    /// Runs `work` detached from the interpreter, with the accumulator locked.
    ///
    /// No code that can panic runs half-way through a change: an update checks its batch first.
    pub(super) fn with<T: Send>(&self, py: Python<'_>, work: impl Send + FnOnce(&mut A) -> T) -> T {
        py.detach(|| work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// As `with`, for a change that may be refused.
    pub(super) fn change(
        &self,
        py: Python<'_>,
        work: impl Send + FnOnce(&mut A) -> Result<(), Error>,
    ) -> PyResult<()> {
        self.with(py, work).map_err(|error| errors::metrics(py, &error))
    }

    pub(super) fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        // A copy, taken before the own lock: two merges can never wait for each other.
        let other = other.with(py, |other| other.clone());
        self.change(py, move |accumulator| accumulator.merge(&other))
    }

    pub(super) fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.with(py, |accumulator| accumulator.to_bytes()))
    }

    pub(super) fn from_state(py: Python<'_>, state: &[u8]) -> PyResult<Self> {
        A::from_bytes(state)
            .map(Self::new)
            .map_err(|error| errors::metrics(py, &error))
    }
}

/// The elements of `array`, which is called `what` in errors.
pub(super) fn slice<'a, T: Scalar>(what: &str, array: &'a Reads1<'_, T>) -> PyResult<&'a [T]> {
    array
        .as_slice()
        .map_err(|_| PyValueError::new_err(format!("{what} must be one contiguous array")))
}
