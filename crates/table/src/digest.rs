//! A digest of what a table holds, whatever the order or the buckets that it is held in.

use xxhash_rust::xxh3::xxh3_128;

use crate::Table;

impl Table {
    /// Equal for equal tables: rows with step and state, the step, and what admission has counted.
    ///
    /// Rows are hashed one by one and added up, so that neither their order nor the number of buckets
    /// matters.
    pub fn digest(&self) -> String {
        let mut sum = 0_u128;
        let mut bytes = Vec::new();
        for bucket in &self.buckets {
            for row in 0..bucket.len() {
                bytes.clear();
                bucket.append_row(row, &mut bytes);
                sum = sum.wrapping_add(xxh3_128(&bytes));
            }
        }
        bytes.clear();
        for number in [self.step, self.done, self.ledger.decays, self.history.len()] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for (step, rate) in self.history.runs() {
            bytes.extend_from_slice(&step.to_le_bytes());
            bytes.extend_from_slice(&rate.to_le_bytes());
        }
        if let Some(sketch) = self.admission.sketch() {
            bytes.extend_from_slice(&sketch.sightings().to_le_bytes());
            bytes.extend_from_slice(sketch.bytes());
        }
        sum = sum.wrapping_add(xxh3_128(&bytes));
        format!("{sum:032x}")
    }
}
