//! What is known of one raw column: how often, how many, how large.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use clickmill_types::sign::{self, Sign};
use serde::Serialize;

use crate::fit::Moments;
use crate::number;

/// Distinct values up to which counts are exact.
const MOST_EXACT: usize = 10_000;

/// Most frequent values that are reported.
const MOST_FREQUENT: usize = 5;

/// Registers of the distinct-value estimate: a standard error of 0.8 %.
const REGISTER_BITS: u32 = 14;

#[derive(Clone, Debug, Serialize)]
pub struct ColumnReport {
    pub name: String,
    /// Share of rows that have a value.
    pub coverage: f64,
    /// Distinct values; exact where `is_exact`.
    pub distinct: u64,
    pub is_exact: bool,
    /// Most frequent values with their share of all values, the most frequent first.
    pub frequent: Vec<(String, f64)>,
    /// None where fewer than half of the values are numbers.
    pub numbers: Option<NumberReport>,
    /// Values per row that has any: mean and most.
    pub mean_length: f64,
    pub max_length: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct NumberReport {
    /// Share of the values that are numbers.
    pub share: f64,
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

#[derive(Default)]
pub(crate) struct ColumnStatistics {
    num_values: u64,
    num_rows: u64,
    max_length: u64,
    counts: Counts,
    registers: Vec<u8>,
    moments: Moments,
    min: f64,
    max: f64,
}

/// Counts of values: all of them while they are few, then those that keep coming (Misra–Gries).
#[derive(Default)]
struct Counts {
    of: HashMap<Sign, Count, BuildHasherDefault<AsIs>>,
    /// What a kept value may have been counted too little.
    lost: u64,
}

struct Count {
    value: Vec<u8>,
    times: u64,
}

/// Signs are spread already: hashing them again would only cost time.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = sign::sign(bytes, 0);
    }

    fn write_u64(&mut self, sign: u64) {
        self.0 = sign;
    }
}

impl Counts {
    fn add(&mut self, sign: Sign, value: &[u8]) {
        if let Some(count) = self.of.get_mut(&sign) {
            count.times += 1;
            return;
        }
        if self.of.len() >= MOST_EXACT {
            // Everything loses as much as half of the values have at most: room without a sort.
            let mut counts: Vec<u64> = self.of.values().map(|count| count.times).collect();
            let middle = counts.len() / 2;
            let (_, &mut median, _) = counts.select_nth_unstable(middle);
            self.lost += median;
            self.of.retain(|_, count| {
                count.times = count.times.saturating_sub(median);
                count.times > 0
            });
        }
        let count = Count {
            value: value.to_vec(),
            times: 1,
        };
        self.of.insert(sign, count);
    }
}

impl ColumnStatistics {
    pub(crate) fn add(&mut self, value: &[u8]) {
        self.num_values += 1;
        let sign = sign::sign(value, 0);
        self.counts.add(sign, value);
        self.register(sign);
        if let Some(value) = number::parse_if_any(value) {
            let value = f64::from(value);
            if self.moments.count == 0 {
                (self.min, self.max) = (value, value);
            }
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.moments.add(value);
        }
    }

    pub(crate) fn end_row(&mut self, length: u64) {
        self.num_rows += u64::from(length > 0);
        self.max_length = self.max_length.max(length);
    }

    fn register(&mut self, hash: u64) {
        if self.registers.is_empty() {
            self.registers = vec![0; 1 << REGISTER_BITS];
        }
        let place = (hash >> (64 - REGISTER_BITS)) as usize;
        let rank = ((hash << REGISTER_BITS).leading_zeros() + 1).min(64 - REGISTER_BITS + 1) as u8;
        self.registers[place] = self.registers[place].max(rank);
    }

    /// Distinct values by the harmonic mean of the registers, by empty registers while there are many.
    fn estimate(&self) -> f64 {
        let count = self.registers.len() as f64;
        let sum: f64 = self.registers.iter().map(|&rank| (-f64::from(rank)).exp2()).sum();
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let num_empty = memchr::memchr_iter(0, &self.registers).count();
        if raw <= 2.5 * count && num_empty > 0 {
            count * (count / num_empty as f64).ln()
        } else {
            raw
        }
    }

    pub(crate) fn report(&self, name: &str, rows: u64) -> ColumnReport {
        let is_exact = self.counts.lost == 0;
        let share = |count: u64| count as f64 / self.num_values.max(1) as f64;
        let mut frequent: Vec<(&[u8], u64)> = self
            .counts
            .of
            .values()
            .map(|count| (count.value.as_slice(), count.times))
            .collect();
        frequent.sort_unstable_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(right.0)));
        frequent.truncate(MOST_FREQUENT);
        let number_share = share(self.moments.count);
        ColumnReport {
            name: name.to_owned(),
            coverage: self.num_rows as f64 / rows.max(1) as f64,
            distinct: if is_exact {
                self.counts.of.len() as u64
            } else {
                self.estimate().round() as u64
            },
            is_exact,
            frequent: frequent
                .into_iter()
                .map(|(value, count)| {
                    let text = String::from_utf8_lossy(value).into_owned();
                    (text, share(count + self.counts.lost.min(count)))
                })
                .collect(),
            numbers: (number_share >= 0.5 && self.moments.count > 0).then_some(NumberReport {
                share: number_share,
                min: self.min,
                mean: self.moments.mean,
                max: self.max,
            }),
            mean_length: self.num_values as f64 / self.num_rows.max(1) as f64,
            max_length: self.max_length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_distinct_values_are_estimated_within_three_percent() {
        let mut column = ColumnStatistics::default();
        for value in 0..200_000u32 {
            column.add(value.to_string().as_bytes());
            column.add(b"often");
            column.end_row(2);
        }
        let report = column.report("c", 200_000);
        assert!(!report.is_exact);
        assert!(
            (194_000..206_000).contains(&report.distinct),
            "{}",
            report.distinct
        );
        assert_eq!(report.frequent[0].0, "often");
        assert!((report.frequent[0].1 - 0.5).abs() < 0.01, "{:?}", report.frequent);
        assert_eq!(report.max_length, 2);
    }

    #[test]
    fn few_distinct_values_are_counted() {
        let mut column = ColumnStatistics::default();
        for value in ["1", "2", "2", "x"] {
            column.add(value.as_bytes());
            column.end_row(1);
        }
        let report = column.report("c", 8);
        assert!(report.is_exact);
        assert_eq!((report.distinct, report.coverage), (3, 0.5));
        assert_eq!(report.frequent[0], ("2".to_owned(), 0.5));
        let numbers = report.numbers.expect("three of four are numbers");
        assert_eq!((numbers.share, numbers.min, numbers.max), (0.75, 1.0, 2.0));
    }
}
