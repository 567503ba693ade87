//! The last batches, for the sliding AUC.
//!
//! They are kept sample by sample and counted anew when asked: nothing is ever subtracted, so weights that are no
//! whole numbers leave no drift behind.

use std::collections::VecDeque;

use crate::histogram::Histogram;
use crate::state::{Reader, Writer};
use crate::{Error, Spacing};

/// One batch: `bucket << 1 | is_positive` per sample, and weights where they are not all one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WindowBatch {
    pub(crate) samples: Vec<u32>,
    pub(crate) weights: Vec<f32>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Window {
    num_batches: usize,
    batches: VecDeque<WindowBatch>,
}

impl Window {
    pub(crate) fn new(num_batches: usize) -> Self {
        Self {
            num_batches,
            batches: VecDeque::new(),
        }
    }

    pub(crate) fn num_batches(&self) -> usize {
        self.num_batches
    }

    /// An empty batch to fill and `push`; the memory of the one that falls out is used again.
    pub(crate) fn take_oldest(&mut self) -> WindowBatch {
        let mut batch = WindowBatch::default();
        while !self.batches.is_empty() && self.batches.len() >= self.num_batches {
            batch = self.batches.pop_front().unwrap_or_default();
        }
        batch.samples.clear();
        batch.weights.clear();
        batch
    }

    pub(crate) fn push(&mut self, batch: WindowBatch) {
        if self.num_batches > 0 {
            self.batches.push_back(batch);
        }
    }

    /// The windows of two trainers side by side; the next batches push the surplus out.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.batches.extend(other.batches.iter().cloned());
    }

    pub(crate) fn clear(&mut self) {
        self.batches.clear();
    }

    pub(crate) fn auc(&self, spacing: Spacing) -> f64 {
        let mut histogram = Histogram::new(spacing.num_buckets());
        for batch in &self.batches {
            for (index, &sample) in batch.samples.iter().enumerate() {
                let weight = batch.weights.get(index).map_or(1.0, |&weight| f64::from(weight));
                histogram.add(sample >> 1, sample & 1 == 1, weight);
            }
        }
        histogram.auc()
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.u32(self.num_batches as u32);
        out.u64(self.batches.len() as u64);
        for batch in &self.batches {
            out.u64(batch.samples.len() as u64);
            batch.samples.iter().for_each(|&sample| out.u32(sample));
            out.u64(batch.weights.len() as u64);
            batch.weights.iter().for_each(|weight| out.u32(weight.to_bits()));
        }
    }

    pub(crate) fn read(input: &mut Reader<'_>, num_buckets: usize) -> Result<Self, Error> {
        let mut window = Self::new(input.u32()? as usize);
        for _ in 0..input.count(16)? {
            let mut batch = WindowBatch::default();
            for _ in 0..input.count(4)? {
                batch.samples.push(input.u32()?);
            }
            for _ in 0..input.count(4)? {
                batch.weights.push(f32::from_bits(input.u32()?));
            }
            if batch
                .samples
                .iter()
                .any(|&sample| (sample >> 1) as usize >= num_buckets)
            {
                return Err(input.error("bucket outside the histogram"));
            }
            window.batches.push_back(batch);
        }
        Ok(window)
    }
}
