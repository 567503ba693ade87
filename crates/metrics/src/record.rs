//! One scored sample in 8 bytes, ordered by score, and the exact AUC over ordered samples.

use crate::arguments::Batch;

/// Score in the upper half, as an integer of the same order; below it the bits of the weight, whose sign bit
/// (weights are never negative) says whether the sample is positive. Comparing the integers sorts by score and
/// then in an order of its own, so that sums over sorted records do not depend on the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record(u64);

const POSITIVE: u64 = 1 << 31;

impl Record {
    fn new(score: f32, is_positive: bool, weight: f32) -> Self {
        // -0.0 and 0.0 are one score, and a weight of -0.0 must not read as a positive sample.
        let bits = (score + 0.0).to_bits();
        let key = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
        let weight_bits = u64::from(weight.abs().to_bits());
        Self(u64::from(key) << 32 | weight_bits | if is_positive { POSITIVE } else { 0 })
    }

    pub(crate) fn of(batch: &Batch<'_>, row: usize) -> Self {
        Self::new(batch.scores[row], batch.labels[row] != 0.0, batch.weight(row))
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    fn key(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) fn is_positive(self) -> bool {
        self.0 & POSITIVE != 0
    }

    pub(crate) fn weight(self) -> f64 {
        f64::from(f32::from_bits((self.0 & (POSITIVE - 1)) as u32))
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ranking {
    area: f64,
    pub(crate) negatives: f64,
    pub(crate) positives: f64,
}

impl Ranking {
    /// `records` must be sorted; ties count half.
    pub(crate) fn of_sorted(records: impl Iterator<Item = Record>) -> Self {
        let mut ranking = Self::default();
        let mut key = None;
        let (mut tied_negatives, mut tied_positives) = (0.0, 0.0);
        for record in records {
            if key != Some(record.key()) {
                ranking.close(tied_negatives, tied_positives);
                (tied_negatives, tied_positives) = (0.0, 0.0);
                key = Some(record.key());
            }
            if record.is_positive() {
                tied_positives += record.weight();
            } else {
                tied_negatives += record.weight();
            }
        }
        ranking.close(tied_negatives, tied_positives);
        ranking
    }

    fn close(&mut self, negatives: f64, positives: f64) {
        self.area += positives * (self.negatives + 0.5 * negatives);
        self.negatives += negatives;
        self.positives += positives;
    }

    /// None when a class is empty.
    pub(crate) fn auc(&self) -> Option<f64> {
        (self.negatives > 0.0 && self.positives > 0.0).then(|| self.area / (self.negatives * self.positives))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_sort_as_their_scores(left in -1e9_f32..1e9, right in -1e9_f32..1e9) {
            let (low, high) = (Record::new(left, true, 1.0), Record::new(right, true, 1.0));
            prop_assert_eq!(low.cmp(&high), left.total_cmp(&right));
        }
    }

    #[test]
    fn both_zeros_are_one_score() {
        let records = [Record::new(-0.0, true, 1.0), Record::new(0.0, false, 1.0)];
        assert_eq!(Ranking::of_sorted(records.into_iter()).auc(), Some(0.5));
    }
}
