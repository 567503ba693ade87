//! Tables, as far as a schema speaks of them.

use serde::{Deserialize, Serialize};

/// Widest row of a table.
pub const MAX_DIM: u32 = 4_096;

/// What a reader of rows must know of a table; how it is trained is no part of the schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    pub name: String,
    /// Width of a row, optimizer state not counted.
    pub dim: u32,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub init: Init,
}

/// Distribution of initial rows; every element is a pure function of (seed, sign, position).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Init {
    Zeros,
    Uniform { scale: f32 },
    Normal { std: f32 },
}

impl Default for Init {
    fn default() -> Self {
        Self::Uniform { scale: 0.01 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_start_small_and_random_where_a_table_does_not_say() {
        let table: TableSpec = serde_json::from_str(r#"{"name": "t", "dim": 8}"#).expect("a table");
        assert_eq!((table.seed, table.init), (0, Init::Uniform { scale: 0.01 }));
    }
}
