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

/// A vocabulary's seed, with what values of four to eight bytes need of it worked out beforehand.
///
/// Most values of a click log are that short; their signs are the same as those of [`sign`].
#[derive(Clone, Copy, Debug)]
pub struct Signer {
    seed: u64,
    flip: u64,
}

impl Signer {
    pub fn new(seed: u64) -> Self {
        /// Bytes 8 to 15 of the xxh3 secret, combined with bytes 16 to 23.
        const SECRET: u64 = 0x1cad_21f7_2c81_017c ^ 0xdb97_9083_e96d_d4de;
        let spread = seed ^ (u64::from((seed as u32).swap_bytes()) << 32);
        Self {
            seed,
            flip: SECRET.wrapping_sub(spread),
        }
    }

    #[inline]
    pub fn sign(&self, value: &[u8]) -> Sign {
        const PRIME: u64 = 0x9fb2_1c65_1e98_df25;
        let length = value.len();
        if let (4..=8, Some(head), Some(tail)) = (length, value.first_chunk(), value.last_chunk()) {
            let word = u64::from(u32::from_le_bytes(*tail)) | (u64::from(u32::from_le_bytes(*head)) << 32);
            let mut hash = word ^ self.flip;
            hash ^= hash.rotate_left(49) ^ hash.rotate_left(24);
            hash = hash.wrapping_mul(PRIME);
            hash ^= (hash >> 35).wrapping_add(length as u64);
            hash = hash.wrapping_mul(PRIME);
            hash ^ (hash >> 28)
        } else {
            self.sign_any(value)
        }
    }

    /// Out of line, so that the short way stays short enough to be inlined.
    #[inline(never)]
    fn sign_any(&self, value: &[u8]) -> Sign {
        sign(value, self.seed)
    }
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
    fn a_signer_gives_the_same_signs() {
        let text = b"0123456789abcdef0123";
        for seed in [0, 1, u64::MAX, vocabulary_seed("C1")] {
            let signer = Signer::new(seed);
            for length in 0..text.len() {
                assert_eq!(
                    signer.sign(&text[..length]),
                    sign(&text[..length], seed),
                    "{length} bytes"
                );
            }
        }
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
