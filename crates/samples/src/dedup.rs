//! Deduplication of signs: each occurrence gets the position of its sign among the unique ones.
//!
//! Open addressing over entries that carry the generation in which they were written, so that a new batch
//! starts with an empty table without touching it. The table is kept between batches.

use clickmill_types::sign::mix;

#[derive(Clone, Copy, Default)]
#[repr(align(16))]
struct Entry {
    sign: u64,
    index: u32,
    generation: u32,
}

/// Signs whose entries are fetched ahead of their probe.
const AHEAD: usize = 16;

pub struct Dedup {
    entries: Vec<Entry>,
    generation: u32,
    /// `64 - log2(entries)`: probe positions are the top bits of the mixed sign.
    shift: u32,
}

impl Default for Dedup {
    fn default() -> Self {
        Self::new()
    }
}

impl Dedup {
    pub fn new() -> Self {
        const BITS: u32 = 10;
        Self {
            entries: vec![Entry::default(); 1 << BITS],
            generation: 1,
            shift: 64 - BITS,
        }
    }

    /// Forgets all signs; what follows belongs to a new batch.
    pub fn start(&mut self) {
        if self.generation == u32::MAX {
            self.entries.fill(Entry::default());
            self.generation = 0;
        }
        self.generation += 1;
    }

    /// Appends to `inverse` one position for each sign, and to `unique` the signs not seen since `start`.
    pub fn push(&mut self, signs: &[u64], unique: &mut Vec<u64>, inverse: &mut Vec<u32>) {
        inverse.reserve(signs.len());
        for chunk in signs.chunks(AHEAD) {
            // At most half full, so that probes stay short; room for a whole chunk of new signs.
            if (unique.len() + AHEAD) * 2 > self.entries.len() {
                self.grow(unique);
            }
            let mut places = [0usize; AHEAD];
            for (place, &sign) in places.iter_mut().zip(chunk) {
                *place = (mix(sign) >> self.shift) as usize;
                prefetch(&self.entries, *place);
            }
            for (&place, &sign) in places.iter().zip(chunk) {
                inverse.push(self.find(place, sign, unique));
            }
        }
    }

    #[inline]
    fn find(&mut self, mut place: usize, sign: u64, unique: &mut Vec<u64>) -> u32 {
        let mask = self.entries.len() - 1;
        loop {
            let entry = &mut self.entries[place & mask];
            if entry.generation != self.generation {
                let index = unique.len() as u32;
                *entry = Entry {
                    sign,
                    index,
                    generation: self.generation,
                };
                unique.push(sign);
                return index;
            }
            if entry.sign == sign {
                return entry.index;
            }
            place += 1;
        }
    }

    #[cold]
    fn grow(&mut self, unique: &[u64]) {
        let size = self.entries.len() * 4;
        self.entries = vec![Entry::default(); size];
        self.shift = 64 - size.trailing_zeros();
        self.generation = 1;
        let mask = size - 1;
        for (index, &sign) in unique.iter().enumerate() {
            let mut place = (mix(sign) >> self.shift) as usize;
            while self.entries[place & mask].generation == 1 {
                place += 1;
            }
            self.entries[place & mask] = Entry {
                sign,
                index: index as u32,
                generation: 1,
            };
        }
    }
}

#[inline]
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the only portable-in-std prefetch is an intrinsic")
)]
fn prefetch(entries: &[Entry], place: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults, whatever the address; this one is inside the slice anyway.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(entries.as_ptr().wrapping_add(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (entries, place);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_signs_stand_in_order_of_first_occurrence() {
        let mut dedup = Dedup::new();
        let (mut unique, mut inverse) = (Vec::new(), Vec::new());
        dedup.start();
        dedup.push(&[7, 0, 7, u64::MAX, 0], &mut unique, &mut inverse);
        assert_eq!(unique, [7, 0, u64::MAX]);
        assert_eq!(inverse, [0, 1, 0, 2, 1]);
    }

    #[test]
    fn growth_in_the_middle_of_a_batch_keeps_positions() {
        let mut dedup = Dedup::new();
        let (mut unique, mut inverse) = (Vec::new(), Vec::new());
        let signs: Vec<u64> = (0..50_000).map(|i| i % 20_011).collect();
        dedup.start();
        for part in signs.chunks(777) {
            dedup.push(part, &mut unique, &mut inverse);
        }
        assert_eq!(unique.len(), 20_011);
        let back: Vec<u64> = inverse.iter().map(|&i| unique[i as usize]).collect();
        assert_eq!(back, signs);
    }

    #[test]
    fn a_new_batch_does_not_see_the_signs_of_the_last() {
        let mut dedup = Dedup::new();
        for generation in [1, u32::MAX - 1] {
            dedup.generation = generation;
            for _ in 0..3 {
                let (mut unique, mut inverse) = (Vec::new(), Vec::new());
                dedup.start();
                dedup.push(&[1, 2, 1], &mut unique, &mut inverse);
                assert_eq!((unique, inverse), (vec![1, 2], vec![0, 1, 0]));
            }
        }
    }
}
