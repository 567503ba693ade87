//! `clickmill._core`: the only crate that knows Python.
//!
//! Each file binds one noun. Calls cross the border per batch; whatever takes longer than some
//! microseconds runs detached from the interpreter.

mod build_info;
mod errors;
mod schema;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::build_info::build_info;
    #[pymodule_export]
    use crate::schema::Schema;
}
