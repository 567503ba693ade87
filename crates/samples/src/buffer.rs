//! A byte buffer that is cleared for free: its bytes stay written, only their number changes.

use std::ops::Deref;

#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    length: usize,
}

impl Buffer {
    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub(crate) fn extend_from_slice(&mut self, more: &[u8]) {
        let start = self.length;
        self.room(start + more.len()).copy_from_slice(more);
        self.length += more.len();
    }

    /// What lies between the length and `target`, to be written to; `advance` makes it count.
    pub(crate) fn room(&mut self, target: usize) -> &mut [u8] {
        if self.bytes.len() < target {
            self.bytes.resize(target, 0);
        }
        &mut self.bytes[self.length..target]
    }

    pub(crate) fn advance(&mut self, count: usize) {
        self.length += count;
        debug_assert!(self.length <= self.bytes.len());
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
