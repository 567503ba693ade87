//! What an operator wants to know of a table.

use serde::Serialize;

use crate::{Counters, Table};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    pub rows: u64,
    pub bytes: u64,
    pub bytes_per_row: f64,
    pub step: u32,
    pub bucket_bits: u32,
    #[serde(flatten)]
    pub counters: Counters,
    /// Signs evicted since the last save.
    pub tombstones: u64,
    /// Bytes that twice the rows would need.
    pub bytes_at_double: u64,
}

impl Table {
    pub fn stats(&self) -> Stats {
        let (rows, bytes) = (self.len(), self.bytes());
        Stats {
            rows,
            bytes,
            bytes_per_row: if rows == 0 {
                0.0
            } else {
                bytes as f64 / rows as f64
            },
            step: self.step,
            bucket_bits: self.bucket_bits,
            counters: self.counters,
            tombstones: self.ledger.tombstones.len() as u64,
            bytes_at_double: self.forecast_bytes(2 * rows),
        }
    }
}
