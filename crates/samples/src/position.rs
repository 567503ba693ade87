//! Where a reader stands: small, exact, and text.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::bad::BadLines;

/// State after the last sample of a batch.
///
/// Without shuffle `unit`, `offset` and `line` are the place of the next line. With a shuffle they are the
/// place where the current window starts, and `emitted` of its rows have been given out: the window is
/// read again and its permutation, a function of seed, pass and window, is the same. All counters are
/// those of that place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Digest of files, ranges, shuffle and pass: a position means nothing under others.
    pub fingerprint: String,
    /// Index in the (permuted) order of units.
    pub unit: u64,
    /// Byte in the decompressed text of the unit's file.
    pub offset: u64,
    /// Lines of the unit before `offset`.
    pub line: u64,
    pub window: u64,
    pub emitted: u64,
    /// Lines of all units read before, bad ones included.
    pub lines: u64,
    /// Good rows before.
    pub rows: u64,
    pub bad: BadLines,
    /// Per column that the schema uses: whether it has occurred.
    pub seen: Vec<bool>,
}

impl Position {
    pub fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| Error::Position {
            reason: format!("not valid JSON: {error}"),
        })
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a position holds only strings and numbers")
    }
}
