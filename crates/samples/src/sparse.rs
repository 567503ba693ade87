//! From the raw values of a sparse slot to its signs.

use clickmill_types::schema::{Keep, Missing, SignKind, SparseSlot, SparseTransform};
use clickmill_types::sign::{Sign, Signer, sign};

use crate::bad::{Fault, shown};
use crate::fields::{Fields, Value};
use crate::number;

#[derive(Clone, Debug)]
pub(crate) struct Sparse {
    name: String,
    column: u32,
    signer: Signer,
    rule: Rule,
    hash_size: Option<u64>,
    separator: Separator,
    max_length: usize,
    keep: Keep,
    /// Sign of an empty or absent field.
    missing: Option<Sign>,
}

#[derive(Clone, Debug)]
enum Rule {
    Hash,
    Value,
    /// One sign for each bucket.
    Bucketise {
        boundaries: Vec<f32>,
        signs: Vec<Sign>,
    },
    LogSquare,
}

#[derive(Clone, Debug)]
enum Separator {
    None,
    Byte(u8),
    Text(Box<memchr::memmem::Finder<'static>>),
    /// Every byte is a value.
    Empty,
}

/// A slot of exactly one sign.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainHash {
    column: u32,
    signer: Signer,
    missing: Sign,
}

impl PlainHash {
    #[inline]
    pub(crate) fn sign<F: Fields>(&self, fields: &F) -> Sign {
        match fields.first(self.column).map(|cursor| fields.value(cursor).bytes) {
            Some(bytes) if !bytes.is_empty() => self.signer.sign(bytes),
            _ => self.missing,
        }
    }
}

impl Sparse {
    pub(crate) fn new(slot: &SparseSlot, column: u32) -> Self {
        let seed = slot.seed();
        let reduce = |sign: Sign| slot.hash_size.map_or(sign, |size| sign % size);
        let rule = match (&slot.transform, slot.sign) {
            (SparseTransform::Bucketise { boundaries }, _) => Rule::Bucketise {
                signs: (0..=boundaries.len())
                    .map(|bucket| reduce(sign(bucket.to_string().as_bytes(), seed)))
                    .collect(),
                boundaries: boundaries.clone(),
            },
            (SparseTransform::LogSquare, _) => Rule::LogSquare,
            (SparseTransform::Identity, SignKind::Hash) => Rule::Hash,
            (SparseTransform::Identity, SignKind::Value) => Rule::Value,
        };
        let separator = match slot.separator.as_deref().map(str::as_bytes) {
            None => Separator::None,
            Some([]) => Separator::Empty,
            Some([byte]) => Separator::Byte(*byte),
            Some(text) => Separator::Text(Box::new(memchr::memmem::Finder::new(text).into_owned())),
        };
        Self {
            name: slot.name.clone(),
            column,
            signer: Signer::new(seed),
            rule,
            hash_size: slot.hash_size,
            separator,
            max_length: slot.max_length as usize,
            keep: slot.keep,
            missing: match slot.missing {
                Missing::Sign => Some(reduce(sign(b"", seed))),
                Missing::Skip => None,
            },
        }
    }

    /// The slot as one hashed value and nothing else, if it is that.
    pub(crate) fn as_plain_hash(&self) -> Option<PlainHash> {
        let is_plain = matches!(self.rule, Rule::Hash)
            && matches!(self.separator, Separator::None)
            && self.hash_size.is_none()
            && self.max_length == 1
            && self.keep == Keep::First;
        let missing = self.missing.filter(|_| is_plain)?;
        Some(PlainHash {
            column: self.column,
            signer: self.signer,
            missing,
        })
    }

    /// Appends the signs of one row, `max_length` at most.
    pub(crate) fn signs<F: Fields>(&self, fields: &F, out: &mut Vec<Sign>) -> Result<(), Fault> {
        let start = out.len();
        let mut cursor = fields.first(self.column);
        while let Some(at) = cursor {
            if self.is_full(out.len() - start) {
                break;
            }
            self.split(fields.value(at), start, out)?;
            cursor = fields.next(at);
        }
        let length = out.len() - start;
        if length > self.max_length {
            out.drain(start..start + length - self.max_length);
        }
        if length == 0 {
            out.extend(self.missing);
        }
        Ok(())
    }

    /// Whether further values would be thrown away.
    fn is_full(&self, length: usize) -> bool {
        self.keep == Keep::First && length >= self.max_length
    }

    fn split(&self, value: Value<'_>, start: usize, out: &mut Vec<Sign>) -> Result<(), Fault> {
        let mut push = |from: usize, to: usize| -> Result<bool, Fault> {
            if from < to {
                if self.is_full(out.len() - start) {
                    return Ok(false);
                }
                let made = self.sign(&value.bytes[from..to], value.at as usize + from);
                out.push(made.map_err(|fault| fault.of_column(self.column))?);
            }
            Ok(true)
        };
        let end = value.bytes.len();
        let mut from = 0;
        match &self.separator {
            Separator::None => {}
            Separator::Byte(byte) => {
                for to in memchr::memchr_iter(*byte, value.bytes) {
                    if !push(from, to)? {
                        return Ok(());
                    }
                    from = to + 1;
                }
            }
            Separator::Text(finder) => {
                for to in finder.find_iter(value.bytes) {
                    if !push(from, to)? {
                        return Ok(());
                    }
                    from = to + finder.needle().len();
                }
            }
            Separator::Empty => {
                while from < end {
                    if !push(from, from + 1)? {
                        return Ok(());
                    }
                    from += 1;
                }
            }
        }
        push(from, end).map(|_| ())
    }

    fn sign(&self, value: &[u8], at: usize) -> Result<Sign, Fault> {
        let number = || {
            number::parse(value).map_err(|reason| Fault::new(at, format!("slot `{}`: {reason}", self.name)))
        };
        let made = match &self.rule {
            Rule::Hash => self.signer.sign(value),
            Rule::Value => number::parse_u64(value).ok_or_else(|| {
                let reason = format!(
                    "slot `{}`: {} is not a sign: a decimal number from 0 to 2^64 - 1",
                    self.name,
                    shown(value)
                );
                Fault::new(at, reason)
            })?,
            Rule::Bucketise { boundaries, signs } => {
                let number = number()?;
                return Ok(signs[boundaries.partition_point(|&boundary| boundary <= number)]);
            }
            Rule::LogSquare => self.signer.sign(log_square(number()?).to_string().as_bytes()),
        };
        Ok(self.hash_size.map_or(made, |size| made % size))
    }
}

/// floor(ln(x)^2) above 2, else floor(x).
fn log_square(number: f32) -> i64 {
    let number = f64::from(number);
    if number > 2.0 {
        number.ln().powi(2).floor() as i64
    } else {
        number.floor() as i64
    }
}
