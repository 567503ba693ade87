//! The hidden model: draws a row, and knows the probability of its click.
//!
//! The probability is a function of what is written in the row and of nothing else, so that it is the best
//! score that any model can give. Its logit has three parts, each brought to a fixed spread whatever the
//! seed: one weight per value, products between columns, and bent effects of the numbers. Drift turns the
//! weights slowly and lets values die and be replaced.

use super::columns::{
    DenseColumn, GAP_C22, GAPS, NUM_DENSE, NUM_GAPS, NUM_SPARSE, SHARE_C22, Source, SparseColumn,
    dense_columns, sparse_columns,
};
use super::math::{exp, ln, sigmoid};
use super::random::{Stream, bell, hash};

/// The probability of a click comes in steps of 1 / 65536: its histogram makes the Bayes AUC exact.
pub(super) const NUM_STEPS: usize = 1 << 16;

const CLICK_RATE: f64 = 0.25;
/// Standard deviations of the three parts of the logit.
const SPREAD: Logit = Logit {
    values: 1.05,
    products: 1.0,
    numbers: 0.95,
};
/// Rows from which mean and spread of each part are measured; they are never written.
const NUM_PILOT: u64 = 20_000;
const PILOT_STREAM: u64 = 0x0070_696c_6f74;
/// How often a column follows the thing that it describes.
const FIDELITY: f64 = 0.9;
/// Products of two sparse columns. Both sides have few frequent values, so that they can be learnt.
const PAIRS: [(usize, usize); 10] = [
    (1, 13),
    (1, 16),
    (0, 22),
    (5, 16),
    (13, 24),
    (7, 5),
    (19, 22),
    (4, 13),
    (12, 16),
    (10, 22),
];
/// Products of a number and a sparse column.
const MIXED: [(usize, usize); 4] = [(4, 16), (6, 13), (5, 22), (8, 1)];
/// Products of two numbers.
const NUMBERS: [(usize, usize); 3] = [(4, 10), (5, 6), (1, 12)];

/// Stands for an empty sparse field among the ranks.
pub(super) const EMPTY: u32 = u32::MAX;

/// One sample: what is written, and the truth about it.
#[derive(Clone)]
pub(super) struct Row {
    /// `None` is an empty field.
    pub(super) numbers: [Option<i64>; NUM_DENSE],
    /// The 32 bits that are written as eight hexadecimal digits; `None` is an empty field.
    pub(super) values: [Option<u32>; NUM_SPARSE],
    /// Step of the probability of a click: (step + 1/2) / 65536.
    pub(super) step: u16,
    pub(super) clicked: bool,
}

/// Probability that a step stands for.
pub(super) fn probability(step: u16) -> f64 {
    (f64::from(step) + 0.5) / NUM_STEPS as f64
}

#[derive(Clone, Copy)]
struct Logit {
    values: f64,
    products: f64,
    numbers: f64,
}

impl Logit {
    fn parts(self) -> [f64; 3] {
        [self.values, self.products, self.numbers]
    }
}

/// What has been drawn for a row, before its truth is known.
struct Draw {
    numbers: [Option<i64>; NUM_DENSE],
    ids: [u32; NUM_SPARSE],
}

pub(super) struct Model {
    seed: u64,
    drift: f64,
    sparse: [SparseColumn; NUM_SPARSE],
    dense: [DenseColumn; NUM_DENSE],
    value_keys: [u64; NUM_SPARSE],
    vector_keys: [u64; NUM_SPARSE],
    scale: [f64; 3],
    intercept: f64,
}

impl Model {
    /// `drift` is in turns of the whole population of values per million rows; 0 is a stationary log.
    pub(super) fn new(seed: u64, drift: f64) -> Self {
        let mut model = Self {
            seed,
            drift,
            sparse: sparse_columns(),
            dense: dense_columns(),
            value_keys: std::array::from_fn(|column| hash(seed, 1_000 + column as u64)),
            vector_keys: std::array::from_fn(|column| hash(seed, 2_000 + column as u64)),
            scale: [1.0; 3],
            intercept: 0.0,
        };
        model.calibrate();
        model
    }

    /// Brings each part of the logit to its spread, and the mean probability to the click rate.
    fn calibrate(&mut self) {
        let pilot: Vec<[f64; 3]> = (0..NUM_PILOT)
            .map(|row| {
                let draw = self.draw(&mut Stream::of_row(hash(self.seed, PILOT_STREAM), row), 0.0);
                self.logit(&draw, 0.0).parts()
            })
            .collect();
        let count = NUM_PILOT as f64;
        let mut centre = 0.0;
        for (part, spread) in SPREAD.parts().into_iter().enumerate() {
            let mean = pilot.iter().map(|logit| logit[part]).sum::<f64>() / count;
            let variance = pilot
                .iter()
                .map(|logit| (logit[part] - mean).powi(2))
                .sum::<f64>()
                / count;
            self.scale[part] = spread / variance.sqrt();
            centre += mean * self.scale[part];
        }
        let logits: Vec<f64> = pilot
            .iter()
            .map(|parts| {
                parts
                    .iter()
                    .zip(&self.scale)
                    .map(|(part, scale)| part * scale)
                    .sum()
            })
            .collect();
        let (mut low, mut high) = (-centre - 20.0, -centre + 20.0);
        for _ in 0..60 {
            self.intercept = f64::midpoint(low, high);
            let rate = logits
                .iter()
                .map(|logit| sigmoid(logit + self.intercept))
                .sum::<f64>()
                / count;
            if rate < CLICK_RATE {
                low = self.intercept;
            } else {
                high = self.intercept;
            }
        }
    }

    pub(super) fn row(&self, row: u64) -> Row {
        let time = self.drift * row as f64 / 1e6;
        let mut stream = Stream::of_row(self.seed, row);
        let draw = self.draw(&mut stream, time);
        let logit: f64 = self
            .logit(&draw, time)
            .parts()
            .iter()
            .zip(&self.scale)
            .map(|(part, scale)| part * scale)
            .sum();
        let step = (sigmoid(logit + self.intercept) * NUM_STEPS as f64) as usize;
        let step = step.min(NUM_STEPS - 1) as u16;
        Row {
            numbers: draw.numbers,
            values: std::array::from_fn(|column| {
                (draw.ids[column] != EMPTY).then(|| spread_bits(draw.ids[column], self.value_keys[column]))
            }),
            step,
            clicked: stream.unit() < probability(step),
        }
    }

    fn draw(&self, stream: &mut Stream, time: f64) -> Draw {
        let mut is_gap = [false; NUM_GAPS];
        for (gap, share) in GAPS.iter().enumerate().skip(1) {
            is_gap[gap] = stream.unit() < *share;
        }
        is_gap[GAP_C22] = stream.unit() < SHARE_C22;
        let (advertisement, page) = (stream.unit(), stream.unit());
        let numbers = std::array::from_fn(|column| {
            let dense = &self.dense[column];
            let spread = bell(stream.bits());
            (!is_gap[dense.gap])
                .then(|| (exp(dense.mean + dense.deviation * spread) - 1.0).max(0.0) as i64 + dense.lowest)
        });
        let ids = std::array::from_fn(|column| {
            let sparse = &self.sparse[column];
            let (own, coin) = (stream.unit(), stream.unit());
            let uniform = match sparse.source {
                Source::Advertisement if coin < FIDELITY => advertisement,
                Source::Page if coin < FIDELITY => page,
                Source::Own | Source::Advertisement | Source::Page => own,
            };
            if is_gap[sparse.gap] {
                EMPTY
            } else {
                self.id(column, sparse.rank(uniform), time)
            }
        });
        Draw { numbers, ids }
    }

    /// The value that holds a rank at a time: with drift each is replaced once per unit of time, at its own
    /// moment, in columns that have many.
    fn id(&self, column: usize, rank: u32, time: f64) -> u32 {
        let cardinality = self.sparse[column].cardinality;
        if self.drift == 0.0 || cardinality < 5_000 {
            return rank;
        }
        let moment = super::random::unit(hash(self.value_keys[column] ^ 1, u64::from(rank)));
        let generation = (time + moment) as u32;
        // The largest id is left to the empty field.
        rank.wrapping_add(generation.wrapping_mul(cardinality))
            .min(EMPTY - 1)
    }

    fn logit(&self, draw: &Draw, time: f64) -> Logit {
        let numbers: [f64; NUM_DENSE] =
            std::array::from_fn(|column| self.level(column, draw.numbers[column]));
        Logit {
            values: (0..NUM_SPARSE)
                .map(|column| self.value_effect(column, draw.ids[column], time))
                .sum(),
            products: self.product_effect(draw, &numbers),
            numbers: self.number_effect(draw, &numbers),
        }
    }

    /// A number on the scale on which it acts; an empty field lies in the middle.
    fn level(&self, column: usize, number: Option<i64>) -> f64 {
        let dense = &self.dense[column];
        number.map_or(0.0, |number| {
            (ln(1.0 + (number - dense.lowest) as f64) - dense.mean) / dense.deviation
        })
    }

    fn value_effect(&self, column: usize, id: u32, time: f64) -> f64 {
        let bits = hash(self.value_keys[column], u64::from(id));
        let weight = if time == 0.0 {
            bell(bits)
        } else {
            // A turn from one set of weights towards another that keeps the spread.
            (bell(bits) + time * bell(hash(bits, 7))) / (1.0 + time * time).sqrt()
        };
        self.sparse[column].weight * weight
    }

    fn product_effect(&self, draw: &Draw, numbers: &[f64; NUM_DENSE]) -> f64 {
        let vector = |column: usize| vector(hash(self.vector_keys[column], u64::from(draw.ids[column])));
        let pairs: f64 = PAIRS
            .iter()
            .map(|&(left, right)| {
                let (left, right) = (vector(left), vector(right));
                left.iter().zip(&right).map(|(a, b)| a * b).sum::<f64>()
            })
            .sum();
        let mixed: f64 = MIXED
            .iter()
            .map(|&(number, column)| numbers[number] * vector(column)[0])
            .sum();
        pairs + mixed
    }

    fn number_effect(&self, draw: &Draw, numbers: &[f64; NUM_DENSE]) -> f64 {
        let single: f64 = self
            .dense
            .iter()
            .enumerate()
            .map(|(column, dense)| match draw.numbers[column] {
                Some(_) => {
                    let level = numbers[column];
                    dense.slope * level + dense.bend * (level * level - 1.0)
                }
                None => -0.5 * dense.slope,
            })
            .sum();
        single + NUMBERS.iter().map(|&(a, b)| numbers[a] * numbers[b]).sum::<f64>()
    }
}

/// Two directions in which a value acts together with others, each with variance 1.
#[inline]
fn vector(bits: u64) -> [f64; 2] {
    let part = |bits: u64| {
        ((bits & 0xffff_ffff) as f64 - 2_147_483_647.5) * (3.464_101_615_137_754_6 / 4_294_967_296.0)
    };
    [part(bits), part(bits >> 32)]
}

/// Scatters ids over 32 bits one to one, so that no two values of a column share a text.
#[inline]
fn spread_bits(id: u32, key: u64) -> u32 {
    let mut x = id ^ (key as u32);
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    (x ^ (x >> 16)) ^ ((key >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn click_rate(model: &Model, rows: std::ops::Range<u64>) -> f64 {
        let count = rows.end - rows.start;
        rows.filter(|&row| model.row(row).clicked).count() as f64 / count as f64
    }

    #[test]
    fn a_quarter_of_the_rows_is_clicked_whatever_the_seed() {
        for seed in [0, 1, 77] {
            let rate = click_rate(&Model::new(seed, 0.0), 0..20_000);
            assert!((rate - CLICK_RATE).abs() < 0.02, "seed {seed}: {rate}");
        }
    }

    #[test]
    fn labels_follow_the_stated_probability() {
        let model = Model::new(5, 0.0);
        let rows: Vec<Row> = (0..40_000).map(|row| model.row(row)).collect();
        let expected: f64 = rows.iter().map(|row| probability(row.step)).sum();
        let clicked = rows.iter().filter(|row| row.clicked).count() as f64;
        // Four standard deviations of a sum of independent draws.
        let deviation = rows
            .iter()
            .map(|row| probability(row.step))
            .map(|p| p * (1.0 - p))
            .sum::<f64>()
            .sqrt();
        assert!((clicked - expected).abs() < 4.0 * deviation);
    }

    #[test]
    fn ids_of_a_column_never_share_a_text() {
        let mut texts: Vec<u32> = (0..200_000)
            .map(|id| spread_bits(id, 0x1234_5678_9abc_def0))
            .collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 200_000);
    }

    #[test]
    fn drift_replaces_values_and_a_stationary_log_keeps_them() {
        let fresh = |drift: f64| {
            let model = Model::new(3, drift);
            let seen: std::collections::HashSet<_> =
                (0..20_000).filter_map(|row| model.row(row).values[6]).collect();
            (1_000_000..1_020_000)
                .filter_map(|row| model.row(row).values[6])
                .filter(|value| !seen.contains(value))
                .count()
        };
        let (still, moving) = (fresh(0.0), fresh(1.0));
        assert!(moving > 4 * still, "{still} {moving}");
    }
}
