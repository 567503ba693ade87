//! A made-up click log in the shape of Criteo's, with a hidden model whose best AUC is known.
//!
//! A row depends on (seed, row number) alone: any range can be written apart from the rest, by any number
//! of threads, and the bytes are the same. A training log and its held-out log are two ranges of one seed.

mod columns;
mod config;
mod format;
mod math;
mod model;
mod output;
mod random;
mod truth;
mod write;

pub use config::Config;
pub use format::Format;
pub use write::{Progress, Report, write};

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("synth: {field} is {value}; allowed: {allowed}")]
    Config {
        field: &'static str,
        value: String,
        allowed: &'static str,
    },
    #[error("synth: configuration is not valid JSON: {reason}")]
    Json { reason: String },
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("synth: cancelled after {rows} rows; nothing was written")]
    Cancelled { rows: u64 },
}

impl Error {
    fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
