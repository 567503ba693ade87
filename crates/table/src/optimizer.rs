//! Optimizer rules: one gradient applied to one row.
//!
//! Every rule is written over slices in a form that the compiler turns into vector code; sums go through
//! eight lanes added in a fixed order, and nothing is contracted, so that every instruction set gives the
//! same bits. `step` counts from 1; the formulas are those of `torch.optim` where it has the rule.

use crate::adam::CatchUp;
use crate::apply::Rate;
use crate::lanes::{each, each_with_one, each_with_two};

/// A rule with its numbers for one step.
pub(crate) trait Rule {
    /// `last_step` is the step of the row's last update; `grad` has the width of `weights`.
    fn update(&self, state: &mut [f32], weights: &mut [f32], grad: &[f32], last_step: u32);
}

#[derive(Clone, Copy)]
pub(crate) struct Sgd {
    rate: Rate,
    weight_decay: f32,
}

impl Sgd {
    pub(crate) fn new(rate: Rate, weight_decay: f32) -> Self {
        Self { rate, weight_decay }
    }
}

impl Rule for Sgd {
    #[inline(always)]
    fn update(&self, _state: &mut [f32], weights: &mut [f32], grad: &[f32], _last_step: u32) {
        each(weights, grad, |weight, grad| {
            let grad = grad * self.rate.scale + self.weight_decay * weight;
            weight - self.rate.learning_rate * grad
        });
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Adagrad {
    rate: Rate,
    eps: f32,
    weight_decay: f32,
}

impl Adagrad {
    pub(crate) fn new(rate: Rate, eps: f32, weight_decay: f32) -> Self {
        Self {
            rate,
            eps,
            weight_decay,
        }
    }
}

impl Rule for Adagrad {
    #[inline(always)]
    fn update(&self, state: &mut [f32], weights: &mut [f32], grad: &[f32], _last_step: u32) {
        each_with_one(weights, state, grad, |weight, sum, grad| {
            let grad = grad * self.rate.scale + self.weight_decay * weight;
            let sum = sum + grad * grad;
            (
                weight - self.rate.learning_rate * (grad / (sum.sqrt() + self.eps)),
                sum,
            )
        });
    }
}

#[derive(Clone, Copy)]
pub(crate) struct RowWiseAdagrad {
    rate: Rate,
    eps: f32,
    weight_decay: f32,
}

impl RowWiseAdagrad {
    pub(crate) fn new(rate: Rate, eps: f32, weight_decay: f32) -> Self {
        Self {
            rate,
            eps,
            weight_decay,
        }
    }

    #[inline(always)]
    fn gradient(&self, grad: f32, weight: f32) -> f32 {
        grad * self.rate.scale + self.weight_decay * weight
    }
}

impl Rule for RowWiseAdagrad {
    #[inline(always)]
    fn update(&self, state: &mut [f32], weights: &mut [f32], grad: &[f32], _last_step: u32) {
        let mut lanes = [0.0_f32; 8];
        let (grads, grads_rest) = grad.as_chunks::<8>();
        let (eights, rest) = weights.as_chunks::<8>();
        for (grads, eight) in grads.iter().zip(eights) {
            for lane in 0..8 {
                let grad = self.gradient(grads[lane], eight[lane]);
                lanes[lane] += grad * grad;
            }
        }
        for ((lane, &grad), &weight) in lanes.iter_mut().zip(grads_rest).zip(rest) {
            let grad = self.gradient(grad, weight);
            *lane += grad * grad;
        }
        let four = [
            lanes[0] + lanes[4],
            lanes[1] + lanes[5],
            lanes[2] + lanes[6],
            lanes[3] + lanes[7],
        ];
        let sum = (four[0] + four[2]) + (four[1] + four[3]);
        state[0] += sum / grad.len() as f32;
        let rate = self.rate.learning_rate / (state[0].sqrt() + self.eps);
        each(weights, grad, |weight, grad| {
            weight - rate * self.gradient(grad, weight)
        });
    }
}

/// As torch's `SparseAdam`: untouched rows stay as they are.
#[derive(Clone, Copy)]
pub(crate) struct LazyAdam {
    /// `learning_rate * sqrt(1 - beta2^step) / (1 - beta1^step)`.
    step_size: f32,
    rate: Rate,
    beta1: f32,
    beta2: f32,
    eps: f32,
    weight_decay: f32,
}

impl LazyAdam {
    pub(crate) fn new(rate: Rate, [beta1, beta2]: [f32; 2], eps: f32, weight_decay: f32, step: u32) -> Self {
        let correction1 = 1.0 - f64::from(beta1).powf(f64::from(step));
        let correction2 = 1.0 - f64::from(beta2).powf(f64::from(step));
        Self {
            step_size: (f64::from(rate.learning_rate) * correction2.sqrt() / correction1) as f32,
            rate,
            beta1,
            beta2,
            eps,
            weight_decay,
        }
    }
}

impl Rule for LazyAdam {
    #[inline(always)]
    fn update(&self, state: &mut [f32], weights: &mut [f32], grad: &[f32], _last_step: u32) {
        let (first, second) = state.split_at_mut(weights.len());
        each_with_two(weights, first, second, grad, |weight, first, second, grad| {
            let grad = grad * self.rate.scale + self.weight_decay * weight;
            let first = first + (grad - first) * (1.0 - self.beta1);
            let second = second + (grad * grad - second) * (1.0 - self.beta2);
            (
                weight - self.step_size * (first / (second.sqrt() + self.eps)),
                first,
                second,
            )
        });
    }
}

/// Dense Adam, with the missed steps made up for first.
#[derive(Clone, Copy)]
pub(crate) struct Adam<'a> {
    catch_up: CatchUp<'a>,
    step: u32,
    rate: Rate,
}

impl<'a> Adam<'a> {
    pub(crate) fn new(catch_up: CatchUp<'a>, rate: Rate, step: u32) -> Self {
        Self { catch_up, step, rate }
    }
}

impl Rule for Adam<'_> {
    #[inline(always)]
    fn update(&self, state: &mut [f32], weights: &mut [f32], grad: &[f32], last_step: u32) {
        let (first, second) = state.split_at_mut(weights.len());
        if last_step + 1 < self.step {
            self.catch_up
                .replay(first, second, weights, last_step, self.step - 1);
        }
        self.catch_up
            .step(first, second, weights, self.step, grad, self.rate.scale);
    }
}

/// FTRL-proximal (`McMahan` et al., 2013); state is z, then n. The learning rate is alpha.
#[derive(Clone, Copy)]
pub(crate) struct Ftrl {
    rate: Rate,
    beta: f32,
    l1: f32,
    l2: f32,
    lr_power: f32,
}

impl Ftrl {
    pub(crate) fn new(rate: Rate, beta: f32, [l1, l2]: [f32; 2], lr_power: f32) -> Self {
        Self {
            rate,
            beta,
            l1,
            l2,
            lr_power,
        }
    }

    /// n^-lr_power; the root is what everybody uses and what is fast.
    #[inline(always)]
    fn power(&self, n: f32) -> f32 {
        if self.lr_power.to_bits() == (-0.5_f32).to_bits() {
            n.sqrt()
        } else {
            n.powf(-self.lr_power)
        }
    }
}

impl Rule for Ftrl {
    #[inline(always)]
    fn update(&self, state: &mut [f32], weights: &mut [f32], grad: &[f32], _last_step: u32) {
        let (z, n) = state.split_at_mut(weights.len());
        each_with_two(weights, z, n, grad, |weight, z, n, grad| {
            let grad = grad * self.rate.scale;
            let sum = n + grad * grad;
            let root = self.power(sum);
            let sigma = (root - self.power(n)) / self.rate.learning_rate;
            let z = z + (grad - sigma * weight);
            let shrunk = z.abs() - self.l1;
            let rate = (self.beta + root) / self.rate.learning_rate + self.l2;
            let weight = if shrunk > 0.0 {
                -shrunk.copysign(z) / rate
            } else {
                0.0
            };
            (weight, z, sum)
        });
    }
}
