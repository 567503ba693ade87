//! A new table from the weights of another: how they were trained is left behind.

use std::path::Path;

use clickmill_types::sign::mix;

use crate::config::{Optimizer, TableConfig};
use crate::table::bucket_of;
use crate::{Error, Table};

impl Table {
    /// A table of `config` with the weights of a save: as [`Table::load`], but training starts anew.
    ///
    /// Weights and, where both keep them, shows and clicks are taken over; optimizer state, steps and
    /// admission counts are those of a new table. So the optimizer may be another. `learning_rate` is the one
    /// that training will start with; FTRL keeps a weight only as part of a state that depends on it.
    /// Rows of signs for which `keep` does not hold are left out.
    pub fn load_weights<P: AsRef<Path>>(
        paths: &[P],
        config: TableConfig,
        learning_rate: f32,
        keep: impl Fn(u64) -> bool,
    ) -> Result<Self, Error> {
        let origin = Self::load_chain(paths, None, &keep)?;
        if config.spec != origin.config.spec {
            return Err(Error::config(
                format!("table `{}`", config.spec.name),
                format!(
                    "spec must be that of the stored table: {}",
                    origin.config.to_json()
                ),
            ));
        }
        let mut table = Self::new(config)?;
        table.adopt(origin, learning_rate)?;
        Ok(table)
    }

    fn adopt(&mut self, mut origin: Self, learning_rate: f32) -> Result<(), Error> {
        let dim = self.layout.dim;
        let num_statistics = self.layout.statistics_len.min(origin.layout.statistics_len);
        let mut weights = vec![0.0; dim];
        // One bucket after the other is given back, so that the rows are hardly ever in memory twice.
        for bucket in std::mem::take(&mut origin.buckets) {
            for row in 0..bucket.len() {
                let sign = bucket.sign(row);
                let hash = mix(sign);
                origin.read_stale(&bucket, row, &mut weights);
                let handle = self.create(sign, hash)?;
                let own = &mut self.buckets[bucket_of(hash, self.bucket_bits)];
                let (_, floats) = own.row_mut(handle.row());
                floats[..num_statistics].copy_from_slice(&bucket.floats(row)[..num_statistics]);
                let (state, own_weights) =
                    floats[self.layout.statistics_len..].split_at_mut(self.layout.state_len);
                own_weights.copy_from_slice(&weights);
                settle(state, &weights, self.config.optimizer, learning_rate);
            }
        }
        // They were not created by training.
        self.counters.rows_created = 0;
        Ok(())
    }
}

/// FTRL's z, for which these weights are what an update without a gradient would compute; other optimizers
/// have no state that holds the weights.
fn settle(state: &mut [f32], weights: &[f32], optimizer: Optimizer, learning_rate: f32) {
    let Optimizer::Ftrl {
        beta,
        l1,
        l2,
        lr_power,
        initial_accumulator,
    } = optimizer
    else {
        return;
    };
    let rate = (beta + initial_accumulator.powf(-lr_power)) / learning_rate + l2;
    for (z, &weight) in state.iter_mut().zip(weights) {
        *z = if weight == 0.0 {
            0.0
        } else {
            -(weight * rate) - l1.copysign(weight)
        };
    }
}
