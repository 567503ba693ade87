//! Weight of negatives and positives per bucket, and what can be read off them.

use std::ops::Range;

use crate::state::{Reader, Writer};
use crate::{Error, Spacing};

/// Longest run of probabilities that one calibration bucket covers.
const MAX_SPAN: f64 = 0.01;
/// A calibration bucket closes when the click rate that it predicts is known this well, relatively.
const RELATIVE_ERROR_BOUND: f64 = 0.05;

/// Sums of whole weights are exact up to 2^53, and so is every order of merging them.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    /// Weight of negatives, weight of positives.
    buckets: Vec<[f64; 2]>,
    /// Buckets outside were never touched. Scores of a model lie in a small part of a large histogram, whose
    /// other pages are then neither read nor even mapped.
    touched: Range<usize>,
}

/// A sample of weight zero touches a bucket and changes nothing.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.buckets == other.buckets
    }
}

impl Histogram {
    pub(crate) fn new(num_buckets: usize) -> Self {
        Self {
            buckets: vec![[0.0; 2]; num_buckets],
            touched: num_buckets..0,
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, bucket: u32, is_positive: bool, weight: f64) {
        let bucket = bucket as usize;
        self.buckets[bucket][usize::from(is_positive)] += weight;
        self.touch(bucket..bucket + 1);
    }

    #[inline]
    fn touch(&mut self, buckets: Range<usize>) {
        self.touched.start = self.touched.start.min(buckets.start);
        self.touched.end = self.touched.end.max(buckets.end);
    }

    fn filled(&self) -> &[[f64; 2]] {
        self.buckets.get(self.touched.clone()).unwrap_or(&[])
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let first = other.touched.start;
        for (bucket, theirs) in other.filled().iter().enumerate() {
            let mine = &mut self.buckets[first + bucket];
            mine[0] += theirs[0];
            mine[1] += theirs[1];
        }
        self.touch(other.touched.clone());
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.buckets.len());
    }

    /// Area under the ROC curve by trapezoids; 0.5 when a class is empty, as the seeds have it.
    pub(crate) fn auc(&self) -> f64 {
        let mut negatives = 0.0;
        let mut positives = 0.0;
        let mut area = 0.0;
        for &[negative, positive] in self.filled() {
            area += positive * (negatives + 0.5 * negative);
            negatives += negative;
            positives += positive;
        }
        if negatives > 0.0 && positives > 0.0 {
            area / (negatives * positives)
        } else {
            0.5
        }
    }

    /// Mean relative error of the predicted click rate, over runs of buckets that hold enough samples for
    /// their click rate to mean something (the `BUCKET_ERROR` of the seeds).
    ///
    /// Buckets are gathered in order of score. A run is given up when it spans more than `MAX_SPAN`, and counted,
    /// with the weight of its samples, as soon as the standard error of its click rate falls below the bound.
    pub(crate) fn bucket_error(&self, spacing: Spacing) -> f64 {
        let mut run_start = f64::NEG_INFINITY;
        let (mut shows, mut predicted, mut clicks) = (0.0, 0.0, 0.0);
        let (mut error_sum, mut error_weight) = (0.0, 0.0);
        for (index, &[negative, positive]) in self.filled().iter().enumerate() {
            if negative + positive == 0.0 {
                continue;
            }
            let rate = spacing.middle((self.touched.start + index) as u32);
            if rate - run_start > MAX_SPAN {
                run_start = rate;
                (shows, predicted, clicks) = (0.0, 0.0, 0.0);
            }
            shows += negative + positive;
            predicted += rate * (negative + positive);
            clicks += positive;
            let predicted_rate = predicted / shows;
            let relative_error = ((1.0 - predicted_rate) / (predicted_rate * shows)).sqrt();
            if relative_error < RELATIVE_ERROR_BOUND {
                error_sum += (clicks / shows / predicted_rate - 1.0).abs() * shows;
                error_weight += shows;
                run_start = f64::NEG_INFINITY;
            }
        }
        if error_weight > 0.0 {
            error_sum / error_weight
        } else {
            0.0
        }
    }

    /// Non-empty buckets only: most of a histogram is zero.
    pub(crate) fn write(&self, out: &mut Writer) {
        let first = self.touched.start;
        let not_empty = || {
            let buckets = self.filled().iter().enumerate();
            buckets.filter(|(_, pair)| pair[0] + pair[1] > 0.0)
        };
        out.u64(not_empty().count() as u64);
        for (bucket, pair) in not_empty() {
            out.u32((first + bucket) as u32);
            out.f64(pair[0]);
            out.f64(pair[1]);
        }
    }

    pub(crate) fn read(input: &mut Reader<'_>, num_buckets: usize) -> Result<Self, Error> {
        let mut histogram = Self::new(num_buckets);
        for _ in 0..input.u64()? {
            let bucket = input.u32()?;
            if bucket as usize >= num_buckets {
                return Err(input.error("bucket outside the histogram"));
            }
            histogram.add(bucket, false, input.f64()?);
            histogram.add(bucket, true, input.f64()?);
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(spacing: Spacing, samples: &[(f32, bool, f64)]) -> Histogram {
        let mut histogram = Histogram::new(spacing.num_buckets());
        for &(score, is_positive, weight) in samples {
            histogram.add(spacing.bucket(score), is_positive, weight);
        }
        histogram
    }

    #[test]
    fn ties_count_half() {
        let histogram = filled(
            Spacing::Logit,
            &[(0.3, true, 1.0), (0.3, false, 1.0), (0.1, false, 2.0)],
        );
        assert!((histogram.auc() - 2.5 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn one_class_gives_one_half() {
        assert!((filled(Spacing::Logit, &[(0.9, true, 1.0)]).auc() - 0.5).abs() < 1e-15);
        assert!((Histogram::new(5).auc() - 0.5).abs() < 1e-15);
    }

    #[test]
    fn bucket_error_is_the_relative_miscalibration() {
        // Predicts 0.5 where 0.6 click: off by a fifth.
        let spacing = Spacing::Uniform { thresholds: 4096 };
        let histogram = filled(spacing, &[(0.5, true, 600.0), (0.5, false, 400.0)]);
        assert!((histogram.bucket_error(spacing) - 0.2).abs() < 1e-12);
    }

    #[test]
    fn bucket_error_ignores_runs_with_too_few_samples() {
        let spacing = Spacing::Uniform { thresholds: 4096 };
        let histogram = filled(spacing, &[(0.5, true, 60.0), (0.5, false, 40.0)]);
        assert!(histogram.bucket_error(spacing).abs() < 1e-15);
    }
}
