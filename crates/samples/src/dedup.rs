//! Deduplication of signs: each occurrence gets the position of its sign among the unique ones.
//!
//! Open addressing over positions alone: the signs themselves stand in the list of unique ones, so that a
//! batch of 26,000 occurrences works on 128 KiB, which is cheap to clear for the next one.

/// Signs whose entries are fetched ahead of their probe.
const AHEAD: usize = 16;

const EMPTY: u32 = u32::MAX;

pub struct Dedup {
    /// Positions in the list of unique signs, or `EMPTY`.
    entries: Vec<u32>,
    /// `64 - log2(entries)`: probes start at the top bits of the spread sign.
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
            entries: vec![EMPTY; 1 << BITS],
            shift: 64 - BITS,
        }
    }

    /// Forgets all signs; what follows belongs to a new batch.
    pub fn start(&mut self) {
        self.entries.fill(EMPTY);
    }

    /// Appends to `inverse` one position for each sign, and to `unique` the signs not seen since `start`.
    pub fn push(&mut self, signs: &[u64], unique: &mut Vec<u64>, inverse: &mut Vec<u32>) {
        let filled = inverse.len();
        inverse.resize(filled + signs.len(), 0);
        let mut num_unique = unique.len();
        for (chunk, out) in signs.chunks(AHEAD).zip(inverse[filled..].chunks_mut(AHEAD)) {
            // At most half full, so that probes stay short; room for a whole chunk of new signs.
            if (num_unique + AHEAD) * 2 > self.entries.len() {
                self.grow(&unique[..num_unique]);
            }
            // One more than ever counts: a sign is written whether it is new or not.
            if unique.len() <= num_unique + AHEAD {
                unique.resize(num_unique + 4 * AHEAD, 0);
            }
            let mut places = [0usize; AHEAD];
            for (place, &sign) in places.iter_mut().zip(chunk) {
                *place = self.place(sign);
                prefetch(&self.entries, *place);
            }
            for ((&place, &sign), out) in places.iter().zip(chunk).zip(out) {
                unique[num_unique] = sign;
                *out = self.find(place, sign, num_unique as u32, unique);
                num_unique += usize::from(*out == num_unique as u32);
            }
        }
        unique.truncate(num_unique);
    }

    /// Where the probe for a sign starts. Signs may be small integers, so their bits are spread first.
    #[inline]
    fn place(&self, sign: u64) -> usize {
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        ((sign ^ (sign >> 32)).wrapping_mul(SPREAD) >> self.shift) as usize
    }

    /// Position of a sign, which is `next` where it is new; `unique[next]` holds the sign already.
    ///
    /// New or known is a coin toss that no branch predictor wins. `EMPTY` is the largest position, so that
    /// the lesser of entry and `next` is the candidate either way, and only a collision branches.
    #[inline]
    fn find(&mut self, mut place: usize, sign: u64, next: u32, unique: &[u64]) -> u32 {
        let mask = self.entries.len() - 1;
        loop {
            let entry = &mut self.entries[place & mask];
            let position = (*entry).min(next);
            if unique[position as usize] == sign {
                *entry = position;
                return position;
            }
            place += 1;
        }
    }

    #[cold]
    fn grow(&mut self, unique: &[u64]) {
        let size = self.entries.len() * 2;
        self.entries.clear();
        self.entries.resize(size, EMPTY);
        self.shift = 64 - size.trailing_zeros();
        let mask = size - 1;
        for (index, &sign) in unique.iter().enumerate() {
            let mut place = self.place(sign);
            while self.entries[place & mask] != EMPTY {
                place += 1;
            }
            self.entries[place & mask] = index as u32;
        }
    }
}

#[inline]
#[cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "the only prefetch in the standard library is an intrinsic"
    )
)]
fn prefetch(entries: &[u32], place: usize) {
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
        for _ in 0..3 {
            let (mut unique, mut inverse) = (Vec::new(), Vec::new());
            dedup.start();
            dedup.push(&[1, 2, 1], &mut unique, &mut inverse);
            assert_eq!((unique, inverse), (vec![1, 2], vec![0, 1, 0]));
        }
    }
}
