//! Payloads of steps and rows: what is read is what was written, and no bytes of a peer do harm.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hostile;
mod memory;
mod rows;
mod steps;

use clickmill_wire::Precision;
use proptest::prelude::*;

fn precisions() -> impl Strategy<Value = Precision> {
    prop_oneof![Just(Precision::Fp32), Just(Precision::Bf16)]
}

fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn u64_bytes(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
