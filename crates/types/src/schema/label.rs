//! Label slots: how a raw field becomes what is learnt.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelSlot {
    pub name: String,
    #[serde(default)]
    pub column: Option<String>,
    #[serde(default)]
    pub transform: LabelTransform,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LabelTransform {
    #[default]
    Identity,
    /// 1 at or above the threshold, else 0.
    Threshold { at: f32 },
    /// x * scale + shift.
    Affine { scale: f32, shift: f32 },
    /// 1 where the raw text is one of the values, else 0: for labels that are words.
    OneOf { values: Vec<String> },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transform_has_its_word() {
        for (text, transform) in [
            (r#"{"kind": "identity"}"#, LabelTransform::Identity),
            (
                r#"{"kind": "threshold", "at": 4.0}"#,
                LabelTransform::Threshold { at: 4.0 },
            ),
            (
                r#"{"kind": "affine", "scale": 2.0, "shift": -1.0}"#,
                LabelTransform::Affine {
                    scale: 2.0,
                    shift: -1.0,
                },
            ),
            (
                r#"{"kind": "one_of", "values": ["buy"]}"#,
                LabelTransform::OneOf {
                    values: vec!["buy".to_owned()],
                },
            ),
        ] {
            assert_eq!(serde_json::from_str(text).ok(), Some(transform), "{text}");
        }
    }
}
