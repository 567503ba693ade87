//! How the slots of a schema become tensors: one layout for each group of sparse slots.

use std::sync::Arc;

use clickmill_table::PooledSlot;
use clickmill_types::schema::Pooling;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

/// Which slots of a group are pooled, and which are sequences; made once, used for every batch.
pub(crate) struct Plan {
    pub(crate) pooled: Vec<PooledSlot>,
    /// Positions in the group.
    pub(crate) sequences: Vec<usize>,
}

/// A group of sparse slots that live in the same tables.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct GroupLayout {
    pub(crate) plan: Arc<Plan>,
    tables: Vec<(String, usize)>,
    pooled: Vec<String>,
    sequences: Vec<(String, usize)>,
}

#[pymethods]
impl GroupLayout {
    /// Name and width of each table.
    #[getter]
    fn tables(&self) -> Vec<(String, usize)> {
        self.tables.clone()
    }

    /// Names of the pooled slots, in the order of `Lookup.pool`.
    #[getter]
    fn pooled(&self) -> Vec<String> {
        self.pooled.clone()
    }

    /// Name and longest length of each slot that is not pooled.
    #[getter]
    fn sequences(&self) -> Vec<(String, usize)> {
        self.sequences.clone()
    }
}

impl GroupLayout {
    /// Position in the group of its `index`-th sequence.
    pub(crate) fn sequence(&self, index: usize) -> PyResult<usize> {
        self.plan.sequences.get(index).copied().ok_or_else(|| {
            PyIndexError::new_err(format!(
                "sequence {index} of a group with {}",
                self.plan.sequences.len()
            ))
        })
    }
}

pub(crate) fn layouts(schema: &clickmill_types::Schema) -> Vec<GroupLayout> {
    let layout = |group: clickmill_types::schema::Group| {
        let mut plan = Plan {
            pooled: Vec::new(),
            sequences: Vec::new(),
        };
        let (mut pooled, mut sequences) = (Vec::new(), Vec::new());
        for (position, &index) in group.slots.iter().enumerate() {
            let slot = schema.slots[index]
                .as_sparse()
                .expect("groups hold sparse slots only");
            if slot.pooling == Pooling::None {
                plan.sequences.push(position);
                sequences.push((slot.name.clone(), slot.max_length as usize));
            } else {
                plan.pooled.push(PooledSlot {
                    position,
                    pooling: slot.pooling,
                });
                pooled.push(slot.name.clone());
            }
        }
        let tables = group.tables.iter().map(|&index| &schema.tables[index]);
        let tables = tables
            .map(|table| (table.name.clone(), table.dim as usize))
            .collect();
        GroupLayout {
            plan: Arc::new(plan),
            tables,
            pooled,
            sequences,
        }
    };
    schema.groups().into_iter().map(layout).collect()
}
