//! Files of a reader that come while others are read, as Python brings them.

use std::sync::Arc;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

/// Which files of a reader are here, by their places in its configuration. Waits are detached from the interpreter.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Arrivals {
    pub(crate) inner: Arc<clickmill_samples::Arrivals>,
    num_files: usize,
}

impl Arrivals {
    fn check(&self, file: usize) -> PyResult<()> {
        if file < self.num_files {
            return Ok(());
        }
        Err(PyIndexError::new_err(format!(
            "file {file} of {} files",
            self.num_files
        )))
    }
}

#[pymethods]
impl Arrivals {
    #[new]
    fn new(num_files: usize) -> Self {
        Self {
            inner: Arc::new(clickmill_samples::Arrivals::new(num_files)),
            num_files,
        }
    }

    /// A file to bring, waiting until one is wanted: the one that is waited for, else one of the `ahead` after it;
    /// None when the reader is gone.
    fn take(&self, py: Python<'_>, ahead: usize) -> Option<usize> {
        py.detach(|| self.inner.take(ahead))
    }

    /// Waits until the reader asks for a file that was taken ahead; false when the reader is gone.
    fn wait_until_asked(&self, py: Python<'_>, file: usize) -> PyResult<bool> {
        self.check(file)?;
        Ok(py.detach(|| self.inner.wait_until_asked(file)))
    }

    /// The file is whole, and stays until it is finished.
    fn arrive(&self, file: usize) -> PyResult<()> {
        self.check(file)?;
        self.inner.arrive(file);
        Ok(())
    }

    /// The file cannot be had; the reader tells why when it comes to it.
    fn fail(&self, file: usize, reason: String) -> PyResult<()> {
        self.check(file)?;
        self.inner.fail(file, reason);
        Ok(())
    }

    /// Files that the reader has gone through since the last call.
    fn take_finished(&self) -> Vec<usize> {
        self.inner.take_finished()
    }

    /// Ends all waits, those to come as well.
    fn close(&self) {
        self.inner.close();
    }
}
