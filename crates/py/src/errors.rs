//! Rust errors become Python errors here and nowhere else.
//!
//! The classes live in `clickmill/errors.py`, so that Python code can catch and raise them too. Each
//! match is exhaustive: a new variant does not compile until it has been given a class.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

static CONFIG_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DATA_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static FORMAT_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static STATE_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn raise(py: Python<'_>, cell: &PyOnceLock<Py<PyType>>, class: &str, message: String) -> PyErr {
    match cell.import(py, "clickmill.errors", class) {
        Ok(class) => PyErr::from_type(class.clone(), message),
        Err(error) => error,
    }
}

pub(crate) fn types(py: Python<'_>, error: &clickmill_types::Error) -> PyErr {
    use clickmill_types::Error;
    match error {
        Error::Json { .. } | Error::Version { .. } | Error::Schema { .. } => {
            raise(py, &CONFIG_ERROR, "ConfigError", error.to_string())
        }
    }
}

pub(crate) fn metrics(py: Python<'_>, error: &clickmill_metrics::Error) -> PyErr {
    use clickmill_metrics::Error;
    match error {
        Error::Config { .. } => raise(py, &CONFIG_ERROR, "ConfigError", error.to_string()),
        Error::Length { .. } => PyValueError::new_err(error.to_string()),
        Error::NotANumber { .. } | Error::Score { .. } | Error::Label { .. } | Error::Weight { .. } => {
            raise(py, &DATA_ERROR, "DataError", error.to_string())
        }
        Error::Limit { .. } | Error::Mismatch { .. } => {
            raise(py, &STATE_ERROR, "StateError", error.to_string())
        }
        Error::State { .. } => raise(py, &FORMAT_ERROR, "FormatError", error.to_string()),
    }
}

pub(crate) fn synth(py: Python<'_>, error: clickmill_samples::synth::Error) -> PyErr {
    use clickmill_samples::synth::Error;
    match error {
        Error::Config { .. } | Error::Json { .. } => {
            raise(py, &CONFIG_ERROR, "ConfigError", error.to_string())
        }
        // An OSError with its number, which Python turns into the fitting subclass.
        Error::Io { path, source } => match source.raw_os_error() {
            Some(number) => {
                pyo3::exceptions::PyOSError::new_err((number, source.to_string(), path.display().to_string()))
            }
            None => pyo3::exceptions::PyOSError::new_err(format!("{}: {source}", path.display())),
        },
        // Only a callback cancels, and what it raised is raised in place of this.
        Error::Cancelled { .. } => pyo3::exceptions::PyRuntimeError::new_err(error.to_string()),
    }
}
