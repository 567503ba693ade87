//! Dense Adam on rows that are touched now and then.
//!
//! Dense Adam moves a row in every step, touched or not: momentum goes on, and L2 pulls. A row here keeps
//! the state of its last update; whoever reads or updates it first replays the steps it missed, with the
//! learning rate that each of those steps had. A row begins at the step in which it was created.
//!
//! Without L2 the replayed updates shrink by beta1 / sqrt(beta2) each step; once all that remain add up to
//! less than [`NEGLIGIBLE`] for every weight, they are left out and the moments decay in one go. With L2
//! every missed step is replayed.

use clickmill_types::schema::MAX_DIM;

use crate::config::Optimizer;
use crate::lanes::each_with_two;

/// Bound on what leaving the tail of a replay out may change in a weight.
const NEGLIGIBLE: f64 = 1e-8;

/// Learning rates by step, as runs, and the numbers of each step made from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Per step from 1: `learning_rate / (1 - beta1^step)` and `1 / sqrt(1 - beta2^step)`.
    numbers: Vec<[f32; 2]>,
    /// (first step, learning rate) wherever the rate changes.
    runs: Vec<(u32, f32)>,
    /// Largest learning rate seen.
    largest: f32,
}

impl History {
    /// Steps known.
    pub(crate) fn len(&self) -> u32 {
        self.numbers.len() as u32
    }

    pub(crate) fn runs(&self) -> &[(u32, f32)] {
        &self.runs
    }

    /// The rate of `step`; steps in between that nobody named have the rate before them. The first rate
    /// named for a step stays.
    pub(crate) fn record(&mut self, step: u32, learning_rate: f32, beta1: f32, beta2: f32) {
        let before = self.runs.last().map_or(learning_rate, |run| run.1);
        while self.len() + 1 < step {
            self.push(before, beta1, beta2);
        }
        if self.len() < step {
            self.push(learning_rate, beta1, beta2);
        }
    }

    fn push(&mut self, learning_rate: f32, beta1: f32, beta2: f32) {
        let step = self.len() + 1;
        if self
            .runs
            .last()
            .is_none_or(|run| run.1.to_bits() != learning_rate.to_bits())
        {
            self.runs.push((step, learning_rate));
        }
        self.largest = self.largest.max(learning_rate);
        let exponent = f64::from(step);
        let correction1 = 1.0 - f64::from(beta1).powf(exponent);
        let correction2 = 1.0 - f64::from(beta2).powf(exponent);
        self.numbers.push([
            (f64::from(learning_rate) / correction1) as f32,
            (1.0 / correction2.sqrt()) as f32,
        ]);
    }
}

#[derive(Clone, Copy)]
pub(crate) struct CatchUp<'a> {
    pub history: &'a History,
    pub beta1: f32,
    pub beta2: f32,
    pub eps: f32,
    pub weight_decay: f32,
}

impl<'a> CatchUp<'a> {
    /// None for optimizers that leave rows at rest alone.
    pub(crate) fn new(history: &'a History, optimizer: Optimizer) -> Option<Self> {
        match optimizer {
            Optimizer::Adam {
                beta1,
                beta2,
                eps,
                weight_decay,
            } => Some(Self {
                history,
                beta1,
                beta2,
                eps,
                weight_decay,
            }),
            Optimizer::Sgd { .. }
            | Optimizer::Adagrad { .. }
            | Optimizer::RowWiseAdagrad { .. }
            | Optimizer::LazyAdam { .. }
            | Optimizer::Ftrl { .. } => None,
        }
    }

    /// One step of dense Adam; a row at rest has a gradient of zeros.
    #[inline(always)]
    pub(crate) fn step(
        &self,
        first: &mut [f32],
        second: &mut [f32],
        weights: &mut [f32],
        step: u32,
        grad: &[f32],
        scale: f32,
    ) {
        let [step_size, root] = self.history.numbers[step as usize - 1];
        each_with_two(weights, first, second, grad, |weight, first, second, grad| {
            let grad = grad * scale + self.weight_decay * weight;
            let first = first + (grad - first) * (1.0 - self.beta1);
            let second = second * self.beta2 + (1.0 - self.beta2) * grad * grad;
            (
                weight - step_size * (first / (second.sqrt() * root + self.eps)),
                first,
                second,
            )
        });
    }

    /// The steps after `last_step` up to `step`, without a gradient.
    pub(crate) fn replay(
        &self,
        first: &mut [f32],
        second: &mut [f32],
        weights: &mut [f32],
        last_step: u32,
        step: u32,
    ) {
        let rest = [0.0; MAX_DIM as usize];
        for now in last_step + 1..=step {
            if self.weight_decay == 0.0 && self.is_negligible(first, second, now) {
                let missed = f64::from(step - now + 1);
                let (decay1, decay2) = (
                    f64::from(self.beta1).powf(missed) as f32,
                    f64::from(self.beta2).powf(missed) as f32,
                );
                for (first, second) in first.iter_mut().zip(second) {
                    *first *= decay1;
                    *second *= decay2;
                }
                return;
            }
            self.step(first, second, weights, now, &rest[..weights.len()], 1.0);
        }
    }

    /// Whether all updates from step `now` on, without a gradient, add up to next to nothing.
    ///
    /// Update k from now is at most `largest / (1 - beta1^now) * ratio^k * |m| / sqrt(v)` with
    /// `ratio = beta1 / sqrt(beta2)`: 1 - beta1^t only grows and sqrt(1 - beta2^t) is at most 1.
    fn is_negligible(&self, first: &[f32], second: &[f32], now: u32) -> bool {
        let ratio = f64::from(self.beta1) / f64::from(self.beta2).sqrt();
        if ratio >= 1.0 {
            return first.iter().all(|&x| x == 0.0);
        }
        let correction1 = 1.0 - f64::from(self.beta1).powf(f64::from(now));
        let bound = f64::from(self.history.largest) / correction1 * ratio / (1.0 - ratio);
        first.iter().zip(second).all(|(&first, &second)| {
            first == 0.0 || bound * f64::from(first).abs() <= NEGLIGIBLE * f64::from(second).sqrt()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same replay with nothing left out, in f64.
    fn plain(m: f64, v: f64, w: f64, from: u32, to: u32, rate: f64) -> f64 {
        let (mut m, mut v, mut w) = (m, v, w);
        for step in from + 1..=to {
            m *= f64::from(0.9_f32);
            v *= f64::from(0.999_f32);
            let correction1 = 1.0 - f64::from(0.9_f32).powf(f64::from(step));
            let correction2 = 1.0 - f64::from(0.999_f32).powf(f64::from(step));
            w -= rate / correction1 * m / (v.sqrt() / correction2.sqrt() + 1e-8);
        }
        w
    }

    #[test]
    fn the_tail_left_out_of_a_replay_changes_nothing_that_counts() {
        let mut history = History::default();
        for step in 1..=3_000 {
            history.record(step, 0.01, 0.9, 0.999);
        }
        let catch_up = CatchUp {
            history: &history,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.0,
        };
        for (m, v, w, from) in [
            (0.1, 0.01, 0.5, 1),
            (1e-4, 1e-9, -0.2, 700),
            (-3.0, 0.5, 0.01, 1500),
        ] {
            let (mut first, mut second, mut weights) = ([m as f32], [v as f32], [w as f32]);
            catch_up.replay(&mut first, &mut second, &mut weights, from, 3_000);
            let expected = plain(m, v, w, from, 3_000, f64::from(0.01_f32));
            assert!(
                (f64::from(weights[0]) - expected).abs() < 1e-6,
                "{} {expected}",
                weights[0]
            );
            let decayed = v * 0.999_f64.powf(3_000.0 - f64::from(from));
            assert!((f64::from(second[0]) / decayed - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn steps_nobody_named_have_the_rate_before_them() {
        let mut history = History::default();
        history.record(1, 0.5, 0.9, 0.999);
        history.record(4, 0.25, 0.9, 0.999);
        history.record(4, 0.125, 0.9, 0.999);
        assert_eq!(history.len(), 4);
        assert_eq!(history.runs(), [(1, 0.5), (4, 0.25)]);
    }
}
