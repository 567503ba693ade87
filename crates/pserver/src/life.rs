//! One life of a server: its parameters and all that belongs to one epoch.

use std::collections::HashSet;

use crate::Error;
use crate::metrics::Metrics;
use crate::model::Model;
use crate::push::Held;
use crate::rounds::{Rounds, shares};

/// When pushes of several lanes are applied together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Together {
    /// Each on its own, at once.
    Never,
    /// Everything, in rounds.
    Rounds,
    /// The dense part in rounds, rows at once.
    DenseRounds,
}

pub(crate) struct Life {
    pub epoch: u64,
    pub model: Model,
    pub together: Together,
    /// Nothing is trained: pushes bring scores alone.
    pub is_validation: bool,
    pub rounds: Rounds,
    /// Of the stage under way; only where the ledger is kept.
    pub metrics: Metrics,
    /// Incarnations that were declared dead.
    pub dead: HashSet<u64>,
}

impl Life {
    pub(crate) fn check(&self, epoch: u64, incarnation: u64) -> Result<(), Error> {
        if self.epoch != epoch {
            return Err(Error::Epoch {
                own: self.epoch,
                asked: epoch,
            });
        }
        if self.dead.contains(&incarnation) {
            return Err(Error::Dead { incarnation });
        }
        Ok(())
    }

    /// Applies a push that all servers hold, or hands it to the round; true if a round has ended by it.
    pub(crate) fn commit(&mut self, mut held: Held, wanted_fence: u64) -> Result<bool, Error> {
        if !held.scored.scores.is_empty() {
            self.metrics.update(&held.scored)?;
        }
        if self.is_validation {
            return Ok(false);
        }
        match self.together {
            Together::Never => {
                self.model.apply(&mut [(&mut held, 1.0)])?;
                return Ok(false);
            }
            Together::Rounds => {}
            Together::DenseRounds => {
                self.model.begin_step()?;
                self.model.apply_rows(&mut [(&mut held, 1.0)])?;
                held.rows.clear();
            }
        }
        self.rounds.commit(held)?;
        let Some(mut parts) = self.rounds.complete(wanted_fence) else {
            return Ok(false);
        };
        let mut parts = shares(&mut parts);
        match self.together {
            Together::DenseRounds => self.model.apply_dense(&mut parts)?,
            Together::Rounds | Together::Never => self.model.apply(&mut parts)?,
        }
        Ok(true)
    }
}
