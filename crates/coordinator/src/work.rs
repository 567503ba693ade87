//! Work: what a trainer is given when it asks.

use crate::coordinator::{Coordinator, Phase};
use crate::fence::{Due, State};
use crate::ledger::{Grant, Stage};
use crate::members::Trainer;
use crate::message::Reply;
use crate::requests::refused_trainer;

impl Coordinator {
    /// Work for a trainer that asks; nothing: it has to wait.
    pub(crate) fn work(&mut self, incarnation: u64, epoch: u64, holding: &[u64]) -> Option<Reply> {
        if epoch != self.epoch {
            return Some(Reply::Changed { place: self.place() });
        }
        if !self.members.trainers().contains_key(&incarnation) {
            return Some(refused_trainer(incarnation));
        }
        if self.is_turning() || self.fence.is_held() {
            return None;
        }
        let (is_gathering, has_counted) = (self.is_gathering_trainers(), self.has_counted());
        let run = self.run.as_mut()?;
        if holding.is_empty()
            && let Some(reply) = run.duties.give(incarnation, self.now)
        {
            return Some(reply);
        }
        // In `sync` those who are in a round need the others to end it; then all see the fence in the same answer.
        let is_anyone_out = self.members.trainers().values().any(Trainer::is_out);
        let has_lanes = run.ledger.has_lanes();
        if run.ledger.is_over() || has_lanes && has_counted {
            return None;
        }
        if matches!(self.fence.state, State::Wanted { .. }) && !(has_lanes && is_anyone_out) {
            return None;
        }
        let is_anyone_busy = self.members.trainers().values().any(|trainer| trainer.is_busy);
        if has_lanes && !is_anyone_busy {
            if is_gathering {
                return None;
            }
            let trainers = self.members.trainers().keys().copied();
            let able: Vec<u64> = trainers.filter(|own| !run.duties.is_on_duty(*own)).collect();
            run.ledger.deal(&able, self.now);
            self.has_gathered = true;
        }
        let Some(grant) = run.ledger.grant(incarnation, holding, self.now) else {
            self.want_lanes();
            return None;
        };
        self.leased_since.get_or_insert(self.now);
        if let Some(trainer) = self.members.trainer_mut(incarnation) {
            trainer.is_busy = true;
            trainer.granted = epoch;
        }
        Some(self.granted(grant))
    }

    /// A trainer without lanes gets some at the next fence, if there are enough.
    fn want_lanes(&mut self) {
        let Some(run) = &self.run else { return };
        let able = self
            .members
            .trainers()
            .keys()
            .filter(|own| !run.duties.is_on_duty(**own))
            .count();
        if run.ledger.has_lanes() && run.ledger.num_lanes() >= able {
            self.fence.dues.insert(Due::Deal);
        }
    }

    /// At the start, lanes are dealt when the expected trainers are there; later, to those who are.
    pub(crate) fn is_gathering_trainers(&self) -> bool {
        let (Phase::Running { since }, Some(run)) = (&self.phase, &self.run) else {
            return false;
        };
        let is_early = self.now < *since + self.settings.gather_deadline;
        !self.has_gathered && is_early && self.members.trainers().len() < run.job.trainers as usize
    }

    fn granted(&self, grant: Grant) -> Reply {
        let run = self.run.as_ref().expect("a cluster that runs has a job");
        let (pass, schedule) = (run.ledger.pass(), run.schedule.clone());
        match grant {
            Grant::Lanes { round, lanes } => Reply::Lanes {
                pass,
                round,
                lanes,
                schedule,
                until: run.until(),
            },
            Grant::Unit {
                lease,
                unit,
                position,
                samples,
                batches,
            } => {
                if run.ledger.stage() == Stage::Validate {
                    Reply::Validate {
                        lease,
                        pass,
                        unit,
                        position,
                        samples,
                        batches,
                    }
                } else {
                    Reply::Train {
                        lease,
                        pass,
                        unit,
                        position,
                        samples,
                        batches,
                        schedule,
                    }
                }
            }
        }
    }
}
