//! Dense slots: how a raw field becomes floats.

use serde::{Deserialize, Serialize};

/// A slot of `width` floats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenseSlot {
    pub name: String,
    #[serde(default)]
    pub column: Option<String>,
    #[serde(default = "super::slot::one")]
    pub width: u32,
    /// Text between the elements where one field holds them all; absent where the field repeats instead.
    #[serde(default)]
    pub separator: Option<String>,
    /// Stands for an empty or absent value, after the transform.
    #[serde(default)]
    pub default: f32,
    #[serde(default)]
    pub transform: DenseTransform,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DenseTransform {
    #[default]
    Identity,
    /// (x - min) / (max - min), not clipped; one pair, or one for each element of the slot.
    MinMax { min: Vec<f32>, max: Vec<f32> },
    /// sign(x) * ln(1 + |x|).
    Log1p,
    /// (x - mean) / std, both measured on the data; empty until they have been.
    Standardise {
        #[serde(default)]
        mean: Vec<f32>,
        #[serde(default)]
        std: Vec<f32>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_says_little_is_one_number_as_it_is() {
        let slot: DenseSlot = serde_json::from_str(r#"{"name": "age"}"#).expect("a dense slot");
        assert_eq!((slot.width, slot.default), (1, 0.0));
        assert_eq!(slot.transform, DenseTransform::Identity);
    }

    #[test]
    fn standardise_may_wait_for_its_numbers() {
        let transform = serde_json::from_str(r#"{"kind": "standardise"}"#);
        let (mean, std) = (Vec::new(), Vec::new());
        assert_eq!(transform.ok(), Some(DenseTransform::Standardise { mean, std }));
    }
}
