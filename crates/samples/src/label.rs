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
}

impl Label {
    pub(crate) fn new(slot: &LabelSlot, column: u32) -> Self {
        Self {
            name: slot.name.clone(),
            column,
            transform: slot.transform.clone(),
        }
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
        match self.transform {
            LabelTransform::Threshold { at } => Ok(f32::from(u8::from(number >= at))),
            LabelTransform::Affine { scale, shift } => {
                let made = number * scale + shift;
                if made.is_finite() {
                    Ok(made)
                } else {
                    Err(self.fault(value.at, ": the transformed value is not finite"))
                }
            }
            LabelTransform::Identity | LabelTransform::OneOf { .. } => Ok(number),
        }
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
