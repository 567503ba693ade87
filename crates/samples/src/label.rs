//! From the raw value of a label slot to its number.

use clickmill_types::schema::{LabelSlot, LabelTransform};

use crate::bad::{Fault, shown};
use crate::fields::{Fields, Value};
use crate::number;

#[derive(Clone, Debug)]
pub(crate) struct Label {
    name: String,
    column: u32,
    transform: LabelTransform,
    is_binary: bool,
}

impl Label {
    pub(crate) fn new(slot: &LabelSlot, column: u32) -> Self {
        Self {
            name: slot.name.clone(),
            column,
            transform: slot.transform.clone(),
            is_binary: false,
        }
    }

    /// From now on any number but 0 and 1 is a fault.
    pub(crate) fn require_binary(&mut self) {
        self.is_binary = true;
    }

    #[inline]
    pub(crate) fn number<F: Fields>(&self, fields: &F) -> Result<f32, Fault> {
        let value = match fields.only(self.column) {
            Ok(Some(value)) if !value.bytes.is_empty() => value,
            Ok(value) => {
                let at = value.map_or(0, |value| value.at);
                return Err(self.fault(at, " is missing"));
            }
            Err(second) => return Err(self.second(second)),
        };
        if let LabelTransform::OneOf { values } = &self.transform {
            let is_one = values.iter().any(|one| one.as_bytes() == value.bytes);
            return Ok(f32::from(u8::from(is_one)));
        }
        let number =
            number::parse(value.bytes).map_err(|reason| self.fault(value.at, &format!(": {reason}")))?;
        let made = match self.transform {
            LabelTransform::Threshold { at } => f32::from(u8::from(number >= at)),
            LabelTransform::Affine { scale, shift } => number * scale + shift,
            LabelTransform::Identity | LabelTransform::OneOf { .. } => number,
        };
        #[expect(clippy::float_cmp, reason = "a label of 0 or 1 is exactly that")]
        let is_good = if self.is_binary {
            made == 0.0 || made == 1.0
        } else {
            made.is_finite()
        };
        if is_good {
            Ok(made)
        } else {
            Err(self.wrong(value, made))
        }
    }

    #[cold]
    fn wrong(&self, value: Value<'_>, made: f32) -> Fault {
        let reason = if !made.is_finite() {
            ": the transformed value is not finite".to_owned()
        } else if self.transform == LabelTransform::Identity {
            format!(
                ": {} is neither 0 nor 1; a transform, `threshold` or `one_of`, can make it so",
                shown(value.bytes)
            )
        } else {
            format!(
                ": {} becomes {made}, which is neither 0 nor 1",
                shown(value.bytes)
            )
        };
        self.fault(value.at, &reason)
    }

    #[cold]
    fn second(&self, value: Value<'_>) -> Fault {
        self.fault(value.at, &format!(" has a second value: {}", shown(value.bytes)))
    }

    #[cold]
    fn fault(&self, at: u32, reason: &str) -> Fault {
        Fault::new(at as usize, format!("label `{}`{reason}", self.name)).of_column(self.column)
    }
}
