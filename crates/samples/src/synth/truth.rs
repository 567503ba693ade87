//! What is known about the rows written: labels against true probabilities.
//!
//! Probabilities come in 65536 steps, so two histograms hold everything; AUC and log loss over any number
//! of rows are exact, merge in any order, and take one megabyte.

use super::model::{NUM_STEPS, probability};

pub(super) struct Truth {
    clicked: Vec<u64>,
    passed: Vec<u64>,
}

impl Truth {
    pub(super) fn new() -> Self {
        Self {
            clicked: vec![0; NUM_STEPS],
            passed: vec![0; NUM_STEPS],
        }
    }

    pub(super) fn add(&mut self, step: u16, clicked: bool) {
        let histogram = if clicked {
            &mut self.clicked
        } else {
            &mut self.passed
        };
        histogram[usize::from(step)] += 1;
    }

    pub(super) fn positives(&self) -> u64 {
        self.clicked.iter().sum()
    }

    /// Probability that a clicked row has a higher true probability than one that was not; ties count half.
    /// 0.5 where there is only one kind of row.
    pub(super) fn auc(&self) -> f64 {
        let (mut below, mut twice_won) = (0_u128, 0_u128);
        for (&clicked, &passed) in self.clicked.iter().zip(&self.passed) {
            twice_won += u128::from(clicked) * (2 * below + u128::from(passed));
            below += u128::from(passed);
        }
        let pairs = below * u128::from(self.positives());
        if pairs == 0 {
            0.5
        } else {
            twice_won as f64 / (2.0 * pairs as f64)
        }
    }

    /// Mean log loss of the true probability.
    pub(super) fn log_loss(&self) -> f64 {
        let (mut sum, mut count) = (0.0, 0_u64);
        for (step, (&clicked, &passed)) in self.clicked.iter().zip(&self.passed).enumerate() {
            let p = probability(step as u16);
            sum -= clicked as f64 * p.ln() + passed as f64 * (1.0 - p).ln();
            count += clicked + passed;
        }
        sum / count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auc_counts_pairs_and_half_of_the_ties() {
        let mut truth = Truth::new();
        for (step, clicked) in [(10, false), (10, true), (20, false), (30, true)] {
            truth.add(step, clicked);
        }
        // Pairs: (10, 10) tie, (10, 20) lost, (30, 10) and (30, 20) won.
        assert!((truth.auc() - 2.5 / 4.0).abs() < 1e-15);
    }

    #[test]
    fn auc_of_one_kind_of_row_is_a_half() {
        let mut truth = Truth::new();
        truth.add(3, true);
        assert!((truth.auc() - 0.5).abs() < 1e-15);
    }

    #[test]
    fn log_loss_of_an_even_coin_is_ln_2() {
        let mut truth = Truth::new();
        truth.add(32_768, true);
        truth.add(32_767, false);
        assert!((truth.log_loss() - std::f64::consts::LN_2).abs() < 1e-4);
    }
}
