//! What can be wrong with samples, or with the words that describe them.

use std::fmt::Write as _;
use std::path::Path;

use crate::bad::BadLine;

/// Clone, because a reader that has failed gives the same answer however often it is asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("{place}: {reason}")]
    Config { place: String, reason: String },
    #[error(transparent)]
    Schema(std::sync::Arc<clickmill_types::Error>),
    #[error("slot `{slot}`: {reason}")]
    Slot { slot: String, reason: String },
    /// A slot whose column has not occurred in a whole pass; told behind its last sample.
    #[error("slot `{slot}`: {reason} (`require_slots: false` turns this check off)")]
    AbsentSlot { slot: String, reason: String },
    #[error("{path}: {reason}")]
    Io { path: String, reason: String },
    /// A file that should have come while others were read.
    #[error("{path}: {reason}")]
    Arrival { path: String, reason: String },
    #[error("{path}: damaged at byte {offset} of its decompressed text: {reason}")]
    Compressed {
        path: String,
        offset: u64,
        reason: String,
    },
    #[error("{path}: line 1: {reason}")]
    Header { path: String, reason: String },
    #[error("{}", bad_lines(*count, *limit, first))]
    BadLines {
        count: u64,
        limit: u64,
        first: Vec<BadLine>,
    },
    #[error("{reason}")]
    NoSamples { reason: String },
    #[error("record {record}: {}{reason}", key.as_ref().map(|key| format!("key `{key}`: ")).unwrap_or_default())]
    Record {
        record: u64,
        key: Option<String>,
        reason: String,
    },
    #[error("reader position: {reason}")]
    Position { reason: String },
    #[error("a reader thread stopped: {reason}")]
    Thread { reason: String },
}

impl Error {
    pub(crate) fn config(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Config {
            place: place.into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn slot(slot: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Slot {
            slot: slot.into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        Self::Io {
            path: path.display().to_string(),
            reason: error.to_string(),
        }
    }
}

impl From<clickmill_types::Error> for Error {
    fn from(error: clickmill_types::Error) -> Self {
        Self::Schema(std::sync::Arc::new(error))
    }
}

fn bad_lines(count: u64, limit: u64, first: &[BadLine]) -> String {
    let mut text = match first {
        [only] if count == 1 => only.to_string(),
        _ => {
            let mut text = format!("{count} bad lines, max_bad_lines is {limit}; the first:");
            for line in first {
                let _ = write!(text, "\n  {line}");
            }
            text
        }
    };
    if limit == 0 && count == 1 {
        text.push_str(" (max_bad_lines is 0)");
    }
    text
}
