//! Why a server does not do what it was asked.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Table(#[from] clickmill_table::Error),
    #[error(transparent)]
    Metrics(#[from] clickmill_metrics::Error),
    #[error(transparent)]
    Net(#[from] clickmill_net::Error),
    #[error(transparent)]
    Wire(#[from] clickmill_wire::Error),
    #[error(transparent)]
    Coordinator(#[from] clickmill_coordinator::Error),
    /// The asker belongs to another life of the cluster: it must join again.
    #[error("this server is in epoch {own}, not in epoch {asked}; join again")]
    Epoch { own: u64, asked: u64 },
    /// Declared dead, finally.
    #[error("trainer {incarnation:x} was declared dead and its work given to others; join again")]
    Dead { incarnation: u64 },
    #[error("{reason}")]
    Protocol { reason: String },
    #[error("{reason}")]
    NotReady { reason: String },
    #[error("{}: {reason}", file.display())]
    File {
        file: std::path::PathBuf,
        reason: String,
    },
}

impl Error {
    pub(crate) fn protocol(reason: impl Into<String>) -> Self {
        Self::Protocol {
            reason: reason.into(),
        }
    }

    /// A file of ours is damaged or missing.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Table(clickmill_table::Error::Io { source, .. }) => {
                source.kind() == std::io::ErrorKind::NotFound
            }
            Self::Table(clickmill_table::Error::Format { .. }) | Self::File { .. } => true,
            Self::Table(_)
            | Self::Metrics(_)
            | Self::Net(_)
            | Self::Wire(_)
            | Self::Coordinator(_)
            | Self::Epoch { .. }
            | Self::Dead { .. }
            | Self::Protocol { .. }
            | Self::NotReady { .. } => false,
        }
    }

    /// For programs: what a refusal is about.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Epoch { .. } | Self::Coordinator(_) => "epoch",
            Self::Dead { .. } => "dead",
            Self::NotReady { .. } => "not_ready",
            Self::Protocol { .. } | Self::Wire(_) => "protocol",
            Self::Table(clickmill_table::Error::NotFinite { .. }) => "diverged",
            Self::Table(_) | Self::Metrics(_) | Self::Net(_) | Self::File { .. } => "failed",
        }
    }
}
