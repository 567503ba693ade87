//! Batches, as Python sees them: read-only `NumPy` views that keep the batch alive.

use std::sync::Arc;

use numpy::ndarray::{ArrayView1, ArrayView2};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::arrays::{Array, Array1, Array2, Scalar};
use crate::schema::Schema;

/// Samples in columnar form; every array is a view of the batch, not a copy.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Batch {
    pub(crate) inner: Arc<clickmill_samples::Batch>,
}

impl Batch {
    pub(crate) fn new(batch: clickmill_samples::Batch) -> Self {
        Self {
            inner: Arc::new(batch),
        }
    }

    pub(crate) fn group(&self, index: usize) -> PyResult<&clickmill_samples::SignGroup> {
        let groups = &self.inner.groups;
        groups.get(index).ok_or_else(|| {
            PyIndexError::new_err(format!("group {index} of a batch with {} groups", groups.len()))
        })
    }
}

/// A view of `values`, which the batch `owner` holds.
#[expect(unsafe_code, reason = "NumPy borrows memory that its base object keeps alive")]
fn view<'py, T: Scalar>(owner: &Bound<'py, Batch>, values: &[T]) -> Array1<'py, T> {
    let values = ArrayView1::from(values);
    // SAFETY: `values` lies in the batch, which is immutable and which `owner` keeps alive.
    let array = unsafe { PyArray1::borrow_from_array(&values, owner.clone().into_any()) };
    array.readwrite().make_nonwriteable();
    Array(array)
}

#[expect(unsafe_code, reason = "NumPy borrows memory that its base object keeps alive")]
fn matrix<'py>(owner: &Bound<'py, Batch>, values: &[f32], width: usize) -> Array2<'py, f32> {
    let num_rows = owner.get().inner.num_rows;
    let values = ArrayView2::from_shape((num_rows, width), values)
        .expect("a batch has as many values as rows times width");
    // SAFETY: as in `view`.
    let array = unsafe { PyArray2::borrow_from_array(&values, owner.clone().into_any()) };
    array.readwrite().make_nonwriteable();
    Array(array)
}

#[pymethods]
impl Batch {
    /// A batch without samples, for who has none while others have.
    #[staticmethod]
    fn empty(schema: &Schema) -> Self {
        Self::new(clickmill_samples::Batch::empty(&schema.inner))
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.inner.num_rows
    }

    #[getter]
    fn num_groups(&self) -> usize {
        self.inner.groups.len()
    }

    /// `[B, F]`: dense slots side by side, in slot order.
    #[getter]
    fn dense<'py>(this: &Bound<'py, Self>) -> Array2<'py, f32> {
        let batch = &this.get().inner;
        matrix(this, &batch.dense, batch.num_dense)
    }

    /// `[B, L]`: one column for each label slot.
    #[getter]
    fn labels<'py>(this: &Bound<'py, Self>) -> Array2<'py, f32> {
        let batch = &this.get().inner;
        matrix(this, &batch.labels, batch.num_labels)
    }

    /// `[B]`, or None where the schema has no weight slot.
    #[getter]
    fn weights<'py>(this: &Bound<'py, Self>) -> Option<Array1<'py, f32>> {
        let weights = &this.get().inner.weights;
        (!weights.is_empty()).then(|| view(this, weights))
    }

    /// `[B]`, or None where the schema has no group slot.
    #[getter]
    fn group_keys<'py>(this: &Bound<'py, Self>) -> Option<Array1<'py, u64>> {
        let keys = &this.get().inner.group_keys;
        (!keys.is_empty()).then(|| view(this, keys))
    }

    /// JSON; a reader opened with it yields exactly the batches that follow this one.
    #[getter]
    fn position(&self) -> String {
        self.inner.position.to_json()
    }

    /// Number of distinct signs of a group.
    fn num_unique(&self, group: usize) -> PyResult<usize> {
        Ok(self.group(group)?.unique.len())
    }

    /// `[U]`: distinct signs of a group, in order of first occurrence.
    fn signs<'py>(this: &Bound<'py, Self>, group: usize) -> PyResult<Array1<'py, u64>> {
        Ok(view(this, &this.get().group(group)?.unique))
    }

    /// `[B * S + 1]`: sample b, slot s of the group has occurrences `offsets[b * S + s]` up to the next.
    fn offsets<'py>(this: &Bound<'py, Self>, group: usize) -> PyResult<Array1<'py, u32>> {
        Ok(view(this, &this.get().group(group)?.offsets))
    }

    /// Per occurrence: position in `signs`.
    fn inverse<'py>(this: &Bound<'py, Self>, group: usize) -> PyResult<Array1<'py, u32>> {
        Ok(view(this, &this.get().group(group)?.inverse))
    }
}
