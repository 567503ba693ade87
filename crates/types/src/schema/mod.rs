//! The schema: what a sample means.
//!
//! One object names the slots of a sample, how each is made from a raw field, which tables hold its rows
//! and how several rows of one slot are pooled. It is stored with every checkpoint as JSON; trainer and
//! predictor build the same [`Schema`] from that text.

mod check;
mod dense;
mod label;
mod slot;
mod sparse;
mod table;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::Error;

pub use dense::{DenseSlot, DenseTransform};
pub use label::{LabelSlot, LabelTransform};
pub use slot::{GroupSlot, Slot, WeightSlot};
pub use sparse::{Keep, MAX_LENGTH, Missing, Pooling, SignKind, SparseSlot, SparseTransform};
pub use table::{Init, MAX_DIM, TableSpec};

/// Newest version that this build writes and reads.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    pub version: u32,
    pub slots: Vec<Slot>,
    pub tables: Vec<TableSpec>,
}

/// Sparse slots that live in the same tables: their signs are deduplicated together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Positions in `Schema::tables`.
    pub tables: Vec<usize>,
    /// Positions in `Schema::slots`, in their order.
    pub slots: Vec<usize>,
}

impl Schema {
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let schema: Self = serde_json::from_str(text).map_err(|error| Error::Json {
            reason: error.to_string(),
        })?;
        schema.check()?;
        Ok(schema)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a schema holds only strings, numbers and lists")
    }

    /// Total width of the dense slots, in slot order.
    pub fn num_dense(&self) -> usize {
        self.slots
            .iter()
            .map(|slot| {
                if let Slot::Dense(dense) = slot {
                    dense.width as usize
                } else {
                    0
                }
            })
            .sum()
    }

    /// Groups in the order in which their first slot appears.
    pub fn groups(&self) -> Vec<Group> {
        let position: HashMap<&str, usize> = self
            .tables
            .iter()
            .enumerate()
            .map(|(index, table)| (table.name.as_str(), index))
            .collect();
        let mut groups: Vec<Group> = Vec::new();
        for (index, slot) in self.slots.iter().enumerate() {
            let Slot::Sparse(sparse) = slot else { continue };
            let tables: Vec<usize> = sparse.tables.iter().map(|name| position[name.as_str()]).collect();
            match groups.iter_mut().find(|group| group.tables == tables) {
                Some(group) => group.slots.push(index),
                None => groups.push(Group {
                    tables,
                    slots: vec![index],
                }),
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let text = json!({
            "version": 1,
            "slots": [
                {"kind": "label", "name": "click"},
                {"kind": "sparse", "name": "ad", "tables": ["wide", "deep"]},
                {"kind": "dense", "name": "age"},
                {"kind": "sparse", "name": "user", "tables": ["deep"]},
                {"kind": "dense", "name": "embedding", "width": 8},
                {"kind": "sparse", "name": "campaign", "tables": ["wide", "deep"]},
            ],
            "tables": [{"name": "deep", "dim": 8}, {"name": "wide", "dim": 1}],
        });
        Schema::from_json(&text.to_string()).expect("a schema that means something")
    }

    #[test]
    fn slots_of_the_same_tables_are_one_group_in_the_order_of_first_slots() {
        let group = |tables: &[usize], slots: &[usize]| Group {
            tables: tables.to_vec(),
            slots: slots.to_vec(),
        };
        assert_eq!(schema().groups(), [group(&[1, 0], &[1, 5]), group(&[0], &[3])]);
    }

    #[test]
    fn dense_slots_lie_side_by_side() {
        assert_eq!(schema().num_dense(), 9);
    }

    #[test]
    fn a_schema_reads_back_from_its_own_text() {
        let schema = schema();
        assert_eq!(Schema::from_json(&schema.to_json()).expect("own text"), schema);
    }

    #[test]
    fn text_that_is_no_schema_is_refused_with_the_reason() {
        let error = Schema::from_json(r#"{"version": 1, "slots": [], "tables": [], "colour": 3}"#);
        assert!(error.is_err_and(|error| error.to_string().contains("unknown field `colour`")));
    }
}
