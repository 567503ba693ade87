//! What can be wrong with the bytes of a peer.

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("not a frame of clickmill: it begins with {found:08x}")]
    Magic { found: u32 },
    #[error("a frame of {found} bytes; at most {allowed} are taken")]
    Length { found: u64, allowed: u64 },
    #[error("a frame is damaged: checksum {found:08x}, expected {expected:08x}")]
    Checksum { expected: u32, found: u32 },
    #[error("a frame ends in the middle of {what}")]
    Short { what: &'static str },
    #[error("{left} bytes are left over at the end of a frame")]
    LeftOver { left: usize },
    #[error("{length} bytes are said to lie in shared memory, and do not")]
    NotShared { length: u32 },
    #[error("{what} is {found}, which means nothing")]
    Value { what: &'static str, found: u64 },
    #[error("a message cannot be read: {reason}")]
    Json { reason: String },
}

impl Error {
    pub(crate) fn value(what: &'static str, found: u64) -> Self {
        Self::Value { what, found }
    }
}
