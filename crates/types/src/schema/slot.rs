//! Slots: the fields of a sample.

use serde::{Deserialize, Serialize};

use super::dense::DenseSlot;
use super::label::LabelSlot;
use super::sparse::SparseSlot;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Slot {
    Sparse(SparseSlot),
    Dense(DenseSlot),
    Label(LabelSlot),
    Weight(WeightSlot),
    Group(GroupSlot),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightSlot {
    pub name: String,
    #[serde(default)]
    pub column: Option<String>,
}

/// The key by which samples are grouped for GAUC: a user, a session, a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSlot {
    pub name: String,
    #[serde(default)]
    pub column: Option<String>,
}

impl Slot {
    pub fn name(&self) -> &str {
        match self {
            Self::Sparse(slot) => &slot.name,
            Self::Dense(slot) => &slot.name,
            Self::Label(slot) => &slot.name,
            Self::Weight(slot) => &slot.name,
            Self::Group(slot) => &slot.name,
        }
    }

    /// Raw field that the slot is made from; none for a cross.
    pub fn column(&self) -> Option<&str> {
        let (name, column) = match self {
            Self::Sparse(slot) if !slot.cross.is_empty() => return None,
            Self::Sparse(slot) => (&slot.name, &slot.column),
            Self::Dense(slot) => (&slot.name, &slot.column),
            Self::Label(slot) => (&slot.name, &slot.column),
            Self::Weight(slot) => (&slot.name, &slot.column),
            Self::Group(slot) => (&slot.name, &slot.column),
        };
        Some(column.as_deref().unwrap_or(name))
    }

    pub fn as_sparse(&self) -> Option<&SparseSlot> {
        if let Self::Sparse(slot) = self {
            Some(slot)
        } else {
            None
        }
    }
}

/// Width or length of a slot that does not say so.
pub(super) fn one() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(text: &str) -> Slot {
        serde_json::from_str(text).expect("a slot")
    }

    #[test]
    fn a_slot_is_made_from_the_field_of_its_name_or_of_the_one_it_names() {
        for kind in ["dense", "label", "weight", "group"] {
            let plain = slot(&format!(r#"{{"kind": "{kind}", "name": "a"}}"#));
            let other = slot(&format!(r#"{{"kind": "{kind}", "name": "a", "column": "b"}}"#));
            assert_eq!((plain.name(), plain.column()), ("a", Some("a")), "{kind}");
            assert_eq!((other.name(), other.column()), ("a", Some("b")), "{kind}");
            assert!(plain.as_sparse().is_none(), "{kind}");
        }
    }

    #[test]
    fn a_cross_is_made_from_no_field() {
        let cross = slot(r#"{"kind": "sparse", "name": "a_b", "cross": ["a", "b"], "tables": ["t"]}"#);
        assert_eq!(cross.column(), None);
        assert!(cross.as_sparse().is_some_and(|sparse| sparse.cross == ["a", "b"]));
    }

    #[test]
    fn a_slot_with_an_unknown_word_is_refused() {
        let result = serde_json::from_str::<Slot>(r#"{"kind": "weight", "name": "a", "width": 2}"#);
        assert!(result.is_err_and(|error| error.to_string().contains("unknown field `width`")));
    }
}
