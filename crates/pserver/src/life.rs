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
        if self.is_validation {
            self.count(&held)?;
            return Ok(false);
        }
        match self.together {
            Together::Never => {
                self.count(&held)?;
                self.model.apply(&mut [(&mut held, 1.0)])?;
                return Ok(false);
            }
            // A round that is dropped was never trained: its scores count when it does.
            Together::Rounds => self.rounds.check(held.lane)?,
            Together::DenseRounds => {
                self.rounds.check(held.lane)?;
                self.count(&held)?;
                self.model.apply_rows_alone(&mut held)?;
                held.rows.clear();
            }
        }
        self.rounds.commit(held);
        let Some(parts) = self.rounds.complete(wanted_fence) else {
            return Ok(false);
        };
        self.apply(parts)?;
        Ok(true)
    }

    /// Ends the round under way as it is when all leases become void. Rows of `DenseRounds` are in already, and
    /// the ledger counts their batches; of `Rounds` nothing is, and nothing counts.
    pub(crate) fn close_round(&mut self) -> Result<(), Error> {
        if self.together == Together::DenseRounds
            && let Some(parts) = self.rounds.close()
        {
            self.apply(parts)?;
        }
        Ok(())
    }

    fn apply(&mut self, mut parts: Vec<Held>) -> Result<(), Error> {
        if self.together == Together::DenseRounds {
            return self.model.apply_dense(&mut shares(&mut parts));
        }
        for part in &parts {
            self.count(part)?;
        }
        if parts.iter().all(|part| part.samples == 0) {
            return Ok(());
        }
        self.model.apply(&mut shares(&mut parts))
    }

    fn count(&mut self, held: &Held) -> Result<(), Error> {
        if !held.scored.scores.is_empty() {
            self.metrics.update(&held.scored)?;
        }
        Ok(())
    }
}
