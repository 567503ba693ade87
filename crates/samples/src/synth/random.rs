//! Numbers that depend on their place alone: no state is carried from one row to the next.

use clickmill_types::sign::mix;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash of two numbers.
#[inline]
pub(super) fn hash(key: u64, value: u64) -> u64 {
    mix(mix(key.wrapping_add(GOLDEN)) ^ value.wrapping_mul(GOLDEN))
}

/// Uniform in [0, 1).
#[inline]
pub(super) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Mean 0, variance 1, roughly bell-shaped, never beyond ±3.5: the sum of four uniforms.
#[inline]
pub(super) fn bell(bits: u64) -> f64 {
    let sum = (bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48);
    // Four uniforms of width 65536 have variance 4 * 65536^2 / 12.
    (sum as f64 - 131_070.0) * (1.732_050_807_568_877_2 / 65_536.0)
}

/// The random numbers of one row.
pub(super) struct Stream {
    state: u64,
}

impl Stream {
    pub(super) fn of_row(seed: u64, row: u64) -> Self {
        Self {
            state: hash(hash(seed, 0x726f_7773), row),
        }
    }

    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    #[inline]
    pub(super) fn unit(&mut self) -> f64 {
        unit(self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bell_has_mean_zero_and_variance_one() {
        let values: Vec<f64> = (0..200_000).map(|n| bell(hash(1, n))).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64;
        assert!(
            mean.abs() < 0.01 && (variance - 1.0).abs() < 0.01,
            "{mean} {variance}"
        );
    }
}
