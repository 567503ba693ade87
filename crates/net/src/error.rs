//! What can go wrong between two processes.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The code of a refusal.
pub(crate) const ENCRYPTION: &str = "encryption";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot connect to {peer}: {source}")]
    Connect { peer: String, source: io::Error },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: io::Error },
    #[error(
        "{address} can be reached from other machines; give a token, or say that it is meant: --insecure"
    )]
    Open { address: String },
    #[error("connection to {peer}: {source}")]
    Io { peer: String, source: io::Error },
    #[error("{peer} has closed the connection")]
    Closed { peer: String },
    #[error("{peer} has not answered for {:.1} s", waited.as_secs_f64())]
    Deadline { peer: String, waited: Duration },
    #[error("{peer}: {source}")]
    Wire {
        peer: String,
        source: clickmill_wire::Error,
    },
    /// The peer understood, and will not.
    #[error("{peer}: {reason}")]
    Refused {
        peer: String,
        code: String,
        reason: String,
    },
    #[error("{peer} speaks protocol {found}, this process {expected}; run the same version everywhere")]
    Version { peer: String, expected: u32, found: u32 },
    #[error("{peer} {reason}")]
    Token { peer: String, reason: &'static str },
    /// One of the two sides encrypts, the other does not.
    #[error("{peer} {reason}")]
    Encryption { peer: String, reason: &'static str },
    #[error("{}: {reason}", file.display())]
    File { file: PathBuf, reason: String },
    #[error("TLS with {peer}: {source}")]
    Tls { peer: String, source: rustls::Error },
    #[error("this process is shutting down")]
    Stopped,
}

impl Error {
    /// Whether the peer has refused since one of the two sides encrypts and the other does not: waiting changes nothing.
    pub fn is_about_encryption(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == ENCRYPTION)
    }

    /// Whether the same request may succeed on a new connection.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Io { .. } | Self::Closed { .. } | Self::Wire { .. } => true,
            Self::Listen { .. }
            | Self::Open { .. }
            | Self::Deadline { .. }
            | Self::Refused { .. }
            | Self::Version { .. }
            | Self::Token { .. }
            | Self::Encryption { .. }
            | Self::File { .. }
            | Self::Tls { .. }
            | Self::Stopped => false,
        }
    }
}
