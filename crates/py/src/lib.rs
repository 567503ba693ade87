//! `clickmill._core`: the only crate that knows Python.
//!
//! Each file binds one noun. Calls cross the border per batch; whatever takes longer than some
//! microseconds runs detached from the interpreter.

mod arrays;
mod arrivals;
mod batch;
mod build_info;
mod dense;
mod describe;
mod errors;
mod exchange;
mod layout;
mod lookup;
mod metrics;
mod monitor;
mod process;
mod processor;
mod pserver;
mod push;
mod reader;
mod records;
mod remote;
mod schema;
mod signals;
mod synth;
mod table;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::arrivals::Arrivals;
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::build_info::build_info;
    #[pymodule_export]
    use crate::dense::DenseOptimizer;
    #[pymodule_export]
    use crate::describe::{describe, fit_schema};
    #[pymodule_export]
    use crate::exchange::Exchange;
    #[pymodule_export]
    use crate::layout::GroupLayout;
    #[pymodule_export]
    use crate::lookup::{Located, Lookup};
    #[pymodule_export]
    use crate::metrics::{BinaryMetrics, ExactAuc, GroupAuc, RegressionMetrics};
    #[pymodule_export]
    use crate::monitor::{Counter, Gauge, Histogram, Monitor};
    #[pymodule_export]
    use crate::process::{exchange_names, keep_freed_memory};
    #[pymodule_export]
    use crate::processor::hides_tile_sizes;
    #[pymodule_export]
    use crate::pserver::Pserver;
    #[pymodule_export]
    use crate::push::Push;
    #[pymodule_export]
    use crate::reader::Reader;
    #[pymodule_export]
    use crate::records::{ColumnBatcher, RecordBatcher};
    #[pymodule_export]
    use crate::remote::{ControlLink, Session, Ticket};
    #[pymodule_export]
    use crate::schema::Schema;
    #[pymodule_export]
    use crate::synth::synth;
    #[pymodule_export]
    use crate::table::{Table, join_saves, split_signs, unite_signs};
}
