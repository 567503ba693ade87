//! What can go wrong with a table.

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A configuration that cannot mean anything.
    #[error("{place}: {reason}")]
    Config { place: String, reason: String },
    /// An argument whose shape or value does not fit the call.
    #[error("{reason}")]
    Argument { reason: String },
    /// A call that does not fit the state of the table.
    #[error("{reason}")]
    State { reason: String },
    /// A file that is damaged, of another version, or not of this chain.
    #[error("{}: at byte {offset}: expected {expected}, found {found}", file.display())]
    Format {
        file: PathBuf,
        offset: u64,
        expected: String,
        found: String,
    },
    #[error("{}: {source}", file.display())]
    Io { file: PathBuf, source: std::io::Error },
    /// Training has broken a row.
    #[error("table `{table}`: the row of sign {sign} is not finite: {what} is {value}")]
    NotFinite {
        table: String,
        sign: u64,
        what: String,
        value: f32,
    },
    #[error("cannot get {bytes} bytes of memory for rows")]
    Memory { bytes: usize },
}

impl Error {
    pub(crate) fn config(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Config {
            place: place.into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn argument(reason: impl Into<String>) -> Self {
        Self::Argument {
            reason: reason.into(),
        }
    }

    pub(crate) fn state(reason: impl Into<String>) -> Self {
        Self::State {
            reason: reason.into(),
        }
    }

    pub(crate) fn io(file: &Path, source: std::io::Error) -> Self {
        Self::Io {
            file: file.to_owned(),
            source,
        }
    }
}
