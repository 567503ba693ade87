//! Whether long frames of a connection take the way through memory.

use clickmill_wire::Lent;

use crate::memory::{MAX_SHARED_BYTES, MIN_SHARED_BYTES, Memory, Offer};

/// Among the features of a peer that finds memory which it is offered.
pub(crate) const FEATURE: &str = "shared_memory";

/// The memory of one connection, and what it will have to hold.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    memory: Option<Memory>,
    may_offer: bool,
    /// Of all frames that could have gone through memory.
    longest: usize,
}

impl Sharing {
    pub(crate) fn begin(&mut self) {
        self.may_offer = true;
    }

    /// A frame has come, from either side.
    pub(crate) fn note(&mut self, length: usize) {
        if length <= MAX_SHARED_BYTES {
            self.longest = self.longest.max(length);
        }
    }

    /// Memory to offer before a frame of `length` bytes goes out; none where there is enough, or can be none.
    pub(crate) fn offer(&mut self, length: usize) -> Option<(Memory, Offer)> {
        if !self.may_offer || length < MIN_SHARED_BYTES {
            return None;
        }
        self.note(length);
        if self.memory.as_ref().map_or(0, Memory::capacity) >= self.longest {
            return None;
        }
        let made = Memory::make(self.longest).ok();
        self.may_offer = made.is_some();
        made
    }

    /// What the peer has made of an offer.
    pub(crate) fn answered(&mut self, mut memory: Memory, is_found: bool) {
        memory.forget_file();
        self.may_offer = is_found;
        self.memory = is_found.then_some(memory);
    }

    /// Takes an offer of the peer; false where it leads to nothing.
    pub(crate) fn find(&mut self, offer: &Offer) -> bool {
        self.memory = Memory::find(offer).ok();
        self.memory.is_some()
    }

    /// Memory for the next frame of this side.
    pub(crate) fn lend(&self) -> Option<Box<dyn Lent>> {
        let room = self.memory.as_ref()?.lend()?;
        Some(Box::new(room))
    }

    /// Leaves a frame, header and payload, for the peer; false: it has to go through the socket.
    pub(crate) fn put(&self, frame: &[u8]) -> bool {
        let Some(memory) = &self.memory else { return false };
        memory.leave(frame) || frame.len() >= MIN_SHARED_BYTES && memory.put(frame)
    }

    /// The frame that the peer has left; none: there is none of this length.
    pub(crate) fn take(&self, length: usize) -> Option<Box<dyn Lent>> {
        let taken = self.memory.as_ref()?.take(length)?;
        Some(Box::new(taken))
    }
}
