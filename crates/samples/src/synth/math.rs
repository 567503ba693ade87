//! Exponential and logarithm from additions and multiplications alone.
//!
//! A log must come out byte for byte equal on every machine. The platform's own `exp` and `ln` differ in
//! the last bit from one C library to the next, and one bit can move a value to its neighbour; the basic
//! operations of IEEE 754 cannot. Accurate to about 1e-11, which is far more than a generator needs.

use std::f64::consts::{LN_2, LOG2_E};

/// e to the power of `x`, for `x` between about -700 and 700.
#[inline]
pub(super) fn exp(x: f64) -> f64 {
    let whole = (x * LOG2_E).round();
    // |rest| <= ln(2)/2: eleven terms of the series leave an error below 1e-14.
    let rest = x - whole * LN_2;
    let mut sum = 1.0;
    for n in (1..=11_u32).rev() {
        sum = 1.0 + sum * rest / f64::from(n);
    }
    let exponent = (1023 + whole as i64) as u64;
    sum * f64::from_bits(exponent << 52)
}

/// Natural logarithm of a positive, normal number.
#[inline]
pub(super) fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = f64::from((bits >> 52) as i32 - 1023);
    let mut mantissa = f64::from_bits((bits & MANTISSA) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1.0;
    }
    // ln(m) = 2 atanh((m - 1) / (m + 1)), where the argument is at most 0.172.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let mut sum = 0.0;
    for n in (0..=7_u32).rev() {
        sum = sum * square + 1.0 / f64::from(2 * n + 1);
    }
    exponent * LN_2 + 2.0 * ratio * sum
}

/// 1 / (1 + e^-x).
#[inline]
pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x.clamp(-40.0, 40.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_and_ln_agree_with_the_platform_to_1e_11() {
        for step in -4_000..4_000 {
            let x = f64::from(step) * 0.0101;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-11, "exp({x})");
            let y = x.exp();
            assert!((ln(y) - x).abs() < 1e-11 * x.abs().max(1.0), "ln({y})");
        }
    }
}
