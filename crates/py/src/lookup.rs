//! Lookups, as Python sees them: pooled into arrays of the caller, gradients gathered from them.
//!
//! Shapes: U unique rows, D width, B samples, P pooled slots, L longest sequence. A call may cover only some
//! samples of the batch, from `first_sample` on: as many as its array has.

#![expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]

use std::sync::{Arc, LazyLock, Mutex};

use clickmill_table::{Buffers, Occurrences};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Array, Array1, Array2, Reads1, Reads2, Reads3, Writes1, Writes3};
use crate::batch::Batch;
use crate::errors;
use crate::layout::GroupLayout;

/// The rows of one batch, pulled from a table.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Lookup {
    pub(crate) inner: clickmill_table::Lookup,
    /// The group of a batch that it was made for; absent for a lookup of plain signs.
    pub(crate) source: Option<Source>,
}

/// Rows of a group of a batch, or of plain signs, found but not read; `Table.fill` reads them, once.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Located {
    pub(crate) inner: Mutex<Option<(clickmill_table::Located, Option<Source>)>>,
}

/// A group of a batch, kept alive as long as its lookup.
pub(crate) struct Source {
    pub(crate) batch: Arc<clickmill_samples::Batch>,
    pub(crate) group: usize,
}

impl Source {
    fn group(&self) -> &clickmill_samples::SignGroup {
        &self.batch.groups[self.group]
    }
}

fn check_width(found: usize, dim: usize) -> PyResult<()> {
    if found == dim {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "the last axis has {found} elements, rows have {dim}"
    )))
}

impl Lookup {
    fn check_slots(&self, shape: &[usize], num_pooled: usize) -> PyResult<()> {
        check_width(shape[2], self.inner.dim())?;
        if shape[1] == num_pooled {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "the middle axis has {} elements for {num_pooled} pooled slots",
            shape[1]
        )))
    }

    fn source(&self) -> PyResult<&Source> {
        self.source
            .as_ref()
            .ok_or_else(|| PyValueError::new_err("this lookup was made for signs, not for a batch"))
    }

    /// Runs `work` on the occurrences of the batch, detached from the interpreter.
    fn with(
        &self,
        py: Python<'_>,
        work: impl Send + FnOnce(&clickmill_table::Lookup, &Occurrences<'_>) -> Result<(), clickmill_table::Error>,
    ) -> PyResult<()> {
        let group = self.source()?.group();
        py.detach(|| {
            let num_unique = self.inner.num_rows();
            let occurrences = Occurrences::new(&group.offsets, &group.inverse, group.num_slots, num_unique)?;
            work(&self.inner, &occurrences)
        })
        .map_err(|error| errors::table(py, &error))
    }
}

/// Memory of lookups that belong to no table.
static BUFFERS: LazyLock<Buffers> = LazyLock::new(Buffers::default);

#[pymethods]
impl Lookup {
    /// A lookup of a group of `batch` with rows that were read elsewhere: `values` [U,D] in the order of its
    /// signs. It pools and gathers gradients; no table applies it.
    #[staticmethod]
    fn from_values(py: Python<'_>, batch: &Batch, group: usize, values: Reads2<'_, f32>) -> PyResult<Self> {
        let num_unique = batch.group(group)?.unique.len();
        let [num_rows, dim] = [values.shape()[0], values.shape()[1]];
        if num_rows != num_unique {
            return Err(PyValueError::new_err(format!(
                "{num_rows} rows for {num_unique} signs"
            )));
        }
        let values = values.as_slice()?;
        let inner = py
            .detach(|| {
                let mut memory = BUFFERS.take_values(values.len());
                memory.copy_from_slice(values);
                clickmill_table::Lookup::from_values(dim, memory, &BUFFERS)
            })
            .map_err(|error| errors::table(py, &error))?;
        Ok(Self {
            inner,
            source: Some(Source {
                batch: Arc::clone(&batch.inner),
                group,
            }),
        })
    }

    /// U.
    #[getter]
    fn num_rows(&self) -> usize {
        self.inner.num_rows()
    }

    #[getter]
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    /// Weights [U,D] as they were pulled.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Array2<'py, f32>> {
        PyArray1::from_slice(py, self.inner.values())
            .reshape([self.inner.num_rows(), self.inner.dim()])
            .map(Array)
    }

    /// Gradients [U,D] gathered so far.
    fn gradients<'py>(&self, py: Python<'py>) -> PyResult<Array2<'py, f32>> {
        let gradients = self
            .inner
            .gradients()
            .map_err(|error| errors::table(py, &error))?;
        PyArray1::from_vec(py, gradients)
            .reshape([self.inner.num_rows(), self.inner.dim()])
            .map(Array)
    }

    /// Sum of the squared gradients gathered so far.
    fn gradient_square_sum(&self, py: Python<'_>) -> PyResult<f64> {
        py.detach(|| self.inner.gradient_square_sum())
            .map_err(|error| errors::table(py, &error))
    }

    /// Adds gradients [U,D] of the rows themselves.
    fn add_gradients(&self, py: Python<'_>, gradients: Reads2<'_, f32>) -> PyResult<()> {
        let gradients = gradients.as_slice()?;
        py.detach(|| self.inner.add_gradients(gradients))
            .map_err(|error| errors::table(py, &error))
    }

    /// Pools the rows of the batch to `out` [B,P,D], in the order of `layout.pooled`.
    #[pyo3(signature = (layout, out, first_sample = 0))]
    fn pool(
        &self,
        py: Python<'_>,
        layout: &GroupLayout,
        mut out: Writes3<'_, f32>,
        first_sample: usize,
    ) -> PyResult<()> {
        self.check_slots(out.shape(), layout.plan.pooled.len())?;
        let out = out.as_slice_mut()?;
        self.with(py, |lookup, occurrences| {
            lookup.pool(occurrences, first_sample, &layout.plan.pooled, out)
        })
    }

    /// Adds the gradients [B,P,D] of what `pool` gave.
    #[pyo3(signature = (layout, gradients, first_sample = 0))]
    fn unpool(
        &self,
        py: Python<'_>,
        layout: &GroupLayout,
        gradients: Reads3<'_, f32>,
        first_sample: usize,
    ) -> PyResult<()> {
        self.check_slots(gradients.shape(), layout.plan.pooled.len())?;
        let gradients = gradients.as_slice()?;
        self.with(py, |lookup, occurrences| {
            lookup.unpool(occurrences, first_sample, &layout.plan.pooled, gradients)
        })
    }

    /// Writes the rows of sequence `index` of the layout to `out` [B,L,D], and their number to `lengths` [B].
    #[pyo3(signature = (layout, index, out, lengths, first_sample = 0))]
    fn sequence(
        &self,
        py: Python<'_>,
        layout: &GroupLayout,
        index: usize,
        mut out: Writes3<'_, f32>,
        mut lengths: Writes1<'_, i64>,
        first_sample: usize,
    ) -> PyResult<()> {
        check_width(out.shape()[2], self.inner.dim())?;
        let position = layout.sequence(index)?;
        let (out, lengths) = (out.as_slice_mut()?, lengths.as_slice_mut()?);
        self.with(py, |lookup, occurrences| {
            lookup.sequence(occurrences, first_sample, position, out, lengths)
        })
    }

    /// Adds the gradients [B,L,D] of what `sequence` gave.
    #[pyo3(signature = (layout, index, gradients, first_sample = 0))]
    fn unsequence(
        &self,
        py: Python<'_>,
        layout: &GroupLayout,
        index: usize,
        gradients: Reads3<'_, f32>,
        first_sample: usize,
    ) -> PyResult<()> {
        check_width(gradients.shape()[2], self.inner.dim())?;
        let (position, num_samples) = (layout.sequence(index)?, gradients.shape()[0]);
        let gradients = gradients.as_slice()?;
        self.with(py, |lookup, occurrences| {
            lookup.unsequence(occurrences, first_sample, position, num_samples, gradients)
        })
    }

    /// Shows and clicks [U] counted so far; empty arrays where nothing has been.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<(Array1<'py, f32>, Array1<'py, f32>)> {
        let (shows, clicks) = self
            .inner
            .with_counts(|shows, clicks| (shows.to_vec(), clicks.to_vec()))
            .map_err(|error| errors::table(py, &error))?;
        Ok((
            Array(PyArray1::from_vec(py, shows)),
            Array(PyArray1::from_vec(py, clicks)),
        ))
    }

    /// Adds shows and clicks [U] that were counted elsewhere.
    fn add_counts(&self, py: Python<'_>, shows: Reads1<'_, f32>, clicks: Reads1<'_, f32>) -> PyResult<()> {
        let (shows, clicks) = (shows.as_slice()?, clicks.as_slice()?);
        py.detach(|| self.inner.add_counts(shows, clicks))
            .map_err(|error| errors::table(py, &error))
    }

    /// Counts shows and clicks of the batch for its rows, where the table keeps them; once a batch.
    fn observe(&self, py: Python<'_>) -> PyResult<()> {
        let batch = &self.source()?.batch;
        self.with(py, |lookup, occurrences| {
            let labels: Vec<f32> = batch
                .labels
                .iter()
                .step_by(batch.num_labels.max(1))
                .copied()
                .collect();
            lookup.observe(occurrences, &labels)
        })
    }
}
