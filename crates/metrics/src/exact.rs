//! AUC over all scores, ties and weights included.

use crate::arguments::Batch;
use crate::kept::Kept;
use crate::record::{Ranking, Record};
use crate::state::{Reader, Writer};
use crate::{Accumulator, Error};

const NAME: &str = "ExactAuc";
const TAG: [u8; 4] = *b"CME1";

/// Keeps 8 bytes per sample and refuses to grow past `limit` samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactAuc {
    kept: Kept<Record>,
}

impl ExactAuc {
    pub fn new(limit: usize) -> Self {
        Self {
            kept: Kept::new(NAME, limit),
        }
    }

    pub fn update(&mut self, scores: &[f32], labels: &[f32], weights: Option<&[f32]>) -> Result<(), Error> {
        let batch = Batch::new(scores, labels, weights)?;
        batch.check_ranking()?;
        self.kept
            .extend((0..batch.len()).map(|row| Record::of(&batch, row)))
    }

    /// 0.5 while a class is empty.
    pub fn auc(&mut self) -> f64 {
        Ranking::of_sorted(self.kept.sorted().iter().copied())
            .auc()
            .unwrap_or(0.5)
    }
}

impl Accumulator for ExactAuc {
    fn count(&self) -> u64 {
        self.kept.len() as u64
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.kept.merge(&other.kept)
    }

    fn reset(&mut self) {
        self.kept.clear();
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new(TAG);
        self.kept.write(&mut out);
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut input = Reader::new(NAME, TAG, bytes)?;
        let kept = Kept::read(NAME, &mut input)?;
        input.finish()?;
        Ok(Self { kept })
    }
}
