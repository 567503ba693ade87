//! Why a step did not succeed.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Net(#[from] clickmill_net::Error),
    #[error(transparent)]
    Table(#[from] clickmill_table::Error),
    #[error("{server}: {source}")]
    Wire {
        server: String,
        source: clickmill_wire::Error,
    },
    #[error("{server}: {reason}")]
    Answer { server: String, reason: String },
    /// The answer never came; `waiting` is what the server said last.
    #[error("{server} has not answered for {seconds:.0} s: {waiting}")]
    Waiting {
        server: String,
        seconds: f64,
        waiting: String,
    },
}

impl Error {
    /// The refusal's code, where a server has refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Net(clickmill_net::Error::Refused { code, .. }) => Some(code),
            Self::Net(_)
            | Self::Table(_)
            | Self::Wire { .. }
            | Self::Answer { .. }
            | Self::Waiting { .. } => None,
        }
    }
}
