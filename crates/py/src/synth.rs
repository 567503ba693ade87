//! The made-up click log: JSON in, JSON out.

use std::ops::ControlFlow;

use clickmill_samples::synth::{Config, Error, write};
use pyo3::prelude::*;

use crate::errors;

/// Write a made-up Criteo-like log with a known best AUC; returns the report as JSON.
///
/// `progress(rows_done, rows_total)` is called after each block of rows; what it raises stops the work,
/// leaves no file behind and is raised here.
#[pyfunction]
#[pyo3(signature = (config_json, progress = None))]
pub(crate) fn synth(
    py: Python<'_>,
    config_json: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    // Without the interpreter's lifetime, so that it can be called from the detached part.
    let progress = progress.map(|callable| callable.clone().unbind());
    let config = Config::from_json(config_json).map_err(|error| errors::synth(py, error))?;
    let mut raised: Option<PyErr> = None;
    let result = py.detach(|| {
        write(&config, &mut |step| {
            let outcome = Python::attach(|py| {
                // A log takes seconds: an interrupt must not wait for its end.
                py.check_signals()?;
                if let Some(progress) = &progress {
                    progress.call1(py, (step.rows, step.total_rows))?;
                }
                Ok(())
            });
            match outcome {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
    });
    match (result, raised) {
        (Err(Error::Cancelled { .. }), Some(error)) => Err(error),
        (Err(error), _) => Err(errors::synth(py, error)),
        (Ok(report), _) => {
            Ok(serde_json::to_string(&report).expect("a report holds only numbers and strings"))
        }
    }
}
