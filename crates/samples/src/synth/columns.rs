//! The shape of the columns: how many values, how skewed, how often empty, and which go together.
//!
//! The figures follow the public Criteo display-advertising log: some columns have three values and some
//! millions; those that describe one thing (an advertisement, a page) are missing together and move
//! together.

use super::math::{exp, ln};

pub(super) const NUM_DENSE: usize = 13;
pub(super) const NUM_SPARSE: usize = 26;

/// What several columns of a row are drawn from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Own,
    Advertisement,
    Page,
}

pub(super) struct SparseColumn {
    /// Number of values that can occur.
    pub(super) cardinality: u32,
    pub(super) source: Source,
    /// Columns of one number are empty in the same rows; 0: never empty.
    pub(super) gap: usize,
    /// Weight of the column in the hidden model, before normalisation.
    pub(super) weight: f64,
    zipf: Zipf,
}

pub(super) struct DenseColumn {
    /// Mean and standard deviation of ln(1 + x - lowest).
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) lowest: i64,
    pub(super) gap: usize,
    /// Weights of the straight and of the bent part of its effect.
    pub(super) slope: f64,
    pub(super) bend: f64,
}

/// Share of rows in which the columns of a gap are empty; the first entry stands for "never".
pub(super) const GAPS: [f64; 10] = [0.0, 0.448, 0.209, 0.213, 0.032, 0.045, 0.765, 0.036, 0.432, 0.127];
/// C22 has a gap of its own and is the emptiest column of all.
pub(super) const GAP_C22: usize = GAPS.len();
pub(super) const SHARE_C22: f64 = 0.779;
pub(super) const NUM_GAPS: usize = GAPS.len() + 1;

/// Bounded power law, drawn by its inverse: P(rank) is proportional to about 1 / (1 + rank)^exponent.
struct Zipf {
    /// 1 / (1 - exponent).
    root: f64,
    /// (cardinality + 1)^(1 - exponent) - 1.
    span: f64,
    last: u32,
}

impl Zipf {
    fn new(cardinality: u32, exponent: f64) -> Self {
        let power = 1.0 - exponent;
        Self {
            root: 1.0 / power,
            span: exp(power * ln(f64::from(cardinality) + 1.0)) - 1.0,
            last: cardinality - 1,
        }
    }

    #[inline]
    fn rank(&self, uniform: f64) -> u32 {
        let position = exp(ln(1.0 + uniform * self.span) * self.root);
        (position as u32).saturating_sub(1).min(self.last)
    }
}

impl SparseColumn {
    /// The rank of the value at a quantile; 0 is the most frequent.
    #[inline]
    pub(super) fn rank(&self, uniform: f64) -> u32 {
        self.zipf.rank(uniform)
    }
}

fn sparse(cardinality: u32, exponent: f64, source: Source, gap: usize, weight: f64) -> SparseColumn {
    SparseColumn {
        cardinality,
        source,
        gap,
        weight,
        zipf: Zipf::new(cardinality, exponent),
    }
}

pub(super) fn sparse_columns() -> [SparseColumn; NUM_SPARSE] {
    use Source::{Advertisement, Own, Page};
    [
        sparse(1_460, 1.9, Own, 0, 1.0),
        sparse(583, 1.01, Own, 0, 1.0),
        sparse(2_000_000, 0.95, Advertisement, 7, 0.5),
        sparse(600_000, 1.01, Advertisement, 7, 0.5),
        sparse(305, 2.4, Own, 0, 0.8),
        sparse(20, 1.6, Own, 9, 0.8),
        sparse(12_500, 0.75, Page, 0, 0.8),
        sparse(633, 2.2, Own, 0, 0.8),
        sparse(3, 3.0, Own, 0, 0.5),
        sparse(90_000, 1.15, Own, 0, 0.7),
        sparse(5_600, 0.75, Page, 0, 1.0),
        sparse(1_600_000, 0.95, Advertisement, 7, 0.5),
        sparse(3_200, 0.75, Page, 0, 1.0),
        sparse(27, 1.3, Own, 0, 0.8),
        sparse(14_900, 0.7, Page, 0, 0.8),
        sparse(1_300_000, 0.95, Advertisement, 7, 0.5),
        sparse(10, 1.2, Own, 0, 1.0),
        sparse(5_650, 0.9, Own, 0, 0.8),
        sparse(2_170, 1.5, Own, 8, 0.8),
        sparse(4, 0.1, Own, 8, 0.8),
        sparse(1_500_000, 0.95, Advertisement, 7, 0.5),
        sparse(18, 1.6, Own, GAP_C22, 0.6),
        sparse(16, 1.3, Own, 0, 1.0),
        sparse(140_000, 1.01, Advertisement, 7, 0.7),
        sparse(100, 1.1, Own, 8, 0.8),
        sparse(60_000, 1.01, Own, 8, 0.7),
    ]
}

fn dense(median: f64, deviation: f64, lowest: i64, gap: usize, slope: f64, bend: f64) -> DenseColumn {
    DenseColumn {
        mean: ln(1.0 + median - lowest as f64),
        deviation,
        lowest,
        gap,
        slope,
        bend,
    }
}

pub(super) fn dense_columns() -> [DenseColumn; NUM_DENSE] {
    [
        dense(1.0, 0.9, 0, 1, 0.8, -0.3),
        dense(3.0, 1.3, -3, 0, 0.4, 0.5),
        dense(7.0, 1.2, 0, 2, -0.5, 0.4),
        dense(4.0, 1.0, 0, 3, 0.5, -0.5),
        dense(2_700.0, 1.7, 0, 4, -0.9, 0.3),
        dense(34.0, 1.3, 0, 2, -0.8, 0.4),
        dense(3.0, 1.2, 0, 5, 0.9, -0.4),
        dense(7.0, 1.0, 0, 0, 0.3, 0.6),
        dense(39.0, 1.4, 0, 5, -0.4, -0.6),
        dense(0.9, 0.5, 0, 1, 0.5, 0.2),
        dense(1.4, 0.9, 0, 5, 0.9, -0.3),
        dense(0.3, 0.7, 0, 6, 0.3, 0.2),
        dense(4.5, 1.0, 0, 3, -0.6, 0.5),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_cover_their_range_and_the_first_is_the_most_frequent() {
        for column in sparse_columns() {
            assert_eq!(column.rank(0.0), 0);
            assert!(column.rank(0.999_999_999_999) < column.cardinality);
            let first = (0..10_000)
                .filter(|&n| column.rank(f64::from(n) / 1e4) == 0)
                .count();
            let second = (0..10_000)
                .filter(|&n| column.rank(f64::from(n) / 1e4) == 1)
                .count();
            assert!(first >= second, "cardinality {}", column.cardinality);
        }
    }
}
