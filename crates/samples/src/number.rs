//! Text to `f32`, correctly rounded, with a short way for what click logs are full of: small integers.

use crate::bad::shown;

const POWERS: [f32; 11] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];

/// Largest integer below which every integer is an `f32`.
const EXACT: u64 = 1 << 24;

/// A finite number, or why there is none.
#[inline]
pub(crate) fn parse(text: &[u8]) -> Result<f32, String> {
    match short(text) {
        Some(number) => Ok(number),
        None => long(text),
    }
}

/// One to eight digits and nothing else, given the first eight bytes of the text, little-endian, with
/// anything behind its end.
#[inline]
pub(crate) fn small_integer(length: usize, head: u64) -> Option<f32> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    if length.wrapping_sub(1) >= 8 {
        return None;
    }
    // The digits move to the top, zeros fill in before them; then all eight count at once.
    let shift = 64 - 8 * length as u32;
    let filled = (head << shift) | (ZEROS & !(u64::MAX << shift));
    let digits = filled.wrapping_sub(ZEROS);
    if (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let pairs = (digits.wrapping_mul(10)).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100)).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    let all = (fours.wrapping_mul(10_000)).wrapping_add(fours >> 32) & 0xffff_ffff;
    Some(all as u32 as f32)
}

/// Plain decimals of at most 18 digits whose value is exact after one rounding.
#[inline]
fn short(text: &[u8]) -> Option<f32> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut mantissa = 0u64;
    let mut point = None;
    for (index, &byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa * 10 + u64::from(digit);
        } else if byte == b'.' && point.is_none() && digits.len() > 1 {
            point = Some(index);
        } else {
            return None;
        }
    }
    let size = match point {
        None => mantissa as f32,
        Some(point) => {
            let decimals = digits.len() - 1 - point;
            if mantissa > EXACT || decimals >= POWERS.len() {
                return None;
            }
            // Both are exact, so the quotient is rounded once.
            mantissa as f32 / POWERS[decimals]
        }
    };
    Some(if is_negative { -size } else { size })
}

/// As `parse`, without a reason: for text that often is no number.
pub(crate) fn parse_if_any(text: &[u8]) -> Option<f32> {
    short(text).or_else(|| {
        let number = std::str::from_utf8(text.trim_ascii()).ok()?.parse::<f32>().ok()?;
        number.is_finite().then_some(number)
    })
}

#[cold]
fn long(text: &[u8]) -> Result<f32, String> {
    let trimmed = text.trim_ascii();
    let parsed = std::str::from_utf8(trimmed)
        .ok()
        .and_then(|text| text.parse::<f32>().ok());
    match parsed {
        Some(number) if number.is_finite() => Ok(number),
        Some(number) if number.is_nan() => Err(format!("{} is not allowed: NaN", shown(text))),
        Some(_) if trimmed.iter().any(u8::is_ascii_digit) => {
            Err(format!("{} is beyond the range of a 32-bit float", shown(text)))
        }
        Some(_) => Err(format!("{} is not allowed: infinite", shown(text))),
        None => Err(format!("{} is not a number", shown(text))),
    }
}

/// A decimal u64 without sign, blanks or other marks.
#[inline]
pub(crate) fn parse_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_that_no_feature_may_have_are_refused_with_the_reason() {
        assert!(parse(b"nan").unwrap_err().contains("NaN"));
        assert!(parse(b"-inf").unwrap_err().contains("infinite"));
        assert!(parse(b"1e400").unwrap_err().contains("32-bit float"));
        for text in [&b"-"[..], b".", b"-.", b"1-", b"1.2.3", b"\xff", b"0x1", b"1 2"] {
            assert!(parse(text).unwrap_err().contains("not a number"), "{text:?}");
        }
    }

    #[test]
    fn unsigned_signs_stop_at_u64() {
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"-1"), None);
    }

    proptest! {
        #[test]
        fn numbers_equal_those_of_the_standard_library(text in r"-?[0-9]{1,20}(\.[0-9]{0,12})?(e-?[0-9])?") {
            prop_assert_eq!(parse(text.as_bytes()).unwrap().to_bits(), text.parse::<f32>().unwrap().to_bits());
        }

        #[test]
        fn small_integers_are_found_whatever_stands_behind_them(text in r"[0-9]{0,9}[-/:.x]?[0-9]{0,2}", behind in any::<[u8; 8]>()) {
            let mut bytes = text.clone().into_bytes();
            bytes.extend(behind);
            let head = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            let is_small = (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            let expected = is_small.then(|| text.parse::<f32>().unwrap());
            prop_assert_eq!(small_integer(text.len(), head), expected);
        }
    }
}
