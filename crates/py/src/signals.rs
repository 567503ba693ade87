//! Signals while Python waits for a peer.
//!
//! Python runs its handlers between instructions, of which there are none during a call into Rust: a process that
//! waits for a server could not be told to end.

use std::cell::RefCell;

use pyo3::prelude::*;

use crate::errors;

thread_local! {
    /// What a handler has raised in the wait under way.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Only the main thread runs handlers; on any other nothing is ever raised.
fn run_handlers() -> bool {
    Python::attach(|py| match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            RAISED.set(Some(error));
            true
        }
    })
}

/// Runs `work` detached from the interpreter, and ends its waits when a handler raises, with what it has raised.
pub(crate) fn waiting<T: Send>(
    py: Python<'_>,
    work: impl Send + FnOnce() -> Result<T, clickmill_remote::Error>,
) -> PyResult<T> {
    let outcome = py.detach(|| clickmill_net::interruptible(run_handlers, work));
    match RAISED.take() {
        Some(raised) => Err(raised),
        None => outcome.map_err(|error| errors::remote(py, &error)),
    }
}
