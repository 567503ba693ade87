//! A table as it was at a fence, while training goes on.
//!
//! Rows are copied on their first write, one by one: whoever is about to write rows passes their places by
//! here, and rows that belong to the frozen state and have not been copied yet are copied then. Everything else
//! is copied by and by, in pieces. Rows made later lie behind those of the fence and are not looked at. Row
//! numbers must not change meanwhile, so nothing may be evicted before the last piece.

use std::sync::{Arc, Weak};

use crate::bucket::Bucket;
use crate::prefetch;
use crate::pull::Handle;
use crate::{Error, Table};

const AHEAD: usize = 32;

pub(crate) struct Frozen {
    /// Dead once the save is: nobody wants the rows any more.
    owner: Weak<()>,
    /// Rows that were last touched before this step are not wanted.
    since: Option<u32>,
    /// Rows of all buckets before each one, and of all buckets at the end: numbers the rows of the fence.
    starts: Vec<u64>,
    /// Rows below this number have been copied by pieces, in bucket `bucket` and before.
    copied: u64,
    bucket: usize,
    /// One bit a row: copied before it was written.
    written: Vec<u64>,
    /// Rows copied before they were written, as in a file.
    images: Vec<u8>,
}

impl Frozen {
    fn new(buckets: &[Bucket], since: Option<u32>, owner: &Arc<()>) -> Self {
        let mut starts = Vec::with_capacity(buckets.len() + 1);
        let mut rows = 0;
        starts.push(rows);
        for bucket in buckets {
            rows += u64::from(bucket.len());
            starts.push(rows);
        }
        Self {
            owner: Arc::downgrade(owner),
            since,
            written: vec![0; rows.div_ceil(64) as usize],
            starts,
            copied: 0,
            bucket: 0,
            images: Vec::new(),
        }
    }

    fn num_rows(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    fn is_copied(&self) -> bool {
        self.copied == self.num_rows()
    }

    fn is_wanted(&self, bucket: &Bucket, row: u32) -> bool {
        self.since.is_none_or(|since| bucket.step(row) >= since)
    }

    /// Copies those of the rows at `handles` that a write would spoil.
    fn keep(&mut self, buckets: &[Bucket], handles: &[Handle]) {
        for (at, handle) in handles.iter().enumerate() {
            if let Some(ahead) = handles.get(at + AHEAD)
                && !ahead.is_none()
            {
                prefetch::read(buckets[ahead.bucket()].address(ahead.row()));
            }
            if handle.is_none() {
                continue;
            }
            let number = self.starts[handle.bucket()] + u64::from(handle.row());
            let is_of_fence = number < self.starts[handle.bucket() + 1];
            if !is_of_fence || number < self.copied {
                continue;
            }
            let (word, bit) = (&mut self.written[number as usize / 64], 1 << (number % 64));
            if *word & bit != 0 {
                continue;
            }
            *word |= bit;
            let bucket = &buckets[handle.bucket()];
            if self.is_wanted(bucket, handle.row()) {
                bucket.append_row(handle.row(), &mut self.images);
            }
        }
    }

    /// Appends the images so far, and up to `max_rows` more of the rows of the fence.
    fn piece(&mut self, buckets: &[Bucket], max_rows: u64, out: &mut Vec<u8>) {
        if out.is_empty() {
            std::mem::swap(&mut self.images, out);
        } else {
            out.append(&mut self.images);
        }
        let end = self.num_rows().min(self.copied.saturating_add(max_rows.max(1)));
        while self.copied < end {
            let (start, stop) = (self.starts[self.bucket], self.starts[self.bucket + 1]);
            if self.copied == stop {
                self.bucket += 1;
                continue;
            }
            let bucket = &buckets[self.bucket];
            for number in self.copied..end.min(stop) {
                let is_written = self.written[number as usize / 64] >> (number % 64) & 1 != 0;
                let row = (number - start) as u32;
                if !is_written && self.is_wanted(bucket, row) {
                    bucket.append_row(row, out);
                }
            }
            self.copied = end.min(stop);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        8 * self.written.len() + self.images.capacity()
    }
}

impl Table {
    /// Freezes the table for a save that lives as long as `owner`.
    pub(crate) fn freeze(&mut self, since: Option<u32>, owner: &Arc<()>) -> Result<(), Error> {
        self.check_no_save()?;
        self.frozen = Some(Box::new(Frozen::new(&self.buckets, since, owner)));
        Ok(())
    }

    /// As `Frozen::piece`, for the save of `owner`; whether there is more to come.
    pub(crate) fn copy_frozen(
        &mut self,
        owner: &Arc<()>,
        max_rows: u64,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let frozen = self
            .frozen
            .as_mut()
            .filter(|frozen| std::ptr::eq(frozen.owner.as_ptr(), Arc::as_ptr(owner)))
            .ok_or_else(|| Error::state("the save belongs to another table"))?;
        frozen.piece(&self.buckets, max_rows, out);
        if frozen.is_copied() {
            // Only the save itself is waited for: for it nothing need be kept.
            frozen.written = Vec::new();
        }
        Ok(!frozen.is_copied())
    }

    /// To be called with the places of rows that are about to be written.
    pub(crate) fn keep_frozen(&mut self, handles: &[Handle]) {
        if self.frozen.is_none() {
            return;
        }
        if self.has_save_under_way()
            && let Some(frozen) = &mut self.frozen
            && !frozen.is_copied()
        {
            frozen.keep(&self.buckets, handles);
        }
    }

    /// Whether a save has been begun that is neither finished nor given up.
    pub(crate) fn has_save_under_way(&mut self) -> bool {
        if self
            .frozen
            .as_ref()
            .is_some_and(|frozen| frozen.owner.strong_count() == 0)
        {
            self.frozen = None;
        }
        self.frozen.is_some()
    }

    pub(crate) fn check_no_save(&mut self) -> Result<(), Error> {
        if self.has_save_under_way() {
            return Err(Error::state(
                "a save of the table is under way; finish it or give it up first",
            ));
        }
        Ok(())
    }

    /// Refuses what would move rows that a save has not copied yet.
    pub(crate) fn check_thawed(&mut self) -> Result<(), Error> {
        if self.has_save_under_way() && self.frozen.as_ref().is_some_and(|frozen| !frozen.is_copied()) {
            return Err(Error::state(
                "the rows of a save have not all been copied yet; rows can change places after its last piece",
            ));
        }
        Ok(())
    }
}
