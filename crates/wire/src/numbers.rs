//! Packed numbers to floats and back.

use clickmill_types::bf16::{from_bf16, to_bf16, widened};

use crate::Precision;

/// Numbers that are rounded at once.
const ROUNDED: usize = 256;

/// Each number is written once: megabytes of zeros before them would cost as much again.
pub fn unpack(bytes: &[u8], precision: Precision) -> Vec<f32> {
    match precision {
        Precision::Bf16 => widened(bytes),
        Precision::Fp32 => {
            let (numbers, _) = bytes.as_chunks::<4>();
            numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        }
    }
}

/// `out` has as many numbers as `bytes` holds.
pub fn unpack_to(bytes: &[u8], precision: Precision, out: &mut [f32]) {
    match precision {
        Precision::Bf16 => from_bf16(bytes, out),
        Precision::Fp32 => {
            for (number, bytes) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *number = f32::from_le_bytes(*bytes);
            }
        }
    }
}

/// `out` has room for exactly `numbers`.
pub fn pack_to(numbers: &[f32], precision: Precision, out: &mut [u8]) {
    match precision {
        Precision::Bf16 => to_bf16(numbers, out),
        Precision::Fp32 => {
            for (bytes, number) in out.as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
                *bytes = number.to_le_bytes();
            }
        }
    }
}

/// Makes `numbers` what they are after a way over the wire.
pub fn round(numbers: &mut [f32], precision: Precision) {
    if precision == Precision::Bf16 {
        let mut bytes = [0; 2 * ROUNDED];
        for numbers in numbers.chunks_mut(ROUNDED) {
            let bytes = &mut bytes[..2 * numbers.len()];
            to_bf16(numbers, bytes);
            from_bf16(bytes, numbers);
        }
    }
}

pub fn unpack_signs(bytes: &[u8]) -> Vec<u64> {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|bytes| u64::from_le_bytes(*bytes))
        .collect()
}
