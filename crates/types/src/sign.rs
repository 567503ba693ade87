//! Signs: the u64 ids of feature values.
//!
//! A sign is xxh3-64 of the raw bytes of a value, seeded by its slot's vocabulary, so that equal text in
//! two slots gives two signs. The functions here are the only place where signs are made; a change to any
//! of them invalidates every stored table.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub type Sign = u64;

/// Seed of a vocabulary: slots with the same vocabulary share signs.
pub fn vocabulary_seed(vocabulary: &str) -> u64 {
    xxh3_64(vocabulary.as_bytes())
}

/// Sign of a raw value under a vocabulary seed.
#[inline]
pub fn sign(value: &[u8], seed: u64) -> Sign {
    xxh3_64_with_seed(value, seed)
}

/// Sign of a cross: depends on the order of its parts, and on the seed of the cross itself.
#[inline]
pub fn cross(left: Sign, right: Sign, seed: u64) -> Sign {
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&left.to_le_bytes());
    bytes[8..].copy_from_slice(&right.to_le_bytes());
    xxh3_64_with_seed(&bytes, seed)
}

/// Spreads a sign over all 64 bits; a bijection.
///
/// Signs may be small integers (`sign: value`, `hash_size`), so neither buckets nor probe positions may
/// use their bits as they are.
#[inline]
pub fn mix(sign: Sign) -> u64 {
    let mut x = sign;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Bucket of a sign among `1 << bucket_bits` buckets: the top bits of `mix`.
#[inline]
pub fn bucket(sign: Sign, bucket_bits: u32) -> usize {
    if bucket_bits == 0 {
        0
    } else {
        (mix(sign) >> (64 - bucket_bits)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_known_values_never_change() {
        // Stored tables depend on these numbers; they were checked against the reference xxHash library.
        assert_eq!(vocabulary_seed("C1"), 4_286_596_853_037_386_291);
        assert_eq!(
            sign(b"68fd1e64", vocabulary_seed("C1")),
            13_509_463_285_594_505_790
        );
        assert_eq!(sign(b"", vocabulary_seed("C1")), 12_008_751_331_287_298_922);
    }

    #[test]
    fn equal_text_in_two_vocabularies_gives_two_signs() {
        assert_ne!(
            sign(b"1", vocabulary_seed("user")),
            sign(b"1", vocabulary_seed("item"))
        );
    }

    #[test]
    fn a_cross_depends_on_the_order_of_its_parts() {
        assert_ne!(cross(1, 2, 7), cross(2, 1, 7));
    }

    #[test]
    fn small_signs_spread_over_all_buckets() {
        let mut seen = [false; 64];
        for sign in 0..2_000 {
            seen[bucket(sign, 6)] = true;
        }
        assert!(seen.iter().all(|&hit| hit));
    }
}
