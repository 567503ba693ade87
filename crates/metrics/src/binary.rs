//! Metrics of a click model: probabilities against labels of 0 and 1.

use crate::arguments::Batch;
use crate::fixed::FixedSum;
use crate::histogram::Histogram;
use crate::state::{Reader, Writer};
use crate::terms::terms;
use crate::window::Window;
use crate::{Accumulator, Error, Spacing};

const NAME: &str = "BinaryMetrics";
const TAG: [u8; 4] = *b"CMB1";

/// Everything about a stream of scored samples whose size does not grow with the stream.
///
/// Sums are integers and histograms hold whole numbers as long as weights do, so that merging is associative
/// and commutative to the last bit.
#[derive(Clone, Debug, PartialEq)]
pub struct BinaryMetrics {
    spacing: Spacing,
    count: u64,
    sums: [FixedSum; 7],
    histogram: Histogram,
    window: Window,
}

/// What has been measured; NaN where there is nothing to divide by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BinaryReport {
    /// Samples, whatever they weigh.
    pub count: u64,
    /// 0.5 while a class is empty.
    pub auc: f64,
    pub log_loss: f64,
    /// Log loss divided by that of always predicting the mean click rate.
    pub normalised_entropy: f64,
    /// Clicks over predicted clicks.
    pub copc: f64,
    pub mae: f64,
    pub rmse: f64,
    pub actual_ctr: f64,
    pub predicted_ctr: f64,
    pub bucket_error: f64,
    /// Mean of sigmoid(score), which `PaddleRec` prints.
    pub mean_q_value: f64,
}

impl BinaryReport {
    /// Every number under the name that people know it by.
    pub fn named(&self) -> [(&'static str, f64); 11] {
        [
            ("count", self.count as f64),
            ("auc", self.auc),
            ("logloss", self.log_loss),
            ("ne", self.normalised_entropy),
            ("copc", self.copc),
            ("mae", self.mae),
            ("rmse", self.rmse),
            ("actual_ctr", self.actual_ctr),
            ("predicted_ctr", self.predicted_ctr),
            ("bucket_error", self.bucket_error),
            ("mean_q", self.mean_q_value),
        ]
    }
}

impl BinaryMetrics {
    /// `num_window_batches` is how many of the last batches `batch_auc` covers; 0 keeps none.
    pub fn new(spacing: Spacing, num_window_batches: usize) -> Self {
        Self {
            spacing,
            count: 0,
            sums: [FixedSum::default(); 7],
            histogram: Histogram::new(spacing.num_buckets()),
            window: Window::new(num_window_batches),
        }
    }

    /// Takes the whole batch, or nothing of it when a value is not allowed.
    pub fn update(&mut self, scores: &[f32], labels: &[f32], weights: Option<&[f32]>) -> Result<(), Error> {
        let batch = Batch::new(scores, labels, weights)?;
        batch.check_binary()?;
        if batch.len() == 0 {
            return Ok(());
        }
        let terms = terms(batch);
        let values = [
            terms.weight,
            terms.clicks,
            terms.predicted,
            terms.absolute_error,
            terms.squared_error,
            terms.log_loss,
            terms.q_value,
        ];
        for (sum, value) in self.sums.iter_mut().zip(values) {
            sum.add(value);
        }
        self.count += batch.len() as u64;
        self.count_ranks(batch);
        Ok(())
    }

    fn count_ranks(&mut self, batch: Batch<'_>) {
        let mut kept = self.window.take_oldest();
        let spacing = self.spacing;
        kept.samples.extend(
            batch
                .scores
                .iter()
                .zip(batch.labels)
                .map(|(&score, &label)| spacing.bucket(score) << 1 | u32::from(label != 0.0)),
        );
        for (row, &sample) in kept.samples.iter().enumerate() {
            self.histogram
                .add(sample >> 1, sample & 1 == 1, f64::from(batch.weight(row)));
        }
        kept.weights.extend_from_slice(batch.weights.unwrap_or(&[]));
        self.window.push(kept);
    }

    /// AUC since the last reset.
    pub fn auc(&self) -> f64 {
        self.histogram.auc()
    }

    /// AUC of the last batches.
    pub fn batch_auc(&self) -> f64 {
        self.window.auc(self.spacing)
    }

    pub fn report(&self) -> BinaryReport {
        let [
            weight,
            clicks,
            predicted,
            absolute_error,
            squared_error,
            log_loss,
            q_value,
        ] = self.sums.map(FixedSum::value);
        let log_loss = log_loss / weight;
        let actual_ctr = clicks / weight;
        BinaryReport {
            count: self.count,
            auc: self.auc(),
            log_loss,
            normalised_entropy: log_loss / entropy(actual_ctr),
            copc: clicks / predicted,
            mae: absolute_error / weight,
            rmse: (squared_error / weight).sqrt(),
            actual_ctr,
            predicted_ctr: predicted / weight,
            bucket_error: self.histogram.bucket_error(self.spacing),
            mean_q_value: q_value / weight,
        }
    }

    pub fn num_window_batches(&self) -> usize {
        self.window.num_batches()
    }
}

impl Accumulator for BinaryMetrics {
    fn count(&self) -> u64 {
        self.count
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if self.spacing != other.spacing {
            return Err(Error::Mismatch {
                metric: NAME,
                left: format!("{:?} buckets", self.spacing),
                right: format!("{:?} buckets", other.spacing),
            });
        }
        self.count += other.count;
        for (mine, theirs) in self.sums.iter_mut().zip(other.sums) {
            mine.merge(theirs);
        }
        self.histogram.merge(&other.histogram);
        self.window.merge(&other.window);
        Ok(())
    }

    fn reset(&mut self) {
        self.count = 0;
        self.sums = [FixedSum::default(); 7];
        self.histogram.clear();
        self.window.clear();
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new(TAG);
        out.u32(self.spacing.thresholds());
        out.u64(self.count);
        self.sums.iter().for_each(|sum| out.raw(sum.to_bytes()));
        self.histogram.write(&mut out);
        self.window.write(&mut out);
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut input = Reader::new(NAME, TAG, bytes)?;
        let spacing = match input.u32()? {
            0 => Spacing::Logit,
            thresholds => {
                Spacing::uniform(thresholds).map_err(|_| input.error("more thresholds than allowed"))?
            }
        };
        let count = input.u64()?;
        let mut sums = [FixedSum::default(); 7];
        for sum in &mut sums {
            *sum = FixedSum::from_bytes(input.take()?);
        }
        let histogram = Histogram::read(&mut input, spacing.num_buckets())?;
        let window = Window::read(&mut input, spacing.num_buckets())?;
        input.finish()?;
        Ok(Self {
            spacing,
            count,
            sums,
            histogram,
            window,
        })
    }
}

/// Log loss of always predicting `rate`; NaN for a rate of 0 or 1, where nothing is left to predict.
fn entropy(rate: f64) -> f64 {
    if rate > 0.0 && rate < 1.0 {
        -rate * rate.ln() - (1.0 - rate) * (1.0 - rate).ln()
    } else {
        f64::NAN
    }
}
