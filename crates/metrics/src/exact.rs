//! AUC over all scores, ties and weights included.

use crate::Error;
use crate::arguments::Batch;
use crate::record::{Ranking, Record};
use crate::state::{Reader, Writer};

const NAME: &str = "ExactAuc";
const TAG: [u8; 4] = *b"CME1";

/// Keeps 8 bytes per sample and refuses to grow past `limit` samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactAuc {
    limit: usize,
    records: Vec<Record>,
}

impl ExactAuc {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            records: Vec::new(),
        }
    }

    pub fn update(&mut self, scores: &[f32], labels: &[f32], weights: Option<&[f32]>) -> Result<(), Error> {
        let batch = Batch::ranking(scores, labels, weights)?;
        self.check_room(batch.len())?;
        self.records.extend(
            (0..batch.len())
                .map(|row| Record::new(batch.scores[row], batch.labels[row] != 0.0, batch.weight(row))),
        );
        Ok(())
    }

    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.check_room(other.records.len())?;
        self.records.extend_from_slice(&other.records);
        Ok(())
    }

    fn check_room(&self, num_new: usize) -> Result<(), Error> {
        let needed = self.records.len() + num_new;
        if needed > self.limit {
            return Err(Error::Limit {
                metric: NAME,
                needed,
                limit: self.limit,
            });
        }
        Ok(())
    }

    pub fn reset(&mut self) {
        self.records.clear();
    }

    pub fn count(&self) -> usize {
        self.records.len()
    }

    /// 0.5 while a class is empty.
    pub fn auc(&mut self) -> f64 {
        self.records.sort_unstable();
        Ranking::of_sorted(self.records.iter().copied())
            .auc()
            .unwrap_or(0.5)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new(TAG);
        out.u64(self.limit as u64);
        out.u64(self.records.len() as u64);
        self.records.iter().for_each(|record| out.u64(record.to_bits()));
        out.finish()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut input = Reader::new(NAME, TAG, bytes)?;
        let mut metric = Self::new(input.u64()? as usize);
        for _ in 0..input.count(8)? {
            metric.records.push(Record::from_bits(input.u64()?));
        }
        input.finish()?;
        Ok(metric)
    }
}
