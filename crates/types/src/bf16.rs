//! Numbers of 16 bits on the wire: the upper half of an f32, little-endian.
//!
//! Rounds to the nearest, ties to even; a number too large becomes infinite, and not a number stays what it is.

#![expect(
    clippy::inline_always,
    reason = "loops gain wider vectors only by being inlined into the functions compiled for them"
)]

/// Bytes of a number.
pub const BYTES: usize = 2;

/// Writes `numbers` to `out`, which has [`BYTES`] bytes for each.
pub fn to_bf16(numbers: &[f32], out: &mut [u8]) {
    check(numbers.len(), out.len());
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "the function is compiled for the instructions just detected"
        )]
        // SAFETY: AVX2 has just been detected.
        return unsafe { narrow_avx2(numbers, out) };
    }
    narrow(numbers, out);
}

/// Reads the numbers of `bytes` to `out`.
pub fn from_bf16(bytes: &[u8], out: &mut [f32]) {
    widen_into(bytes, out, |_, number| number);
}

/// The numbers of `bytes`, each written once.
pub fn widened(bytes: &[u8]) -> Vec<f32> {
    let (halves, _) = bytes.as_chunks::<BYTES>();
    halves.iter().map(|half| widen_one(*half)).collect()
}

/// Adds the numbers of `bytes` to `sums`.
pub fn add_bf16(bytes: &[u8], sums: &mut [f32]) {
    widen_into(bytes, sums, |sum, number| sum + number);
}

fn widen_into(bytes: &[u8], out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    check(out.len(), bytes.len());
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "the function is compiled for the instructions just detected"
        )]
        // SAFETY: AVX2 has just been detected.
        return unsafe { widen_avx2(bytes, out, f) };
    }
    widen(bytes, out, f);
}

fn check(num_numbers: usize, num_bytes: usize) {
    assert!(
        num_bytes == num_numbers * BYTES,
        "{num_numbers} numbers take {BYTES} bytes each, not {num_bytes} in all"
    );
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn narrow_avx2(numbers: &[f32], out: &mut [u8]) {
    narrow(numbers, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn widen_avx2(bytes: &[u8], out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    widen(bytes, out, f);
}

#[inline(always)]
fn narrow(numbers: &[f32], out: &mut [u8]) {
    for (&number, out) in numbers.iter().zip(out.as_chunks_mut::<BYTES>().0) {
        *out = narrow_one(number).to_le_bytes();
    }
}

/// Without a branch, so that several go at once.
#[inline(always)]
fn narrow_one(number: f32) -> u16 {
    const INFINITE: u32 = 0x7f80_0000;
    const QUIET: u32 = 0x0040_0000;
    let bits = number.to_bits();
    // Half of the last place kept, less one where that place is even: only what is above it carries.
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    // Rounding could carry the last bits of not-a-number away, or over into the sign.
    let is_nan = bits & 0x7fff_ffff > INFINITE;
    let kept = if is_nan { bits | QUIET } else { rounded };
    (kept >> 16) as u16
}

#[inline(always)]
fn widen(bytes: &[u8], out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    for (half, number) in bytes.as_chunks::<BYTES>().0.iter().zip(out) {
        *number = f(*number, widen_one(*half));
    }
}

#[inline(always)]
fn widen_one(half: [u8; BYTES]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(half)) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(numbers: &[f32]) -> (Vec<u16>, Vec<f32>) {
        let mut bytes = vec![0; numbers.len() * BYTES];
        to_bf16(numbers, &mut bytes);
        let halves = bytes
            .chunks(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect();
        let mut back = vec![0.0; numbers.len()];
        from_bf16(&bytes, &mut back);
        assert_eq!(bits(&widened(&bytes)), bits(&back));
        (halves, back)
    }

    fn bits(numbers: &[f32]) -> Vec<u32> {
        numbers.iter().map(|number| number.to_bits()).collect()
    }

    #[test]
    fn every_upper_half_with_every_kind_of_lower_half_rounds_as_in_the_half_crate() {
        let lowers: [u32; 8] = [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x4000, 0xc000];
        let uppers = (0..=0xffff_u32).step_by(if cfg!(miri) { 1021 } else { 1 });
        let numbers: Vec<f32> = uppers
            .flat_map(|upper| lowers.map(|lower| f32::from_bits(upper << 16 | lower)))
            .collect();
        let (halves, back) = round_trip(&numbers);
        let expected: Vec<half::bf16> = numbers
            .iter()
            .map(|&number| half::bf16::from_f32(number))
            .collect();
        let as_bits = |half: &half::bf16| half.to_bits();
        assert_eq!(halves, expected.iter().map(as_bits).collect::<Vec<_>>());
        let widened: Vec<f32> = expected.iter().map(|half| half.to_f32()).collect();
        assert_eq!(bits(&back), bits(&widened));
        for (number, back) in numbers.iter().zip(&back) {
            assert_eq!(number.is_nan(), back.is_nan(), "{:08x}", number.to_bits());
        }
    }

    #[test]
    fn a_length_that_is_no_whole_vector_loses_nothing() {
        for len in 0..40 {
            let numbers: Vec<f32> = (0..len).map(|at| at as f32 - 7.5).collect();
            let (_, back) = round_trip(&numbers);
            assert_eq!(back, numbers);
            let mut bytes = vec![0; len * BYTES];
            to_bf16(&numbers, &mut bytes);
            let mut sums = numbers.clone();
            add_bf16(&bytes, &mut sums);
            let twice: Vec<f32> = numbers.iter().map(|number| 2.0 * number).collect();
            assert_eq!(sums, twice);
        }
    }

    #[test]
    fn the_plain_loop_gives_the_same_bits() {
        let numbers: Vec<f32> = (0..999_u32)
            .map(|at| f32::from_bits(at.wrapping_mul(0x9e37_79b9)))
            .collect();
        let mut bytes = vec![0; numbers.len() * BYTES];
        narrow(&numbers, &mut bytes);
        let mut detected = vec![0; bytes.len()];
        to_bf16(&numbers, &mut detected);
        assert_eq!(bytes, detected);
        let mut back = vec![0.0; numbers.len()];
        widen(&bytes, &mut back, |_, number| number);
        let mut detected = vec![0.0; numbers.len()];
        from_bf16(&bytes, &mut detected);
        assert_eq!(bits(&back), bits(&detected));
    }
}
