//! One bucket: an index and the rows it numbers.
//!
//! Rows lie one behind the other in a [`Region`], without holes: a new row goes to the end, eviction moves
//! the last row into the hole. Row numbers are therefore stable between evictions, addresses only until
//! the next insertion.

#![expect(unsafe_code, reason = "rows are bytes of a computed layout")]
#![expect(
    clippy::cast_ptr_alignment,
    reason = "regions are aligned to 64, strides to 8, and the parts of a row to their own size"
)]

use clickmill_types::sign::mix;

use crate::Error;
use crate::index::{Index, Key, MAX_ROWS};
use crate::layout::{HEAD_BYTES, Layout};
use crate::region::Region;

/// The last huge page of a bucket is half empty on average: little for rows of this size.
const HUGE_ROWS_FROM: usize = 4 << 20;

pub(crate) struct Bucket {
    index: Index,
    rows: Region,
    len: u32,
    /// Rows that the region has room for.
    room: u32,
    layout: Layout,
    /// Bits of a hash that chose this bucket.
    spent_bits: u32,
}

impl Bucket {
    /// `number` of the bucket spreads the moments at which the buckets of a table grow their index: they
    /// fill alike, and would otherwise all pause the same batch.
    pub(crate) fn new(layout: Layout, bucket_bits: u32, number: usize) -> Result<Self, Error> {
        let spread = number * 64 / (1 << bucket_bits);
        Ok(Self {
            index: Index::with_capacity(64 + spread / 2)?,
            rows: Region::new(HUGE_ROWS_FROM),
            len: 0,
            room: 0,
            layout,
            spent_bits: bucket_bits,
        })
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Bytes of rows and index, by our own account.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.resident(self.len as usize * self.layout.stride) + self.index.bytes()
    }

    #[inline(always)]
    pub(crate) fn key(&self, hash: u64) -> Key {
        Key::new(hash, self.spent_bits)
    }

    #[inline(always)]
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Where a row lies; for prefetching, so any number is allowed.
    #[inline(always)]
    pub(crate) fn address(&self, row: u32) -> *const u8 {
        self.rows.base().wrapping_add(row as usize * self.layout.stride)
    }

    #[inline(always)]
    fn start(&self, row: u32) -> *mut u8 {
        assert!(
            row < self.len,
            "row numbers come from the index or from a lookup of this generation"
        );
        self.rows.base().wrapping_add(row as usize * self.layout.stride)
    }

    #[inline(always)]
    pub(crate) fn sign(&self, row: u32) -> u64 {
        // SAFETY: `start` lies within the region, aligned to 8 as base and stride are.
        unsafe { self.start(row).cast::<u64>().read() }
    }

    /// Last step in which the row was created or updated.
    #[inline(always)]
    pub(crate) fn step(&self, row: u32) -> u32 {
        // SAFETY: as in `sign`; a row begins with sign and step.
        unsafe { self.start(row).add(8).cast::<u32>().read() }
    }

    /// Statistics, state and weights.
    #[inline(always)]
    pub(crate) fn floats(&self, row: u32) -> &[f32] {
        // SAFETY: as in `sign`; the floats follow the head and end before the next row; `&self` keeps
        // writers out.
        unsafe {
            let start = self.start(row).add(HEAD_BYTES).cast::<f32>();
            std::slice::from_raw_parts(start, self.layout.floats())
        }
    }

    #[inline(always)]
    pub(crate) fn row_mut(&mut self, row: u32) -> (&mut u32, &mut [f32]) {
        // SAFETY: as in `floats`; step and floats do not overlap, `&mut self` keeps others out.
        unsafe {
            let start = self.start(row);
            let floats = start.add(HEAD_BYTES).cast::<f32>();
            (
                &mut *start.add(8).cast::<u32>(),
                std::slice::from_raw_parts_mut(floats, self.layout.floats()),
            )
        }
    }

    /// Sign, step and floats as little-endian bytes.
    #[cfg(target_endian = "little")]
    pub(crate) fn append_row(&self, row: u32, bytes: &mut Vec<u8>) {
        // SAFETY: as in `floats`; the row begins with these bytes in this order, all of them written.
        let row = unsafe { std::slice::from_raw_parts(self.start(row), self.layout.row_bytes()) };
        bytes.extend_from_slice(row);
    }

    #[cfg(not(target_endian = "little"))]
    pub(crate) fn append_row(&self, row: u32, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.sign(row).to_le_bytes());
        bytes.extend_from_slice(&self.step(row).to_le_bytes());
        for float in self.floats(row) {
            bytes.extend_from_slice(&float.to_le_bytes());
        }
    }

    pub(crate) fn find(&self, sign: u64, hash: u64) -> Option<u32> {
        self.index.find(self.key(hash), |row| self.sign(row) == sign)
    }

    /// Adds a row for a sign that has none; its floats are zero.
    pub(crate) fn insert(&mut self, sign: u64, hash: u64, step: u32) -> Result<u32, Error> {
        if self.len >= MAX_ROWS {
            return Err(Error::state(format!(
                "a bucket is full with {MAX_ROWS} rows; raise bucket_bits, or evict at a fence, which splits full buckets"
            )));
        }
        if self.len == self.room {
            let stride = self.layout.stride;
            self.rows.grow((self.len as usize + 1) * stride)?;
            self.room = u32::try_from(self.rows.bytes() / stride).unwrap_or(u32::MAX);
        }
        if self.len as usize >= self.index.capacity() {
            self.rebuild(self.index.capacity() * 3 / 2)?;
        }
        let row = self.len;
        self.len += 1;
        let key = self.key(hash);
        self.index.insert(key, row);
        // SAFETY: `row` is below `room`; the whole stride lies within the region.
        unsafe {
            let start = self.start(row);
            start.write_bytes(0, self.layout.stride);
            start.cast::<u64>().write(sign);
            start.add(8).cast::<u32>().write(step);
        }
        Ok(row)
    }

    fn rebuild(&mut self, capacity: usize) -> Result<(), Error> {
        let mut index = Index::with_capacity(capacity.max(64))?;
        for row in 0..self.len {
            index.insert(self.key(mix(self.sign(row))), row);
        }
        self.index = index;
        Ok(())
    }

    /// Removes the rows for which `goes` holds and gives memory back. Row numbers change.
    pub(crate) fn remove(&mut self, mut goes: impl FnMut(&Self, u32) -> bool) -> Result<u32, Error> {
        let before = self.len;
        let mut row = 0;
        while row < self.len {
            if goes(self, row) {
                let last = self.len - 1;
                if row != last {
                    // SAFETY: both rows lie within the region and are different.
                    unsafe {
                        let (from, to) = (self.start(last), self.start(row));
                        std::ptr::copy_nonoverlapping(from, to, self.layout.stride);
                    }
                }
                self.len = last;
            } else {
                row += 1;
            }
        }
        let removed = before - self.len;
        if removed > 0 {
            let stride = self.layout.stride;
            self.rows.shrink(self.len as usize * stride)?;
            self.room = u32::try_from(self.rows.bytes() / stride).unwrap_or(u32::MAX);
            // Room for a quarter more: a bucket that has just lost rows will see new ones.
            self.rebuild((self.len as usize + self.len as usize / 4).max(64))?;
        }
        Ok(removed)
    }
}
