//! Optimizers of dense parameters: one fused pass over each array, in or out of place.
//!
//! The formulas, with the place of eps and the order of weight decay, are those of `torch.optim`. Sums of
//! squares go through f64 lanes in a fixed order.

use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DenseRule {
    Sgd {
        #[serde(default)]
        momentum: f32,
        #[serde(default)]
        weight_decay: f32,
    },
    Adagrad {
        #[serde(default)]
        initial_accumulator: f32,
        #[serde(default = "default_adagrad_eps")]
        eps: f32,
        #[serde(default)]
        weight_decay: f32,
    },
    /// L2 is added to the gradient.
    Adam {
        #[serde(default = "default_beta1")]
        beta1: f32,
        #[serde(default = "default_beta2")]
        beta2: f32,
        #[serde(default = "default_eps")]
        eps: f32,
        #[serde(default)]
        weight_decay: f32,
    },
    /// Weights decay on their own, by `learning_rate * weight_decay`.
    AdamW {
        #[serde(default = "default_beta1")]
        beta1: f32,
        #[serde(default = "default_beta2")]
        beta2: f32,
        #[serde(default = "default_eps")]
        eps: f32,
        #[serde(default = "default_weight_decay")]
        weight_decay: f32,
    },
    RmsProp {
        #[serde(default = "default_alpha")]
        alpha: f32,
        #[serde(default = "default_eps")]
        eps: f32,
        #[serde(default)]
        weight_decay: f32,
    },
}

fn default_adagrad_eps() -> f32 {
    1e-10
}
fn default_beta1() -> f32 {
    0.9
}
fn default_beta2() -> f32 {
    0.999
}
fn default_eps() -> f32 {
    1e-8
}
fn default_weight_decay() -> f32 {
    0.01
}
fn default_alpha() -> f32 {
    0.99
}

impl DenseRule {
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let rule: Self = serde_json::from_str(text)
            .map_err(|error| Error::config("dense optimizer configuration", error.to_string()))?;
        rule.check()?;
        Ok(rule)
    }

    fn check(&self) -> Result<(), Error> {
        let (not_negative, below_one) = match *self {
            Self::Sgd {
                momentum,
                weight_decay,
            } => (vec![("weight_decay", weight_decay)], vec![("momentum", momentum)]),
            Self::Adagrad {
                initial_accumulator,
                eps,
                weight_decay,
            } => (
                vec![
                    ("initial_accumulator", initial_accumulator),
                    ("eps", eps),
                    ("weight_decay", weight_decay),
                ],
                vec![],
            ),
            Self::Adam {
                beta1,
                beta2,
                eps,
                weight_decay,
            }
            | Self::AdamW {
                beta1,
                beta2,
                eps,
                weight_decay,
            } => (
                vec![("eps", eps), ("weight_decay", weight_decay)],
                vec![("beta1", beta1), ("beta2", beta2)],
            ),
            Self::RmsProp {
                alpha,
                eps,
                weight_decay,
            } => (
                vec![("eps", eps), ("weight_decay", weight_decay)],
                vec![("alpha", alpha)],
            ),
        };
        let wrong = |key: &str, value: f32, allowed: &str| {
            Err(Error::config(
                "dense optimizer",
                format!("{key} is {value}; allowed: {allowed}"),
            ))
        };
        for (key, value) in not_negative {
            if !(value.is_finite() && value >= 0.0) {
                return wrong(key, value, "a finite number, 0 or more");
            }
        }
        for (key, value) in below_one {
            if !(0.0..1.0).contains(&value) {
                return wrong(key, value, "0 up to, not including, 1");
            }
        }
        Ok(())
    }

    /// State arrays for each parameter.
    fn num_states(&self) -> usize {
        match *self {
            Self::Sgd { momentum, .. } => usize::from(momentum > 0.0),
            Self::Adagrad { .. } | Self::RmsProp { .. } => 1,
            Self::Adam { .. } | Self::AdamW { .. } => 2,
        }
    }
}

/// State of one optimizer over some parameters.
#[derive(Clone, Debug)]
pub struct DenseOptimizer {
    rule: DenseRule,
    sizes: Vec<usize>,
    /// Per parameter, then per kind of state.
    states: Vec<Vec<f32>>,
    step: u64,
}

impl DenseOptimizer {
    pub fn new(rule: DenseRule, sizes: Vec<usize>) -> Self {
        let first = match rule {
            DenseRule::Adagrad {
                initial_accumulator, ..
            } => initial_accumulator,
            DenseRule::Sgd { .. }
            | DenseRule::Adam { .. }
            | DenseRule::AdamW { .. }
            | DenseRule::RmsProp { .. } => 0.0,
        };
        let states = sizes
            .iter()
            .flat_map(|&size| std::iter::repeat_n(size, rule.num_states()))
            .map(|size| vec![first; size])
            .collect();
        Self {
            rule,
            sizes,
            states,
            step: 0,
        }
    }

    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Steps made.
    pub fn step_count(&self) -> u64 {
        self.step
    }

    /// State arrays: for each parameter its one or two kinds, in order.
    pub fn states(&self) -> &[Vec<f32>] {
        &self.states
    }

    pub fn load(&mut self, step: u64, states: Vec<Vec<f32>>) -> Result<(), Error> {
        let expected: Vec<usize> = self.states.iter().map(Vec::len).collect();
        let found: Vec<usize> = states.iter().map(Vec::len).collect();
        if expected != found {
            return Err(Error::argument(format!(
                "state arrays have sizes {found:?}, this optimizer needs {expected:?}"
            )));
        }
        self.step = step;
        self.states = states;
        Ok(())
    }

    /// Moves the state towards that of one of several copies, by the copy's share; `step` steps count as made.
    ///
    /// `states` has the kinds of each parameter one behind the other, in the order of `states()`. A mean, not a
    /// sum of differences: second moments never turn negative, whoever joins or dies in between.
    pub fn blend(&mut self, states: &[f32], share: f32, step: u64) -> Result<(), Error> {
        let expected: usize = self.states.iter().map(Vec::len).sum();
        if states.len() != expected || !(0.0..=1.0).contains(&share) {
            return Err(Error::argument(format!(
                "a state of {} numbers with a share of {share}; this optimizer has {expected}",
                states.len()
            )));
        }
        let mut left = states;
        for own in &mut self.states {
            let (theirs, rest) = left.split_at(own.len());
            for (own, theirs) in own.iter_mut().zip(theirs) {
                *own = *own * (1.0 - share) + theirs * share;
            }
            left = rest;
        }
        self.step = step;
        Ok(())
    }

    /// Starts the next step; its numbers are used for every parameter of the step.
    pub fn begin(&mut self, learning_rate: f32, scale: f32) -> Result<DenseStep, Error> {
        if !(learning_rate.is_finite() && learning_rate >= 0.0 && scale.is_finite()) {
            return Err(Error::argument(format!(
                "learning rate {learning_rate} and scale {scale} must be finite, the rate 0 or more"
            )));
        }
        self.step += 1;
        Ok(DenseStep {
            learning_rate,
            scale,
            step: self.step,
        })
    }

    /// Updates parameter `number` in place with the sum of the gradients `parts`, added in their order.
    pub fn update(
        &mut self,
        step: DenseStep,
        number: usize,
        parameter: &mut [f32],
        parts: &[&[f32]],
    ) -> Result<(), Error> {
        let size = *self
            .sizes
            .get(number)
            .ok_or_else(|| Error::argument(format!("parameter {number} of {}", self.sizes.len())))?;
        if parameter.len() != size || parts.is_empty() || parts.iter().any(|part| part.len() != size) {
            return Err(Error::argument(format!(
                "parameter {number} has {size} numbers; it and each part of its gradient must have as many"
            )));
        }
        let mut sum = [0.0_f32; CHUNK];
        for (chunk, at) in parameter.chunks_mut(CHUNK).zip((0..).step_by(CHUNK)) {
            let range = at..at + chunk.len();
            let gradient = if let [only] = parts {
                &only[range]
            } else {
                let sum = &mut sum[..chunk.len()];
                sum.copy_from_slice(&parts[0][range.clone()]);
                for part in &parts[1..] {
                    for (sum, value) in sum.iter_mut().zip(&part[range.clone()]) {
                        *sum += value;
                    }
                }
                &*sum
            };
            self.update_chunk(step, number, at, chunk, gradient);
        }
        Ok(())
    }

    fn update_chunk(
        &mut self,
        step: DenseStep,
        number: usize,
        from: usize,
        out: &mut [f32],
        gradient: &[f32],
    ) {
        let kinds = self.rule.num_states();
        let states = &mut self.states[number * kinds..(number + 1) * kinds];
        let part = from..from + out.len();
        match states {
            [] => run(&self.rule, step, out, gradient, &mut [], &mut []),
            [first] => run(&self.rule, step, out, gradient, &mut first[part], &mut []),
            [first, second, ..] => {
                run(
                    &self.rule,
                    step,
                    out,
                    gradient,
                    &mut first[part.clone()],
                    &mut second[part],
                );
            }
        }
    }
}

/// Elements that stay in the first cache while they are summed and updated.
const CHUNK: usize = 2048;

#[derive(Clone, Copy, Debug)]
pub struct DenseStep {
    learning_rate: f32,
    scale: f32,
    step: u64,
}

fn run(
    rule: &DenseRule,
    step: DenseStep,
    out: &mut [f32],
    gradient: &[f32],
    first: &mut [f32],
    second: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "the function is compiled for the instructions just detected"
        )]
        // SAFETY: AVX2 has just been detected.
        return unsafe { run_avx2(rule, step, out, gradient, first, second) };
    }
    run_any(rule, step, out, gradient, first, second);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2(
    rule: &DenseRule,
    step: DenseStep,
    out: &mut [f32],
    gradient: &[f32],
    first: &mut [f32],
    second: &mut [f32],
) {
    run_any(rule, step, out, gradient, first, second);
}

#[inline(always)]
fn run_any(
    rule: &DenseRule,
    step: DenseStep,
    out: &mut [f32],
    gradient: &[f32],
    first: &mut [f32],
    second: &mut [f32],
) {
    let DenseStep {
        learning_rate,
        scale,
        step,
    } = step;
    match *rule {
        DenseRule::Sgd {
            momentum,
            weight_decay,
        } if momentum > 0.0 => {
            // Torch begins with the gradient itself, which is what a zero buffer gives.
            for ((weight, buffer), &gradient) in out.iter_mut().zip(first).zip(gradient) {
                let gradient = gradient * scale + weight_decay * *weight;
                *buffer = *buffer * momentum + gradient;
                *weight -= learning_rate * *buffer;
            }
        }
        DenseRule::Sgd { weight_decay, .. } => {
            for (weight, &gradient) in out.iter_mut().zip(gradient) {
                *weight -= learning_rate * (gradient * scale + weight_decay * *weight);
            }
        }
        DenseRule::Adagrad {
            eps, weight_decay, ..
        } => {
            for ((weight, sum), &gradient) in out.iter_mut().zip(first).zip(gradient) {
                let gradient = gradient * scale + weight_decay * *weight;
                *sum += gradient * gradient;
                *weight -= learning_rate * (gradient / (sum.sqrt() + eps));
            }
        }
        DenseRule::Adam {
            beta1,
            beta2,
            eps,
            weight_decay,
        } => {
            let numbers = AdamNumbers::new(learning_rate, beta1, beta2, eps, step);
            for (((weight, first), second), &gradient) in out.iter_mut().zip(first).zip(second).zip(gradient)
            {
                let gradient = gradient * scale + weight_decay * *weight;
                numbers.update(weight, first, second, gradient);
            }
        }
        DenseRule::AdamW {
            beta1,
            beta2,
            eps,
            weight_decay,
        } => {
            let numbers = AdamNumbers::new(learning_rate, beta1, beta2, eps, step);
            let keep = 1.0 - learning_rate * weight_decay;
            for (((weight, first), second), &gradient) in out.iter_mut().zip(first).zip(second).zip(gradient)
            {
                *weight *= keep;
                numbers.update(weight, first, second, gradient * scale);
            }
        }
        DenseRule::RmsProp {
            alpha,
            eps,
            weight_decay,
        } => {
            for ((weight, mean), &gradient) in out.iter_mut().zip(first).zip(gradient) {
                let gradient = gradient * scale + weight_decay * *weight;
                *mean = *mean * alpha + (1.0 - alpha) * gradient * gradient;
                *weight -= learning_rate * (gradient / (mean.sqrt() + eps));
            }
        }
    }
}

struct AdamNumbers {
    step_size: f32,
    root: f32,
    beta1: f32,
    beta2: f32,
    eps: f32,
}

impl AdamNumbers {
    fn new(learning_rate: f32, beta1: f32, beta2: f32, eps: f32, step: u64) -> Self {
        let correction1 = 1.0 - f64::from(beta1).powf(step as f64);
        let correction2 = 1.0 - f64::from(beta2).powf(step as f64);
        Self {
            step_size: (f64::from(learning_rate) / correction1) as f32,
            root: (1.0 / correction2.sqrt()) as f32,
            beta1,
            beta2,
            eps,
        }
    }

    #[inline(always)]
    fn update(&self, weight: &mut f32, first: &mut f32, second: &mut f32, gradient: f32) {
        *first += (gradient - *first) * (1.0 - self.beta1);
        *second = *second * self.beta2 + (1.0 - self.beta2) * gradient * gradient;
        *weight -= self.step_size * (*first / (second.sqrt() * self.root + self.eps));
    }
}

/// Sum of the squares of the summed `parts`, in eight f64 lanes added in a fixed order.
pub fn square_sum(parts: &[&[f32]]) -> f64 {
    let mut lanes = [0.0_f64; 8];
    let (first, rest) = parts.split_first().expect("a gradient has at least one part");
    for (index, &value) in first.iter().enumerate() {
        let sum = rest.iter().fold(value, |sum, part| sum + part[index]);
        lanes[index % 8] += f64::from(sum) * f64::from(sum);
    }
    lanes.iter().sum()
}
