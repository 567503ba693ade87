//! Metrics of a model whose labels are any numbers, such as stars.

use crate::arguments::Batch;
use crate::state::{Reader, Writer};
use crate::{Accumulator, Error};

const NAME: &str = "RegressionMetrics";
const TAG: [u8; 4] = *b"CMR1";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegressionMetrics {
    count: u64,
    weight: f64,
    absolute_error: f64,
    squared_error: f64,
    labels: f64,
    scores: f64,
}

/// NaN while there is no sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegressionReport {
    pub count: u64,
    pub mae: f64,
    pub rmse: f64,
    pub mean_label: f64,
    pub mean_score: f64,
}

impl RegressionReport {
    /// Every number under the name that people know it by.
    pub fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("count", self.count as f64),
            ("mae", self.mae),
            ("rmse", self.rmse),
            ("mean_label", self.mean_label),
            ("mean_score", self.mean_score),
        ]
    }
}

impl RegressionMetrics {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn update(&mut self, scores: &[f32], labels: &[f32], weights: Option<&[f32]>) -> Result<(), Error> {
        let batch = Batch::new(scores, labels, weights)?;
        batch.check_regression()?;
        let mut sums = Self::default();
        for row in 0..batch.len() {
            let (score, label) = (f64::from(batch.scores[row]), f64::from(batch.labels[row]));
            let weight = f64::from(batch.weight(row));
            let error = score - label;
            sums.weight += weight;
            sums.absolute_error += weight * error.abs();
            sums.squared_error += weight * error * error;
            sums.labels += weight * label;
            sums.scores += weight * score;
        }
        sums.count = batch.len() as u64;
        self.merge(&sums)
    }

    pub fn report(&self) -> RegressionReport {
        RegressionReport {
            count: self.count,
            mae: self.absolute_error / self.weight,
            rmse: (self.squared_error / self.weight).sqrt(),
            mean_label: self.labels / self.weight,
            mean_score: self.scores / self.weight,
        }
    }
}

impl Accumulator for RegressionMetrics {
    fn count(&self) -> u64 {
        self.count
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.count += other.count;
        self.weight += other.weight;
        self.absolute_error += other.absolute_error;
        self.squared_error += other.squared_error;
        self.labels += other.labels;
        self.scores += other.scores;
        Ok(())
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new(TAG);
        out.u64(self.count);
        out.f64(self.weight);
        out.f64(self.absolute_error);
        out.f64(self.squared_error);
        out.f64(self.labels);
        out.f64(self.scores);
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut input = Reader::new(NAME, TAG, bytes)?;
        let metric = Self {
            count: input.u64()?,
            weight: input.f64()?,
            absolute_error: input.f64()?,
            squared_error: input.f64()?,
            labels: input.f64()?,
            scores: input.f64()?,
        };
        input.finish()?;
        Ok(metric)
    }
}
