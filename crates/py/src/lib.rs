//! `clickmill._core`: the only crate that knows Python.
//!
//! Each file binds one noun. Calls cross the border per batch; whatever takes longer than some
//! microseconds runs detached from the interpreter.

mod errors;
mod metrics;
mod process;
mod schema;
mod synth;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::metrics::{BinaryMetrics, ExactAuc, GroupAuc, RegressionMetrics};
    #[pymodule_export]
    use crate::process::{exchange_names, keep_freed_memory};
    #[pymodule_export]
    use crate::schema::Schema;
    #[pymodule_export]
    use crate::synth::synth;
}
