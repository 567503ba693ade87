//! The schema, as Python sees it: checked, immutable, and its JSON text.

use pyo3::prelude::*;

use crate::errors;
use crate::layout::{self, GroupLayout};

/// What a sample means: slots, tables and transforms, checked.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Schema {
    pub(crate) inner: std::sync::Arc<clickmill_types::Schema>,
}

#[pymethods]
impl Schema {
    #[new]
    fn new(py: Python<'_>, json: &str) -> PyResult<Self> {
        let inner = clickmill_types::Schema::from_json(json).map_err(|error| errors::types(py, &error))?;
        Ok(Self {
            inner: std::sync::Arc::new(inner),
        })
    }

    fn to_json(&self) -> String {
        self.inner.to_json()
    }

    /// Total width of the dense slots.
    #[getter]
    fn num_dense(&self) -> usize {
        self.inner.num_dense()
    }

    /// Per group of sparse slots: its tables and what becomes of its slots.
    fn layout(&self) -> Vec<GroupLayout> {
        layout::layouts(&self.inner)
    }

    /// Per group of sparse slots: positions of its tables, positions of its slots.
    fn groups(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        self.inner
            .groups()
            .into_iter()
            .map(|group| (group.tables, group.slots))
            .collect()
    }
}
