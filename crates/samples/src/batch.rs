//! Batches: the columnar form in which samples reach the trainer.

use crate::position::Position;

/// `B` samples. Matrices are row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub num_rows: usize,
    pub num_dense: usize,
    pub num_labels: usize,
    /// `[B, num_dense]`.
    pub dense: Vec<f32>,
    /// `[B, num_labels]`, one column for each label slot.
    pub labels: Vec<f32>,
    /// `[B]`, or empty where the schema has no weight slot.
    pub weights: Vec<f32>,
    /// `[B]`, or empty where the schema has no group slot.
    pub group_keys: Vec<u64>,
    /// In the order of `Schema::groups`.
    pub groups: Vec<SignGroup>,
    /// A reader opened here yields exactly the batches that follow this one.
    pub position: Position,
}

/// The signs of one group of slots, deduplicated over the batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignGroup {
    pub num_slots: usize,
    /// `[B * num_slots + 1]`: slot `s` of sample `b` has occurrences `offsets[b * num_slots + s]` up to the next.
    pub offsets: Vec<u32>,
    /// Per occurrence: position in `unique`.
    pub inverse: Vec<u32>,
    /// In order of first occurrence.
    pub unique: Vec<u64>,
}

impl SignGroup {
    /// Signs of slot `slot` of sample `row`, in their order.
    pub fn signs_of(&self, row: usize, slot: usize) -> impl Iterator<Item = u64> + '_ {
        let cell = row * self.num_slots + slot;
        let range = self.offsets[cell] as usize..self.offsets[cell + 1] as usize;
        self.inverse[range]
            .iter()
            .map(|&index| self.unique[index as usize])
    }
}
