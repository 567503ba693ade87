//! The sums over one batch of everything that is a mean over samples.
//!
//! Without weights the log loss costs one logarithm per 256 samples and lane: the factors are multiplied in
//! f64, where 32 of them, each at least `CLIP`, cannot underflow.

use crate::arguments::Batch;

/// Scores are clipped to this distance from 0 and 1 in the log loss, as scikit-learn clips f32 scores.
const CLIP: f64 = f32::EPSILON as f64;
const LANES: usize = 8;
/// Factors per product: `CLIP` to this power is 1e-222.
const FACTORS: usize = 32;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Terms {
    pub(crate) weight: f64,
    pub(crate) clicks: f64,
    pub(crate) predicted: f64,
    pub(crate) absolute_error: f64,
    pub(crate) squared_error: f64,
    pub(crate) log_loss: f64,
    pub(crate) q_value: f64,
}

/// sigmoid(p) for p in 0..=1 by a continued fraction of tanh(p/2), good to 1e-12 there.
#[inline]
fn sigmoid(p: f64) -> f64 {
    let half = 0.5 * p;
    let square = half * half;
    let above = half * (135_135.0 + square * (17_325.0 + square * (378.0 + square)));
    let below = 135_135.0 + square * (62_370.0 + square * (3_150.0 + square * 28.0));
    0.5 + 0.5 * above / below
}

/// The probability that the model gave to what happened.
#[inline]
fn likelihood(p: f64, label: f64) -> f64 {
    (1.0 - label + (2.0 * label - 1.0) * p).clamp(CLIP, 1.0 - CLIP)
}

/// `batch` holds probabilities and labels of 0 or 1.
pub(crate) fn terms(batch: Batch<'_>) -> Terms {
    match batch.weights {
        None => unweighted(batch.scores, batch.labels),
        Some(weights) => weighted(batch.scores, batch.labels, weights),
    }
}

fn weighted(scores: &[f32], labels: &[f32], weights: &[f32]) -> Terms {
    let mut sums = Terms::default();
    for ((&score, &label), &weight) in scores.iter().zip(labels).zip(weights) {
        let (p, label, weight) = (f64::from(score), f64::from(label), f64::from(weight));
        let error = p - label;
        sums.weight += weight;
        sums.clicks += weight * label;
        sums.predicted += weight * p;
        sums.absolute_error += weight * error.abs();
        sums.squared_error += weight * error * error;
        sums.log_loss -= weight * likelihood(p, label).ln();
        sums.q_value += weight * sigmoid(p);
    }
    sums
}

/// Sums of `LANES` samples side by side, so that the compiler can use vectors.
struct Lanes {
    clicks: [f64; LANES],
    predicted: [f64; LANES],
    absolute_error: [f64; LANES],
    squared_error: [f64; LANES],
    q_value: [f64; LANES],
    product: [f64; LANES],
    log_loss: f64,
}

impl Lanes {
    fn new() -> Self {
        Self {
            clicks: [0.0; LANES],
            predicted: [0.0; LANES],
            absolute_error: [0.0; LANES],
            squared_error: [0.0; LANES],
            q_value: [0.0; LANES],
            product: [1.0; LANES],
            log_loss: 0.0,
        }
    }

    #[inline]
    fn add(&mut self, lane: usize, score: f32, label: f32) {
        let (p, label) = (f64::from(score), f64::from(label));
        let error = p - label;
        self.clicks[lane] += label;
        self.predicted[lane] += p;
        self.absolute_error[lane] += error.abs();
        self.squared_error[lane] += error * error;
        self.q_value[lane] += sigmoid(p);
        self.product[lane] *= likelihood(p, label);
    }

    fn close_products(&mut self) {
        for product in &mut self.product {
            self.log_loss -= product.ln();
            *product = 1.0;
        }
    }
}

fn unweighted(scores: &[f32], labels: &[f32]) -> Terms {
    let mut lanes = Lanes::new();
    let (score_blocks, score_rest) = scores.as_chunks::<LANES>();
    let (label_blocks, label_rest) = labels.as_chunks::<LANES>();
    for (score_run, label_run) in score_blocks.chunks(FACTORS).zip(label_blocks.chunks(FACTORS)) {
        for (block, label_block) in score_run.iter().zip(label_run) {
            for lane in 0..LANES {
                lanes.add(lane, block[lane], label_block[lane]);
            }
        }
        lanes.close_products();
    }
    for (lane, (&score, &label)) in score_rest.iter().zip(label_rest).enumerate() {
        lanes.add(lane, score, label);
    }
    lanes.close_products();
    Terms {
        weight: scores.len() as f64,
        clicks: lanes.clicks.iter().sum(),
        predicted: lanes.predicted.iter().sum(),
        absolute_error: lanes.absolute_error.iter().sum(),
        squared_error: lanes.squared_error.iter().sum(),
        log_loss: lanes.log_loss,
        q_value: lanes.q_value.iter().sum(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sigmoid_agrees_with_its_definition(p in 0.0_f64..=1.0) {
            prop_assert!((sigmoid(p) - 1.0 / (1.0 + (-p).exp())).abs() < 1e-12);
        }

        #[test]
        fn weights_of_one_change_nothing(
            samples in prop::collection::vec((0.0_f32..=1.0, prop::bool::ANY), 0..700)
        ) {
            let scores: Vec<f32> = samples.iter().map(|sample| sample.0).collect();
            let labels: Vec<f32> = samples.iter().map(|sample| f32::from(u8::from(sample.1))).collect();
            let ones = vec![1.0; scores.len()];
            let left = unweighted(&scores, &labels);
            let right = weighted(&scores, &labels, &ones);
            for (left, right) in [
                (left.weight, right.weight),
                (left.clicks, right.clicks),
                (left.predicted, right.predicted),
                (left.absolute_error, right.absolute_error),
                (left.squared_error, right.squared_error),
                (left.log_loss, right.log_loss),
                (left.q_value, right.q_value),
            ] {
                prop_assert!((left - right).abs() <= 1e-12 * right.abs().max(1.0));
            }
        }
    }

    #[test]
    fn the_worst_scores_keep_the_loss_finite() {
        let sums = unweighted(&[0.0; 1000], &[1.0; 1000]);
        assert!((sums.log_loss / 1000.0 + CLIP.ln()).abs() < 1e-9);
    }
}
