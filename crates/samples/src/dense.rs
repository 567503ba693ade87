//! From the raw values of a dense slot to its floats.

use clickmill_types::schema::{DenseSlot, DenseTransform};

use crate::Error;
use crate::bad::Fault;
use crate::fields::{Fields, Value};
use crate::number;
use crate::plan::is_unfitted;

#[derive(Clone, Debug)]
pub(crate) struct Dense {
    name: String,
    column: u32,
    width: usize,
    separator: Option<Box<memchr::memmem::Finder<'static>>>,
    default: f32,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Identity,
    /// (x - shift) / scale, one pair for each element.
    Scale(Vec<(f32, f32)>),
    Log1p,
}

impl Dense {
    pub(crate) fn new(slot: &DenseSlot, column: u32) -> Result<Self, Error> {
        if is_unfitted(&slot.transform) {
            return Err(Error::slot(
                &slot.name,
                "standardise has no mean and std yet; fit the schema to the data first (`fit_schema`)",
            ));
        }
        let width = slot.width as usize;
        let pairs = |shift: &[f32], scale: &dyn Fn(usize) -> f32| {
            (0..width)
                .map(|element| {
                    let index = if shift.len() == 1 { 0 } else { element };
                    (shift[index], scale(index))
                })
                .collect()
        };
        let rule = match &slot.transform {
            DenseTransform::Identity => Rule::Identity,
            DenseTransform::Log1p => Rule::Log1p,
            DenseTransform::MinMax { min, max } => Rule::Scale(pairs(min, &|i| max[i] - min[i])),
            DenseTransform::Standardise { mean, std } => Rule::Scale(pairs(mean, &|i| std[i])),
        };
        Ok(Self {
            name: slot.name.clone(),
            column,
            width,
            separator: slot
                .separator
                .as_ref()
                .map(|text| Box::new(memchr::memmem::Finder::new(text.as_bytes()).into_owned())),
            default: slot.default,
            rule,
        })
    }

    /// Appends the `width` elements of one row.
    #[inline]
    pub(crate) fn push<F: Fields>(&self, fields: &F, out: &mut Vec<f32>) -> Result<(), Fault> {
        if self.width == 1 && self.separator.is_none() {
            let element = match fields.first(self.column) {
                Some(cursor) => {
                    if let Some(second) = fields.next(cursor) {
                        return Err(self.second(fields.value(second)));
                    }
                    let (value, head) = fields.value_and_head(cursor);
                    match number::small_integer(value.bytes.len(), head) {
                        Some(number) => self.transformed(number, value.at, 0)?,
                        None => self.element(value, 0)?,
                    }
                }
                None => self.default,
            };
            out.push(element);
            return Ok(());
        }
        self.push_wide(fields, out)
    }

    /// All elements or none: a count in between would shift the others silently.
    fn push_wide<F: Fields>(&self, fields: &F, out: &mut Vec<f32>) -> Result<(), Fault> {
        let start = out.len();
        let mut at = 0;
        let mut cursor = fields.first(self.column);
        while let Some(current) = cursor {
            let value = fields.value(current);
            at = value.at;
            let mut from = 0;
            if let Some(finder) = self.separator.as_ref().filter(|_| !value.bytes.is_empty()) {
                for to in finder.find_iter(value.bytes) {
                    self.push_piece(value, from, to, start, out)?;
                    from = to + finder.needle().len();
                }
                self.push_piece(value, from, value.bytes.len(), start, out)?;
            } else if self.separator.is_none() {
                self.push_piece(value, 0, value.bytes.len(), start, out)?;
            }
            cursor = fields.next(current);
        }
        let found = out.len() - start;
        let is_blank = found == 1 && self.width > 1 && at_is_blank(fields, self.column);
        if found == 0 || is_blank {
            out.truncate(start);
            out.resize(start + self.width, self.default);
        } else if found != self.width {
            return Err(self.fault(
                at as usize,
                &format!("{found} values, its width is {}", self.width),
            ));
        }
        Ok(())
    }

    fn push_piece(
        &self,
        value: Value<'_>,
        from: usize,
        to: usize,
        start: usize,
        out: &mut Vec<f32>,
    ) -> Result<(), Fault> {
        let index = out.len() - start;
        if index == self.width {
            let reason = format!("more than {} values, which is its width", self.width);
            return Err(self.fault(value.at as usize + from, &reason));
        }
        let piece = Value {
            bytes: &value.bytes[from..to],
            at: value.at + from as u32,
        };
        out.push(self.element(piece, index)?);
        Ok(())
    }

    fn element(&self, value: Value<'_>, index: usize) -> Result<f32, Fault> {
        if value.bytes.is_empty() {
            return Ok(self.default);
        }
        let number = number::parse(value.bytes).map_err(|reason| self.fault(value.at as usize, &reason))?;
        self.transformed(number, value.at, index)
    }

    #[inline]
    fn transformed(&self, number: f32, at: u32, index: usize) -> Result<f32, Fault> {
        let made = match &self.rule {
            Rule::Identity => return Ok(number),
            Rule::Scale(pairs) => {
                let (shift, scale) = pairs[index];
                (number - shift) / scale
            }
            Rule::Log1p => number.abs().ln_1p().copysign(number),
        };
        if made.is_finite() {
            Ok(made)
        } else {
            Err(self.fault(at as usize, "the transformed value is not finite"))
        }
    }

    #[cold]
    fn second(&self, value: Value<'_>) -> Fault {
        self.fault(
            value.at as usize,
            &format!("more than {} values, which is its width", self.width),
        )
    }

    #[cold]
    fn fault(&self, at: usize, reason: &str) -> Fault {
        Fault::new(at, format!("slot `{}`: {reason}", self.name)).of_column(self.column)
    }
}

/// Whether the column's only value is empty: an absent wide slot in a format with fixed columns.
fn at_is_blank<F: Fields>(fields: &F, column: u32) -> bool {
    fields
        .first(column)
        .is_some_and(|cursor| fields.value(cursor).bytes.is_empty())
}
