//! Checks of dense slots.

use crate::Error;
use crate::schema::{DenseSlot, DenseTransform, MAX_DIM};

pub(super) fn check(slot: &DenseSlot) -> Result<(), Error> {
    let fail = |reason: &str| Err(Error::slot(&slot.name, reason));
    if slot.width == 0 || slot.width > MAX_DIM {
        return fail(&format!("width is {}; allowed: 1 to {MAX_DIM}", slot.width));
    }
    if slot.separator.as_deref() == Some("") {
        return fail("separator is empty; leave it out where the field repeats");
    }
    if !slot.default.is_finite() {
        return fail("default must be a finite number");
    }
    let (left, right, what) = match &slot.transform {
        DenseTransform::Identity | DenseTransform::Log1p => return Ok(()),
        DenseTransform::MinMax { min, max } => (min, max, "min_max"),
        DenseTransform::Standardise { mean, std } if mean.is_empty() && std.is_empty() => return Ok(()),
        DenseTransform::Standardise { mean, std } => (mean, std, "standardise"),
    };
    let width = slot.width as usize;
    if left.len() != right.len() || (left.len() != 1 && left.len() != width) {
        return fail(&format!(
            "{what} takes two lists of one number, or of {width}, one for each element"
        ));
    }
    if left.iter().chain(right).any(|x| !x.is_finite()) {
        return fail(&format!("{what} takes finite numbers"));
    }
    let is_flat = match &slot.transform {
        DenseTransform::MinMax { min, max } => min.iter().zip(max).any(|(low, high)| high <= low),
        DenseTransform::Standardise { std, .. } => std.iter().any(|&x| x <= 0.0),
        DenseTransform::Identity | DenseTransform::Log1p => false,
    };
    if is_flat {
        return fail(&format!("{what} would divide by zero or less"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{outcome_of_slots, with};

    /// Of a slot `a` with these fields.
    fn outcome(fields: &Value) -> String {
        let slot = json!({"kind": "dense", "name": "a"});
        outcome_of_slots(&json!([with(slot, fields)]))
    }

    #[test]
    fn a_slot_has_a_width_and_a_default_that_are_numbers() {
        for (fields, expected) in [
            (json!({"width": 0}), "slot `a`: width is 0; allowed: 1 to 4096"),
            (json!({"width": 4096}), "taken"),
            (
                json!({"width": 4097}),
                "slot `a`: width is 4097; allowed: 1 to 4096",
            ),
            (
                json!({"default": 1e39}),
                "slot `a`: default must be a finite number",
            ),
            (
                json!({"separator": ""}),
                "slot `a`: separator is empty; leave it out where the field repeats",
            ),
        ] {
            assert_eq!(outcome(&fields), expected);
        }
    }

    #[test]
    fn a_scale_has_one_number_or_one_for_each_element() {
        for (min, max, expected) in [
            (json!([0]), json!([1]), "taken"),
            (json!([0, 0, 0]), json!([1, 2, 3]), "taken"),
            (
                json!([0, 0]),
                json!([1, 2]),
                "slot `a`: min_max takes two lists of one number, or of 3, one for each element",
            ),
            (
                json!([0]),
                json!([1, 2, 3]),
                "slot `a`: min_max takes two lists of one number, or of 3, one for each element",
            ),
            (
                json!([0]),
                json!([1e39]),
                "slot `a`: min_max takes finite numbers",
            ),
        ] {
            let transform = json!({"kind": "min_max", "min": min, "max": max});
            assert_eq!(outcome(&json!({"width": 3, "transform": transform})), expected);
        }
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        for (transform, what) in [
            (json!({"kind": "min_max", "min": [1], "max": [1]}), "min_max"),
            (
                json!({"kind": "standardise", "mean": [0], "std": [0]}),
                "standardise",
            ),
        ] {
            assert_eq!(
                outcome(&json!({"transform": transform})),
                format!("slot `a`: {what} would divide by zero or less")
            );
        }
        for transform in [
            json!({"kind": "standardise"}),
            json!({"kind": "standardise", "mean": [0], "std": [1]}),
        ] {
            assert_eq!(outcome(&json!({"transform": transform})), "taken");
        }
    }
}
