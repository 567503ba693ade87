//! How scores between 0 and 1 fall into buckets.
//!
//! Uniform buckets waste almost all of themselves on click logs, where scores lie near 0.01. The default
//! spacing is fine where probabilities are: it takes the exponent and the upper bits of the mantissa of the
//! smaller of `p` and `1 - p`, so that every bucket is at most 1/8192 of its distance to the nearer end. That
//! is nearly a logit scale, for the price of a shift.

use crate::Error;

/// Bits of the mantissa that tell buckets apart.
const MANTISSA_BITS: u32 = 13;
const SHIFT: u32 = f32::MANTISSA_DIGITS - 1 - MANTISSA_BITS;
/// 2^-24: nearer to 1 an f32 cannot come, nearer to 0 all scores share a bucket.
const NEAREST: f32 = 1.0 / 16_777_216.0;
/// Buckets below one half.
const HALF: u32 = code(0.5);

/// At most so many thresholds: a histogram pair of 256 MiB.
const MAX_THRESHOLDS: u32 = 1 << 24;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Nearly logarithmic towards both ends; 376 833 buckets.
    #[default]
    Logit,
    /// `thresholds + 1` buckets, the bucket of `p` is `floor(p * thresholds)`; the seeds use 4096.
    Uniform { thresholds: u32 },
}

const fn code(distance: f32) -> u32 {
    let distance = if distance < NEAREST { NEAREST } else { distance };
    (distance.to_bits() >> SHIFT) - (NEAREST.to_bits() >> SHIFT)
}

fn edge(code: u32) -> f64 {
    f64::from(f32::from_bits((code + (NEAREST.to_bits() >> SHIFT)) << SHIFT))
}

impl Spacing {
    pub fn uniform(thresholds: u32) -> Result<Self, Error> {
        if thresholds == 0 || thresholds > MAX_THRESHOLDS {
            return Err(Error::Config {
                what: "thresholds",
                value: thresholds as usize,
                allowed: "1 to 16777216",
            });
        }
        Ok(Self::Uniform { thresholds })
    }

    pub fn num_buckets(self) -> usize {
        match self {
            Self::Logit => 2 * HALF as usize + 1,
            Self::Uniform { thresholds } => thresholds as usize + 1,
        }
    }

    /// Bucket of a probability; never falls when the probability rises.
    #[inline]
    pub(crate) fn bucket(self, score: f32) -> u32 {
        match self {
            Self::Logit if score < 0.5 => code(score),
            Self::Logit => 2 * HALF - code(1.0 - score),
            Self::Uniform { thresholds } => ((score * thresholds as f32) as u32).min(thresholds),
        }
    }

    /// The probability that stands for a bucket: its middle, or the seeds' lower edge.
    pub(crate) fn middle(self, bucket: u32) -> f64 {
        let middle = |code: u32| 0.5 * (edge(code) + edge(code + 1));
        match self {
            Self::Logit if bucket < HALF => middle(bucket),
            Self::Logit if bucket == HALF => 0.5,
            Self::Logit => 1.0 - middle(2 * HALF - bucket),
            Self::Uniform { thresholds } => f64::from(bucket) / f64::from(thresholds),
        }
    }

    pub(crate) fn thresholds(self) -> u32 {
        match self {
            Self::Logit => 0,
            Self::Uniform { thresholds } => thresholds,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ends_and_middle_have_their_buckets() {
        assert_eq!(Spacing::Logit.bucket(0.0), 0);
        assert_eq!(Spacing::Logit.bucket(0.5), HALF);
        assert_eq!(Spacing::Logit.bucket(0.5_f32.next_down()), HALF - 1);
        assert_eq!(
            Spacing::Logit.bucket(1.0) as usize,
            Spacing::Logit.num_buckets() - 1
        );
        assert_eq!(Spacing::Logit.num_buckets(), 376_833);
        assert_eq!(Spacing::Uniform { thresholds: 4096 }.bucket(1.0), 4096);
    }

    #[test]
    fn no_thresholds_at_all_are_refused() {
        assert!(Spacing::uniform(0).is_err());
        assert!(Spacing::uniform(MAX_THRESHOLDS + 1).is_err());
    }

    proptest! {
        #[test]
        fn buckets_never_fall(left in 0.0_f32..=1.0, right in 0.0_f32..=1.0, thresholds in 1_u32..5000) {
            let (low, high) = if left <= right { (left, right) } else { (right, left) };
            for spacing in [Spacing::Logit, Spacing::Uniform { thresholds }] {
                prop_assert!(spacing.bucket(low) <= spacing.bucket(high));
                prop_assert!((spacing.bucket(high) as usize) < spacing.num_buckets());
            }
        }

        #[test]
        fn a_bucket_is_narrow(score in 1e-6_f32..=0.999_999) {
            let middle = Spacing::Logit.middle(Spacing::Logit.bucket(score));
            let distance = f64::from(score).min(1.0 - f64::from(score));
            prop_assert!((middle - f64::from(score)).abs() <= distance / 8192.0);
        }
    }
}
