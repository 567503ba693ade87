//! Finds every delimiter of a block in one sweep.
//!
//! Parsing then walks positions, not bytes: a line with the wrong number of columns is known before any of
//! its fields is looked at.

/// Positions of delimiters and line ends in a block.
#[derive(Default)]
pub(crate) struct Index {
    /// -1, then delimiters and line ends, ascending: what stands between two neighbours is a field.
    pub(crate) marks: Vec<u32>,
    /// For each line end: its position in `marks`.
    pub(crate) line_ends: Vec<u32>,
}

impl Index {
    /// Blocks are shorter than 4 GiB; `delimiter` is not a line end.
    pub(crate) fn fill(&mut self, block: &[u8], delimiter: u8) {
        self.marks.clear();
        self.marks.push(u32::MAX);
        self.line_ends.clear();
        #[cfg(target_arch = "x86_64")]
        if has_vector_code() {
            #[expect(unsafe_code, reason = "vector code behind its run-time check")]
            // SAFETY: every feature that it is compiled for was found just above.
            unsafe {
                avx2(self, block, delimiter);
            }
            return;
        }
        self.fill_bytes(block, 0, delimiter);
    }

    /// The rest of a block from `start`, byte by byte.
    fn fill_bytes(&mut self, block: &[u8], start: usize, delimiter: u8) {
        for at in memchr::memchr2_iter(delimiter, b'\n', &block[start..]) {
            let at = start + at;
            if block[at] == b'\n' {
                self.line_ends.push(self.marks.len() as u32);
            }
            self.marks.push(at as u32);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_vector_code() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
#[expect(
    unsafe_code,
    reason = "loads and stores inside bounds that the loop itself establishes"
)]
fn avx2(index: &mut Index, block: &[u8], delimiter: u8) {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set1_epi8,
    };
    const STEP: usize = 64;
    let mark = _mm256_set1_epi8(delimiter.cast_signed());
    let end = _mm256_set1_epi8(b'\n'.cast_signed());
    let bits = |low: __m256i, high: __m256i| {
        u64::from(_mm256_movemask_epi8(low).cast_unsigned())
            | (u64::from(_mm256_movemask_epi8(high).cast_unsigned()) << 32)
    };
    let mut at = 0;
    while at + STEP <= block.len() {
        // SAFETY: `at + 64 <= block.len()`.
        let (low, high) = unsafe {
            let from = block.as_ptr().add(at);
            (
                _mm256_loadu_si256(from.cast()),
                _mm256_loadu_si256(from.add(32).cast()),
            )
        };
        let ends = (_mm256_cmpeq_epi8(low, end), _mm256_cmpeq_epi8(high, end));
        let line_ends = bits(ends.0, ends.1);
        let mut marks = bits(
            _mm256_or_si256(_mm256_cmpeq_epi8(low, mark), ends.0),
            _mm256_or_si256(_mm256_cmpeq_epi8(high, mark), ends.1),
        );
        let filled = index.marks.len();
        let mut rest = line_ends;
        while rest != 0 {
            let below = (1u64 << rest.trailing_zeros()) - 1;
            index
                .line_ends
                .push((filled + (marks & below).count_ones() as usize) as u32);
            rest &= rest - 1;
        }
        index.marks.reserve(STEP);
        let count = marks.count_ones() as usize;
        // SAFETY: `reserve` made room for 64 more; at most 64 are written, in groups of eight that may
        // overshoot `count` but not the room, and the length covers written ones only.
        unsafe {
            let to = index.marks.as_mut_ptr().add(filled);
            let mut written = 0;
            while written < count {
                for lane in 0..8 {
                    // A zero word has 64 trailing zeros: a harmless value past the counted ones.
                    to.add(written + lane).write(at as u32 + marks.trailing_zeros());
                    marks &= marks.wrapping_sub(1);
                }
                written += 8;
            }
            index.marks.set_len(filled + count);
        }
        at += STEP;
    }
    index.fill_bytes(block, at, delimiter);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_delimiter_is_found_once_and_in_order(block in proptest::collection::vec(
            prop_oneof![Just(b'\t'), Just(b'\n'), any::<u8>()], 0..700)) {
            let mut index = Index::default();
            index.fill(&block, b'\t');
            let mut plain = Index { marks: vec![u32::MAX], line_ends: vec![] };
            plain.fill_bytes(&block, 0, b'\t');
            prop_assert_eq!(&index.marks, &plain.marks);
            prop_assert_eq!(&index.line_ends, &plain.line_ends);
            let expected: Vec<u32> = (0..block.len())
                .filter(|&i| block[i] == b'\t' || block[i] == b'\n')
                .map(|i| i as u32)
                .collect();
            prop_assert_eq!(&index.marks[1..], expected);
        }
    }
}
