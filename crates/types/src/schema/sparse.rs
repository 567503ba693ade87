//! Sparse slots: how a raw field becomes signs, and what becomes of their rows.

use serde::{Deserialize, Serialize};

use crate::sign::vocabulary_seed;

/// Longest multi-valued slot: a wrong limit must not turn into a huge allocation.
pub const MAX_LENGTH: u32 = 65_536;

/// A slot of signs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparseSlot {
    pub name: String,
    /// Raw field that it is made from; the slot's name where absent. Not used by a cross.
    #[serde(default)]
    pub column: Option<String>,
    /// Names of two or more sparse slots whose signs are crossed, in place of a raw field.
    #[serde(default)]
    pub cross: Vec<String>,
    /// Slots of one vocabulary share signs; the slot's name where absent.
    #[serde(default)]
    pub vocabulary: Option<String>,
    #[serde(default)]
    pub sign: SignKind,
    /// The classic fixed-size table: signs are taken modulo this number.
    #[serde(default)]
    pub hash_size: Option<u64>,
    #[serde(default)]
    pub transform: SparseTransform,
    /// Text between the values of a multi-valued field; the empty text splits into single bytes.
    #[serde(default)]
    pub separator: Option<String>,
    #[serde(default)]
    pub pooling: Pooling,
    /// Values kept per sample.
    #[serde(default = "super::slot::one")]
    pub max_length: u32,
    /// Which values stay when there are more than `max_length`.
    #[serde(default)]
    pub keep: Keep,
    #[serde(default)]
    pub missing: Missing,
    /// Tables that hold a row for each sign of this slot.
    pub tables: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignKind {
    /// xxh3 of the raw bytes, seeded by the vocabulary.
    #[default]
    Hash,
    /// The value is a decimal u64 that is already a sign.
    Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SparseTransform {
    #[default]
    Identity,
    /// The number of boundaries at or below the value, as the value.
    Bucketise { boundaries: Vec<f32> },
    /// floor(ln(x)^2) above 2, else floor(x): the usual coarse step for counts.
    LogSquare,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    #[default]
    Sum,
    Mean,
    Max,
    /// Not pooled: the model gets the padded sequence and its lengths.
    None,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    #[default]
    First,
    Last,
}

/// What an empty or absent field of a sparse slot is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// A value like any other: the sign of the empty text.
    #[default]
    Sign,
    /// No sign at all; the pooled row is zero.
    Skip,
}

impl SparseSlot {
    pub fn seed(&self) -> u64 {
        vocabulary_seed(self.vocabulary.as_deref().unwrap_or(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(text: &str) -> SparseSlot {
        serde_json::from_str(text).expect("a sparse slot")
    }

    #[test]
    fn a_slot_that_says_little_is_hashed_summed_and_of_one_value() {
        let slot = slot(r#"{"name": "ad", "tables": ["t"]}"#);
        assert_eq!(
            (slot.sign, slot.pooling, slot.max_length),
            (SignKind::Hash, Pooling::Sum, 1)
        );
        assert_eq!((slot.keep, slot.missing), (Keep::First, Missing::Sign));
        assert_eq!(slot.transform, SparseTransform::Identity);
    }

    #[test]
    fn slots_of_one_vocabulary_share_signs() {
        let own = slot(r#"{"name": "ad", "tables": ["t"]}"#);
        let sharing = slot(r#"{"name": "last_ad", "vocabulary": "ad", "tables": ["t"]}"#);
        let other = slot(r#"{"name": "last_ad", "tables": ["t"]}"#);
        assert_eq!(own.seed(), sharing.seed());
        assert_ne!(own.seed(), other.seed());
    }
}
