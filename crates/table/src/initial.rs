//! Initial rows: every element is a pure function of (table seed, sign, position).
//!
//! A row is the same on every topology, after an eviction, and for a reader that has never seen it. The
//! functions here are part of the stored format: changing one changes every untrained row.

use clickmill_types::schema::{Init, TableSpec};
use clickmill_types::sign::mix;

#[derive(Clone, Copy)]
pub(crate) struct Initial {
    seed: u64,
    init: Init,
}

impl Initial {
    pub(crate) fn new(spec: &TableSpec) -> Self {
        Self {
            seed: mix(spec.seed ^ 0x6a09_e667_f3bc_c908),
            init: spec.init,
        }
    }

    pub(crate) fn fill(&self, sign: u64, weights: &mut [f32]) {
        let stream = mix(sign ^ self.seed);
        match self.init {
            Init::Zeros => weights.fill(0.0),
            Init::Uniform { scale } => {
                // One draw of 64 bits gives two elements.
                for (at, pair) in weights.chunks_mut(2).enumerate() {
                    let bits = draw(stream, at);
                    for (weight, bits) in pair.iter_mut().zip([bits as u32, (bits >> 32) as u32]) {
                        *weight = (2.0 * unit(bits) - 1.0) * scale;
                    }
                }
            }
            Init::Normal { std } => {
                // Twelve uniform numbers of 16 bits summed: integers only, so that no two mathematical
                // libraries can disagree on a row. Mean 12 * 65535 / 2, variance (65536^2 - 1), tails to 6 std.
                for (at, weight) in weights.iter_mut().enumerate() {
                    let sum: u64 = (3 * at..3 * at + 3).map(|at| pieces(draw(stream, at))).sum();
                    *weight = (sum as f32 - 393_210.0) * (1.0 / 65_536.0) * std;
                }
            }
        }
    }
}

#[inline]
fn draw(stream: u64, at: usize) -> u64 {
    mix(stream.wrapping_add((at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// Sum of the four 16-bit pieces.
#[inline]
fn pieces(bits: u64) -> u64 {
    (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48)
}

/// The top 24 bits as a number of [0, 1).
#[inline]
fn unit(bits: u32) -> f32 {
    (bits >> 8) as f32 * (1.0 / 16_777_216.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(init: Init) -> TableSpec {
        TableSpec {
            name: "t".to_owned(),
            dim: 4,
            seed: 7,
            init,
        }
    }

    #[test]
    fn rows_of_known_signs_never_change() {
        let mut row = [0.0; 5];
        Initial::new(&spec(Init::Uniform { scale: 1.0 })).fill(42, &mut row);
        let mut shorter = [0.0; 2];
        Initial::new(&spec(Init::Uniform { scale: 1.0 })).fill(42, &mut shorter);
        assert_eq!(shorter.map(f32::to_bits), UNIFORM[..2]);
        assert_eq!(row.map(f32::to_bits), UNIFORM);
        Initial::new(&spec(Init::Normal { std: 1.0 })).fill(42, &mut shorter);
        assert_eq!(shorter.map(f32::to_bits), NORMAL);
    }

    /// Computed once by another program from the definitions above.
    const UNIFORM: [u32; 5] = [
        3_211_304_568,
        1_058_645_434,
        3_198_300_756,
        3_211_634_900,
        3_207_786_300,
    ];
    const NORMAL: [u32; 2] = [3_215_809_536, 1_066_222_848];

    #[test]
    #[cfg_attr(miri, ignore = "statistics need many rows, and nothing here is unsafe")]
    fn distributions_have_their_moments() {
        let moments = |init| {
            let initial = Initial::new(&spec(init));
            let mut all = vec![0.0; 4 * 20_000];
            for (sign, row) in all.chunks_mut(4).enumerate() {
                initial.fill(sign as u64, row);
            }
            let count = all.len() as f64;
            let mean = all.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
            let variance = all.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count;
            (mean, variance)
        };
        let (mean, variance) = moments(Init::Uniform { scale: 3.0 });
        assert!(
            mean.abs() < 0.03 && (variance - 3.0).abs() < 0.05,
            "{mean} {variance}"
        );
        let (mean, variance) = moments(Init::Normal { std: 2.0 });
        assert!(
            mean.abs() < 0.03 && (variance - 4.0).abs() < 0.1,
            "{mean} {variance}"
        );
        assert_eq!(moments(Init::Zeros), (0.0, 0.0));
    }
}
