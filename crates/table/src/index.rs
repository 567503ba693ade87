//! The index of one bucket: from a hash to row numbers.
//!
//! Open addressing by cache line: a group is 16 slots of 4 bytes, each a tag of the hash above the row number
//! plus one; 0 is empty. An index of few rows needs few bits to number them and leaves the rest to the tag, so
//! that a tag which fits is the right one nearly always. A search reads the home group and goes on to the next
//! one only while groups are full. Nothing is ever deleted: eviction rebuilds the index. The number of groups need not be
//! a power of two, so that growth by half keeps memory close to what is needed.

use crate::Error;
use crate::region::Region;

/// Rows that a bucket can number.
pub(crate) const MAX_ROWS: u32 = (1 << 24) - 2;

const SLOTS: usize = 16;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(crate) struct Group([u32; SLOTS]);

/// What the index needs of a hash: the home position, from bits below those of the bucket, and the bits that
/// tags are made of.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    position: u32,
    low: u32,
}

impl Key {
    /// `hash` is `mix(sign)`, whose top `bucket_bits` bits chose the bucket.
    #[inline(always)]
    pub(crate) fn new(hash: u64, bucket_bits: u32) -> Self {
        Self {
            position: ((hash << bucket_bits) >> 32) as u32,
            low: hash as u32,
        }
    }
}

impl Group {
    /// Bit i is set where the bits of slot i under `mask` are `wanted`.
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "loads of whole vectors")]
    #[inline(always)]
    fn equal(&self, mask: u32, wanted: u32) -> u32 {
        use std::arch::x86_64::{
            __m128i, _mm_and_si128, _mm_cmpeq_epi32, _mm_load_si128, _mm_movemask_epi8, _mm_packs_epi16,
            _mm_packs_epi32, _mm_set1_epi32,
        };
        let base = std::ptr::from_ref(self).cast::<__m128i>();
        // SAFETY: SSE2 is part of x86-64; the four loads cover exactly the aligned group.
        unsafe {
            let mask = _mm_set1_epi32(mask.cast_signed());
            let wanted = _mm_set1_epi32(wanted.cast_signed());
            let [a, b, c, d] = [0, 1, 2, 3]
                .map(|at| _mm_cmpeq_epi32(_mm_and_si128(_mm_load_si128(base.add(at)), mask), wanted));
            let lanes = _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
            _mm_movemask_epi8(lanes).cast_unsigned()
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn equal(&self, mask: u32, wanted: u32) -> u32 {
        let slots = self.0.iter().enumerate();
        slots.fold(0, |bits, (at, &slot)| {
            bits | u32::from(slot & mask == wanted) << at
        })
    }

    #[inline(always)]
    fn empties(&self) -> u32 {
        self.equal(u32::MAX, 0)
    }

    #[inline(always)]
    fn slot(&self, at: u32) -> u32 {
        self.0[at as usize % SLOTS]
    }
}

/// An index is looked into at random all the time: huge pages early.
const HUGE_INDEX_FROM: usize = 1 << 20;

pub(crate) struct Index {
    memory: Region,
    num_groups: usize,
    /// Bits of a slot that hold the tag; those below number the row.
    tag_mask: u32,
}

impl Index {
    /// An index for `rows` rows that may grow to its full load before it must be rebuilt.
    pub(crate) fn with_capacity(rows: usize) -> Result<Self, Error> {
        let num_groups = (rows * 8).div_ceil(SLOTS * 7).max(1);
        let mut memory = Region::new(HUGE_INDEX_FROM);
        memory.grow_exactly(num_groups * size_of::<Group>())?;
        // Rounding leaves room: take it.
        let num_groups = memory.bytes() / size_of::<Group>();
        let last_number = capacity(num_groups).min(MAX_ROWS as usize) as u32;
        Ok(Self {
            memory,
            num_groups,
            tag_mask: u32::MAX << (u32::BITS - last_number.leading_zeros()),
        })
    }

    pub(crate) fn capacity(&self) -> usize {
        capacity(self.num_groups)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    #[inline(always)]
    #[expect(unsafe_code, reason = "the groups lie in a region")]
    fn groups(&self) -> &[Group] {
        // SAFETY: the region holds `num_groups` groups, zero from the start, aligned to a page.
        unsafe { std::slice::from_raw_parts(self.memory.base().cast(), self.num_groups) }
    }

    #[expect(unsafe_code, reason = "the groups lie in a region")]
    fn groups_mut(&mut self) -> &mut [Group] {
        // SAFETY: as above; `&mut self` keeps others out.
        unsafe { std::slice::from_raw_parts_mut(self.memory.base().cast(), self.num_groups) }
    }

    #[inline(always)]
    fn home(&self, key: Key) -> usize {
        ((u64::from(key.position) * self.num_groups as u64) >> 32) as usize
    }

    /// Never 0: an empty slot fits no tag.
    #[inline(always)]
    fn tag(&self, key: Key) -> u32 {
        let tag = key.low & self.tag_mask;
        if tag == 0 {
            self.tag_mask & self.tag_mask.wrapping_neg()
        } else {
            tag
        }
    }

    #[inline(always)]
    fn row(&self, slot: u32) -> u32 {
        (slot & !self.tag_mask) - 1
    }

    /// Where the group lies that a search for `key` reads first.
    #[inline(always)]
    pub(crate) fn first(&self, key: Key) -> *const Group {
        &raw const self.groups()[self.home(key)]
    }

    /// The first row of the home group whose tag fits: nearly always the right one.
    #[inline(always)]
    pub(crate) fn candidate(&self, key: Key) -> Option<u32> {
        let group = &self.groups()[self.home(key)];
        let matches = group.equal(self.tag_mask, self.tag(key));
        (matches != 0).then(|| self.row(group.slot(matches.trailing_zeros())))
    }

    /// The row for which `is_row` holds, among those whose tag fits.
    pub(crate) fn find(&self, key: Key, is_row: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = self.tag(key);
        let mut at = self.home(key);
        loop {
            let group = &self.groups()[at];
            let mut matches = group.equal(self.tag_mask, tag);
            while matches != 0 {
                let row = self.row(group.slot(matches.trailing_zeros()));
                if is_row(row) {
                    return Some(row);
                }
                matches &= matches - 1;
            }
            if group.empties() != 0 {
                return None;
            }
            at = if at + 1 == self.num_groups { 0 } else { at + 1 };
        }
    }

    /// The caller keeps the number of rows within `capacity`, so that an empty slot exists.
    pub(crate) fn insert(&mut self, key: Key, row: u32) {
        let slot = self.tag(key) | (row + 1);
        let mut at = self.home(key);
        loop {
            let empties = self.groups()[at].empties();
            if empties != 0 {
                self.groups_mut()[at].0[empties.trailing_zeros() as usize] = slot;
                return;
            }
            at = if at + 1 == self.num_groups { 0 } else { at + 1 };
        }
    }
}

/// Rows of an index at full load: seven eighths of its slots.
fn capacity(num_groups: usize) -> usize {
    num_groups * SLOTS * 7 / 8
}
