//! Checks of sparse slots and of crosses.

use std::collections::HashSet;

use crate::Error;
use crate::schema::{MAX_LENGTH, Schema, SignKind, Slot, SparseSlot, SparseTransform};

/// `tables` are the names of the tables of the schema.
pub(super) fn check(slot: &SparseSlot, schema: &Schema, tables: &HashSet<&str>) -> Result<(), Error> {
    let fail = |reason: &str| Err(Error::slot(&slot.name, reason));
    if slot.tables.is_empty() {
        return fail("names no table; give `tables`");
    }
    let mut seen = HashSet::new();
    for table in &slot.tables {
        if !tables.contains(table.as_str()) {
            let mut known: Vec<&str> = tables.iter().copied().collect();
            known.sort_unstable();
            return fail(&format!(
                "table `{table}` is not defined; known tables: {}",
                known.join(", ")
            ));
        }
        if !seen.insert(table) {
            return fail(&format!("names table `{table}` twice"));
        }
    }
    if slot.max_length == 0 || slot.max_length > MAX_LENGTH {
        return fail(&format!(
            "max_length is {}; allowed: 1 to {MAX_LENGTH}",
            slot.max_length
        ));
    }
    if slot.hash_size == Some(0) {
        return fail("hash_size is 0; leave it out for a table without fixed size");
    }
    if let SparseTransform::Bucketise { boundaries } = &slot.transform {
        let ascending = boundaries.windows(2).all(|pair| pair[0] < pair[1]);
        if boundaries.is_empty() || !ascending || boundaries.iter().any(|x| !x.is_finite()) {
            return fail("bucketise boundaries must be finite and ascending, at least one");
        }
    }
    if slot.transform != SparseTransform::Identity && slot.sign == SignKind::Value {
        return fail("`sign: value` takes no transform");
    }
    check_cross(slot, schema)
}

fn check_cross(slot: &SparseSlot, schema: &Schema) -> Result<(), Error> {
    let fail = |reason: &str| Err(Error::slot(&slot.name, reason));
    if slot.cross.is_empty() {
        return Ok(());
    }
    if slot.cross.len() < 2 {
        return fail("a cross needs at least two slots");
    }
    if slot.column.is_some() || slot.separator.is_some() || slot.transform != SparseTransform::Identity {
        return fail("a cross is made from slots and takes no column, separator or transform");
    }
    for part in &slot.cross {
        let found = schema.slots.iter().find(|other| other.name() == part);
        match found.and_then(Slot::as_sparse) {
            None => {
                return fail(&format!(
                    "crosses `{part}`, which is not a sparse slot of this schema"
                ));
            }
            Some(other) if !other.cross.is_empty() => {
                return fail(&format!(
                    "crosses `{part}`, which is a cross itself; list its parts instead"
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{outcome_of_slots, with};

    /// Of a slot `a` in table `t` with these fields in addition, or instead.
    fn outcome(fields: &Value) -> String {
        let slot = json!({"kind": "sparse", "name": "a", "tables": ["t"]});
        outcome_of_slots(&json!([with(slot, fields)]))
    }

    #[test]
    fn a_slot_lives_in_tables_that_there_are() {
        for (tables, expected) in [
            (json!([]), "slot `a`: names no table; give `tables`"),
            (
                json!(["v"]),
                "slot `a`: table `v` is not defined; known tables: t, u",
            ),
            (json!(["t", "t"]), "slot `a`: names table `t` twice"),
            (json!(["u", "t"]), "taken"),
        ] {
            assert_eq!(outcome(&json!({"tables": tables})), expected);
        }
    }

    #[test]
    fn a_limit_is_neither_nothing_nor_a_huge_allocation() {
        for (max_length, expected) in [
            (0, "slot `a`: max_length is 0; allowed: 1 to 65536"),
            (65_536, "taken"),
            (65_537, "slot `a`: max_length is 65537; allowed: 1 to 65536"),
        ] {
            assert_eq!(outcome(&json!({"max_length": max_length})), expected);
        }
        assert_eq!(
            outcome(&json!({"hash_size": 0})),
            "slot `a`: hash_size is 0; leave it out for a table without fixed size"
        );
    }

    #[test]
    fn boundaries_ascend() {
        for (boundaries, is_taken) in [
            (json!([]), false),
            (json!([1.0, 1.0]), false),
            (json!([2.0, 1.0]), false),
            (json!([1e39]), false),
            (json!([-1.0, 0.5]), true),
        ] {
            let found = outcome(&json!({"transform": {"kind": "bucketise", "boundaries": boundaries}}));
            let expected = "slot `a`: bucketise boundaries must be finite and ascending, at least one";
            assert_eq!(found, if is_taken { "taken" } else { expected }, "{boundaries}");
        }
    }

    #[test]
    fn a_value_that_is_a_sign_is_not_transformed() {
        assert_eq!(
            outcome(&json!({"sign": "value", "transform": {"kind": "log_square"}})),
            "slot `a`: `sign: value` takes no transform"
        );
    }

    /// Of a slot that crosses `parts` and has these fields in addition, among the slots `a`, `b`, their cross
    /// `a_b` and the dense `d`.
    fn outcome_of_cross(parts: &Value, fields: &Value) -> String {
        let sparse = |name: &str, cross: &Value| json!({"kind": "sparse", "name": name, "cross": cross, "tables": ["t"]});
        let slot = with(sparse("x", parts), fields);
        let (a, b, both) = (
            sparse("a", &json!([])),
            sparse("b", &json!([])),
            sparse("a_b", &json!(["a", "b"])),
        );
        outcome_of_slots(&json!([slot, a, b, both, {"kind": "dense", "name": "d"}]))
    }

    #[test]
    fn a_cross_has_sparse_slots_for_parts() {
        for (parts, expected) in [
            (json!(["a", "b"]), "taken"),
            (json!(["a"]), "slot `x`: a cross needs at least two slots"),
            (
                json!(["a", "d"]),
                "slot `x`: crosses `d`, which is not a sparse slot of this schema",
            ),
            (
                json!(["a", "z"]),
                "slot `x`: crosses `z`, which is not a sparse slot of this schema",
            ),
            (
                json!(["a", "a_b"]),
                "slot `x`: crosses `a_b`, which is a cross itself; list its parts instead",
            ),
        ] {
            assert_eq!(outcome_of_cross(&parts, &json!({})), expected);
        }
    }

    #[test]
    fn a_cross_reads_no_field() {
        for fields in [
            json!({"column": "c"}),
            json!({"separator": ","}),
            json!({"transform": {"kind": "log_square"}}),
        ] {
            assert_eq!(
                outcome_of_cross(&json!(["a", "b"]), &fields),
                "slot `x`: a cross is made from slots and takes no column, separator or transform"
            );
        }
    }
}
