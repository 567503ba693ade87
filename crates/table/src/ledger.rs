//! What an incremental save must know: the last save, and which rows went since.

use std::sync::Arc;

/// A save that an increment can build on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    pub id: String,
    pub step: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub saved: Option<Saved>,
    /// Signs evicted since `saved`; shared with a save that is being written.
    pub tombstones: Arc<Vec<u64>>,
    /// Fences so far at which shows and clicks were decayed.
    pub decays: u32,
    /// Rises whenever `saved` is another: a save that began before must not become the base.
    pub era: u64,
}

impl Ledger {
    /// Increments build on `saved` from now on; it has the first `num_tombstones`.
    pub(crate) fn settle(&mut self, saved: Saved, num_tombstones: usize) {
        self.saved = Some(saved);
        Arc::make_mut(&mut self.tombstones).drain(..num_tombstones);
        self.era += 1;
    }
    /// There is no save any more that the table could be made of again: the next one must be full.
    pub(crate) fn forget(&mut self) {
        self.saved = None;
        self.tombstones = Arc::default();
        self.era += 1;
    }
}
