//! Checks of tables.

use std::collections::HashSet;

use crate::Error;
use crate::schema::{Init, MAX_DIM, TableSpec};

/// The names of the tables.
pub(super) fn check(tables: &[TableSpec]) -> Result<HashSet<&str>, Error> {
    let mut names = HashSet::new();
    for table in tables {
        let place = || format!("table `{}`", table.name);
        if table.name.is_empty()
            || !table
                .name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        {
            return Err(Error::schema(
                place(),
                "a table's name has letters, digits, `_` and `-` only",
            ));
        }
        if !names.insert(table.name.as_str()) {
            return Err(Error::schema(place(), "is defined twice; rename one of them"));
        }
        if table.dim == 0 || table.dim > MAX_DIM {
            return Err(Error::schema(
                place(),
                format!("dim is {}; allowed: 1 to {MAX_DIM}", table.dim),
            ));
        }
        let scale = match table.init {
            Init::Zeros => 0.0,
            Init::Uniform { scale } => scale,
            Init::Normal { std } => std,
        };
        if !scale.is_finite() || scale < 0.0 {
            return Err(Error::schema(
                place(),
                format!("init scale is {scale}; allowed: a finite number, 0 or more"),
            ));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::outcome_of_tables as outcome;

    #[test]
    fn a_name_can_be_part_of_the_name_of_a_file() {
        for name in ["", "a/b", "..", "a b", "ä"] {
            let found = outcome(&json!([{"name": name, "dim": 1}]));
            assert_eq!(
                found,
                format!("table `{name}`: a table's name has letters, digits, `_` and `-` only")
            );
        }
        assert_eq!(outcome(&json!([{"name": "Wide_1-b", "dim": 1}])), "taken");
    }

    #[test]
    fn a_name_stands_for_one_table() {
        assert_eq!(
            outcome(&json!([{"name": "t", "dim": 1}, {"name": "t", "dim": 2}])),
            "table `t`: is defined twice; rename one of them"
        );
    }

    #[test]
    fn rows_have_a_width_that_fits_in_memory() {
        for (dim, expected) in [
            (0, "table `t`: dim is 0; allowed: 1 to 4096"),
            (4096, "taken"),
            (4097, "table `t`: dim is 4097; allowed: 1 to 4096"),
        ] {
            assert_eq!(outcome(&json!([{"name": "t", "dim": dim}])), expected);
        }
    }

    #[test]
    fn initial_rows_are_finite() {
        for init in [
            json!({"kind": "uniform", "scale": -1.0}),
            json!({"kind": "normal", "std": 1e39}),
        ] {
            let found = outcome(&json!([{"name": "t", "dim": 1, "init": init}]));
            assert!(found.contains("allowed: a finite number, 0 or more"), "{found}");
        }
        let zeros = json!({"kind": "zeros"});
        assert_eq!(outcome(&json!([{"name": "t", "dim": 1, "init": zeros}])), "taken");
    }
}
