//! What an incremental save must know: the last save, and which rows went since.

/// A save that an increment can build on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    pub id: String,
    pub step: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub saved: Option<Saved>,
    /// Signs evicted since `saved`.
    pub tombstones: Vec<u64>,
    /// Fences so far at which shows and clicks were decayed.
    pub decays: u32,
}
