//! Why a monitor or a metric cannot be had.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: io::Error },
    #[error(
        "{address} can be reached from other machines; give a token, or say that it is meant: --insecure"
    )]
    Open { address: String },
    #[error("the token has {found} characters; use {allowed} or more, drawn at random")]
    Token { found: usize, allowed: usize },
    #[error("metric `{name}`: {reason}")]
    Metric { name: String, reason: String },
}

impl Error {
    pub(crate) fn metric(name: &str, reason: impl Into<String>) -> Self {
        Self::Metric {
            name: name.to_owned(),
            reason: reason.into(),
        }
    }
}
