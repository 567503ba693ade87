//! Gradients to rows, with the table's own rule.

use clickmill_types::sign::mix;

use crate::adam::CatchUp;
use crate::config::Optimizer;
use crate::optimizer::{Adagrad, Adam, Ftrl, LazyAdam, RowWiseAdagrad, Sgd};
use crate::pull::Handle;
use crate::push::{Push, push};
use crate::table::bucket_of;
use crate::{Error, Table};

/// Learning rate of one push and the factor that gradients are multiplied by first.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub learning_rate: f32,
    pub scale: f32,
}

impl Rate {
    fn check(self) -> Result<(), Error> {
        if self.learning_rate.is_finite() && self.learning_rate >= 0.0 && self.scale.is_finite() {
            return Ok(());
        }
        Err(Error::argument(format!(
            "learning rate {} and scale {} must be finite, the rate 0 or more",
            self.learning_rate, self.scale
        )))
    }
}

impl Table {
    /// Applies gradients [U,D] by sign; signs without a row are dropped and counted. A sign that occurs
    /// twice is updated twice, in order. `shows` and `clicks` have one number a sign, or none at all.
    pub fn push(
        &mut self,
        signs: &[u64],
        gradients: &[f32],
        shows: &[f32],
        clicks: &[f32],
        rate: Rate,
    ) -> Result<(), Error> {
        self.check_values(signs.len(), gradients.len())?;
        for (what, len) in [("shows", shows.len()), ("clicks", clicks.len())] {
            if len != 0 && len != signs.len() {
                return Err(Error::argument(format!(
                    "{what} has {len} numbers for {} signs",
                    signs.len()
                )));
            }
        }
        let handles: Vec<Handle> = signs.iter().map(|&sign| self.place(sign)).collect();
        let batch = Push {
            handles: &handles,
            gradients,
            shows,
            clicks,
        };
        self.push_rows(batch, rate)
    }

    fn place(&self, sign: u64) -> Handle {
        let hash = mix(sign);
        let number = bucket_of(hash, self.bucket_bits);
        match self.buckets[number].find(sign, hash) {
            Some(row) => Handle::new(number, row),
            None => Handle::NONE,
        }
    }

    /// The caller vouches that the handles are of this table and generation.
    pub(crate) fn push_rows(&mut self, batch: Push<'_>, rate: Rate) -> Result<(), Error> {
        rate.check()?;
        self.keep_frozen(batch.handles);
        let (layout, step) = (self.layout, self.step);
        let buckets = &mut self.buckets;
        let dropped = match self.config.optimizer {
            Optimizer::Sgd { weight_decay } => {
                push(buckets, layout, &Sgd::new(rate, weight_decay), batch, step)
            }
            Optimizer::Adagrad {
                eps, weight_decay, ..
            } => push(
                buckets,
                layout,
                &Adagrad::new(rate, eps, weight_decay),
                batch,
                step,
            ),
            Optimizer::RowWiseAdagrad {
                eps, weight_decay, ..
            } => push(
                buckets,
                layout,
                &RowWiseAdagrad::new(rate, eps, weight_decay),
                batch,
                step,
            ),
            Optimizer::LazyAdam {
                beta1,
                beta2,
                eps,
                weight_decay,
            } => {
                let rule = LazyAdam::new(rate, [beta1, beta2], eps, weight_decay, started(step)?);
                push(buckets, layout, &rule, batch, step)
            }
            Optimizer::Adam {
                beta1,
                beta2,
                eps,
                weight_decay,
            } => {
                self.history
                    .record(started(step)?, rate.learning_rate, beta1, beta2);
                let catch_up = CatchUp {
                    history: &self.history,
                    beta1,
                    beta2,
                    eps,
                    weight_decay,
                };
                push(buckets, layout, &Adam::new(catch_up, rate, step), batch, step)
            }
            Optimizer::Ftrl {
                beta,
                l1,
                l2,
                lr_power,
                ..
            } => {
                let rule = Ftrl::new(positive(rate)?, beta, [l1, l2], lr_power);
                push(buckets, layout, &rule, batch, step)
            }
        };
        self.done = self.done.max(step);
        self.counters.gradients_dropped += dropped as u64;
        Ok(())
    }
}

fn started(step: u32) -> Result<u32, Error> {
    if step == 0 {
        return Err(Error::state(
            "Adam counts steps from 1; call begin_step(1) before the first push",
        ));
    }
    Ok(step)
}

fn positive(rate: Rate) -> Result<Rate, Error> {
    if rate.learning_rate == 0.0 {
        return Err(Error::argument(
            "FTRL divides by the learning rate; allowed: above 0",
        ));
    }
    Ok(rate)
}
