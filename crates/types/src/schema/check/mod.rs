//! What a schema may say: what cannot mean anything is refused, with the place and the remedy.

mod dense;
mod label;
mod sparse;
mod table;

use std::collections::HashSet;

use super::{SCHEMA_VERSION, Schema, Slot};
use crate::Error;

impl Schema {
    /// Refuses what cannot mean anything, naming the slot or table and the remedy.
    pub fn check(&self) -> Result<(), Error> {
        if self.version > SCHEMA_VERSION || self.version == 0 {
            return Err(Error::Version {
                found: self.version,
                supported: SCHEMA_VERSION,
            });
        }
        let tables = table::check(&self.tables)?;
        let mut names = HashSet::new();
        for slot in &self.slots {
            if slot.name().is_empty() {
                return Err(Error::schema("slots", "a slot has an empty name"));
            }
            if !names.insert(slot.name()) {
                return Err(Error::slot(slot.name(), "is defined twice; rename one of them"));
            }
        }
        for slot in &self.slots {
            match slot {
                Slot::Sparse(sparse) => sparse::check(sparse, self, &tables)?,
                Slot::Dense(dense) => dense::check(dense)?,
                Slot::Label(label) => label::check(label)?,
                Slot::Weight(_) | Slot::Group(_) => {}
            }
        }
        self.check_single("weight", |slot| matches!(slot, Slot::Weight(_)))?;
        self.check_single("group", |slot| matches!(slot, Slot::Group(_)))
    }

    fn check_single(&self, kind: &str, is_kind: impl Fn(&Slot) -> bool) -> Result<(), Error> {
        let mut found = self.slots.iter().filter(|slot| is_kind(slot));
        match (found.next(), found.next()) {
            (Some(_), Some(second)) => Err(Error::slot(
                second.name(),
                format!("is a second {kind} slot; a sample has one at most"),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn outcome(schema: &Value) -> String {
        match Schema::from_json(&schema.to_string()) {
            Ok(_) => "taken".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// The slot with these fields in addition, or in place of its own.
    pub(super) fn with(mut slot: Value, fields: &Value) -> Value {
        for (key, value) in fields.as_object().expect("fields") {
            slot[key] = value.clone();
        }
        slot
    }

    /// What is said to a schema of these slots and the tables `t` and `u`.
    pub(super) fn outcome_of_slots(slots: &Value) -> String {
        let tables = json!([{"name": "t", "dim": 8}, {"name": "u", "dim": 1}]);
        outcome(&json!({"version": 1, "slots": slots, "tables": tables}))
    }

    pub(super) fn outcome_of_tables(tables: &Value) -> String {
        outcome(&json!({"version": 1, "slots": [], "tables": tables}))
    }

    #[test]
    fn a_version_that_this_build_does_not_know_is_refused() {
        for version in [0, SCHEMA_VERSION + 1] {
            let found = outcome(&json!({"version": version, "slots": [], "tables": []}));
            assert_eq!(
                found,
                format!(
                    "schema version {version} is not supported by this build, which reads up to version 1"
                )
            );
        }
    }

    #[test]
    fn slots_have_names_of_their_own() {
        let label = |name: &str| json!({"kind": "label", "name": name});
        assert_eq!(outcome_of_slots(&json!([label("a"), label("b")])), "taken");
        assert_eq!(
            outcome_of_slots(&json!([label("a"), label("a")])),
            "slot `a`: is defined twice; rename one of them"
        );
        assert_eq!(
            outcome_of_slots(&json!([label("")])),
            "slots: a slot has an empty name"
        );
    }

    #[test]
    fn a_sample_has_one_weight_and_one_group_at_most() {
        for kind in ["weight", "group"] {
            let slots = json!([{"kind": kind, "name": "a"}, {"kind": kind, "name": "b"}]);
            let expected = format!("slot `b`: is a second {kind} slot; a sample has one at most");
            assert_eq!(outcome_of_slots(&slots), expected);
        }
    }
}
