//! Checks of label slots.

use crate::Error;
use crate::schema::{LabelSlot, LabelTransform};

pub(super) fn check(slot: &LabelSlot) -> Result<(), Error> {
    let fail = |reason: &str| Err(Error::slot(&slot.name, reason));
    match &slot.transform {
        LabelTransform::Threshold { at } if at.is_nan() => fail("threshold is not a number"),
        LabelTransform::Affine { scale, shift } if !scale.is_finite() || !shift.is_finite() => {
            fail("affine takes finite numbers")
        }
        LabelTransform::OneOf { values } if values.is_empty() => fail("one_of names no value"),
        LabelTransform::Identity
        | LabelTransform::Threshold { .. }
        | LabelTransform::Affine { .. }
        | LabelTransform::OneOf { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(transform: LabelTransform) -> Option<String> {
        let slot = LabelSlot {
            name: "click".to_owned(),
            column: None,
            transform,
        };
        check(&slot).err().map(|error| error.to_string())
    }

    #[test]
    fn a_transform_that_gives_no_numbers_is_refused() {
        for (transform, expected) in [
            (
                LabelTransform::Threshold { at: f32::NAN },
                "slot `click`: threshold is not a number",
            ),
            (
                LabelTransform::Affine {
                    scale: f32::INFINITY,
                    shift: 0.0,
                },
                "slot `click`: affine takes finite numbers",
            ),
            (
                LabelTransform::OneOf { values: Vec::new() },
                "slot `click`: one_of names no value",
            ),
        ] {
            assert_eq!(outcome(transform).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_threshold_may_be_infinite() {
        assert_eq!(outcome(LabelTransform::Threshold { at: f32::INFINITY }), None);
    }
}
