//! Rust errors become Python errors here and nowhere else.
//!
//! The classes live in `clickmill/errors.py`, so that Python code can catch and raise them too. Each
//! match is exhaustive: a new variant does not compile until it has been given a class.

use pyo3::exceptions::{PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

static CONFIG_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DATA_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static ABSENT_SLOT_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static NO_SAMPLES_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static FORMAT_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DIVERGED_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static EPOCH_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static TOKEN_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UNREACHABLE_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static WIRE_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static PORT_TAKEN_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
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

pub(crate) fn monitor(py: Python<'_>, error: &clickmill_monitor::Error) -> PyErr {
    use clickmill_monitor::Error;
    match error {
        Error::Open { .. } | Error::Token { .. } => {
            raise(py, &CONFIG_ERROR, "ConfigError", error.to_string())
        }
        Error::Metric { .. } => PyValueError::new_err(error.to_string()),
        Error::Listen { address, source } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, source.to_string(), address.clone())),
            None => PyOSError::new_err(error.to_string()),
        },
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
            Some(number) => PyOSError::new_err((number, source.to_string(), path.display().to_string())),
            None => PyOSError::new_err(format!("{}: {source}", path.display())),
        },
        // Only a callback cancels, and what it raised is raised in place of this.
        Error::Cancelled { .. } => pyo3::exceptions::PyRuntimeError::new_err(error.to_string()),
    }
}

pub(crate) fn table(py: Python<'_>, error: &clickmill_table::Error) -> PyErr {
    use clickmill_table::Error;
    match error {
        Error::Config { .. } => raise(py, &CONFIG_ERROR, "ConfigError", error.to_string()),
        Error::Argument { .. } => PyValueError::new_err(error.to_string()),
        Error::State { .. } => raise(py, &STATE_ERROR, "StateError", error.to_string()),
        Error::Format {
            file,
            offset,
            expected,
            found,
        } => {
            let raised = raise(py, &FORMAT_ERROR, "FormatError", error.to_string());
            let value = raised.value(py);
            let attributes = value
                .setattr("file", file.display().to_string())
                .and_then(|()| value.setattr("offset", *offset))
                .and_then(|()| value.setattr("expected", expected))
                .and_then(|()| value.setattr("found", found));
            attributes.err().unwrap_or(raised)
        }
        Error::Io { file, source } => match source.raw_os_error() {
            Some(code) => PyOSError::new_err((code, source.to_string(), file.clone())),
            None => PyOSError::new_err(error.to_string()),
        },
        Error::NotFinite { .. } => raise(py, &DIVERGED_ERROR, "DivergedError", error.to_string()),
        Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
    }
}

pub(crate) fn samples(py: Python<'_>, error: &clickmill_samples::Error) -> PyErr {
    use clickmill_samples::Error;
    match error {
        Error::Schema(inner) => types(py, inner),
        Error::Config { .. } | Error::Position { .. } => {
            raise(py, &CONFIG_ERROR, "ConfigError", error.to_string())
        }
        Error::NoSamples { .. } => raise(py, &NO_SAMPLES_ERROR, "NoSamplesError", error.to_string()),
        Error::AbsentSlot { .. } => raise(py, &ABSENT_SLOT_ERROR, "AbsentSlotError", error.to_string()),
        Error::Slot { .. }
        | Error::Io { .. }
        | Error::Arrival { .. }
        | Error::Compressed { .. }
        | Error::Header { .. }
        | Error::BadLines { .. }
        | Error::Record { .. }
        | Error::Thread { .. } => raise(py, &DATA_ERROR, "DataError", error.to_string()),
    }
}

pub(crate) fn config(py: Python<'_>, message: String) -> PyErr {
    raise(py, &CONFIG_ERROR, "ConfigError", message)
}

pub(crate) fn net(py: Python<'_>, error: &clickmill_net::Error) -> PyErr {
    use clickmill_net::Error;
    match error {
        // The cluster has gone on without this process, which may join again.
        Error::Refused { code, .. } if ["epoch", "dead", "not_ready"].contains(&code.as_str()) => {
            raise(py, &EPOCH_ERROR, "EpochError", error.to_string())
        }
        // A session that was abandoned since its epoch is over.
        Error::Stopped => raise(py, &EPOCH_ERROR, "EpochError", error.to_string()),
        Error::Refused { code, .. } if code == "diverged" => {
            raise(py, &DIVERGED_ERROR, "DivergedError", error.to_string())
        }
        // Those who wait for a server would wait in vain.
        error if error.is_about_encryption() => raise(py, &CONFIG_ERROR, "ConfigError", error.to_string()),
        Error::File { .. } | Error::Open { .. } => raise(py, &CONFIG_ERROR, "ConfigError", error.to_string()),
        Error::Refused { code, .. } if code == "token" => {
            raise(py, &TOKEN_ERROR, "TokenError", error.to_string())
        }
        Error::Token { .. } => raise(py, &TOKEN_ERROR, "TokenError", error.to_string()),
        Error::Connect { .. } => raise(py, &UNREACHABLE_ERROR, "UnreachableError", error.to_string()),
        Error::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            raise(py, &PORT_TAKEN_ERROR, "PortTakenError", error.to_string())
        }
        Error::Listen { .. }
        | Error::Io { .. }
        | Error::Closed { .. }
        | Error::Deadline { .. }
        | Error::Wire { .. }
        | Error::Refused { .. }
        | Error::Version { .. }
        | Error::Encryption { .. }
        | Error::Tls { .. } => raise(py, &WIRE_ERROR, "WireError", error.to_string()),
    }
}

pub(crate) fn remote(py: Python<'_>, error: &clickmill_remote::Error) -> PyErr {
    use clickmill_remote::Error;
    match error {
        Error::Net(inner) => net(py, inner),
        Error::Table(inner) => table(py, inner),
        Error::Wire { .. } | Error::Answer { .. } | Error::Waiting { .. } => {
            raise(py, &WIRE_ERROR, "WireError", error.to_string())
        }
    }
}

pub(crate) fn pserver(py: Python<'_>, error: &clickmill_pserver::Error) -> PyErr {
    use clickmill_pserver::Error;
    match error {
        Error::Table(inner) => table(py, inner),
        Error::Metrics(inner) => metrics(py, inner),
        Error::Net(inner) => net(py, inner),
        Error::File { .. } => raise(py, &FORMAT_ERROR, "FormatError", error.to_string()),
        Error::Wire(_)
        | Error::Coordinator(_)
        | Error::Epoch { .. }
        | Error::Dead { .. }
        | Error::Protocol { .. }
        | Error::NotReady { .. } => raise(py, &WIRE_ERROR, "WireError", error.to_string()),
    }
}
