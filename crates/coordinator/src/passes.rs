//! Passes: train, validate, decide, and again; then the end.

use serde_json::json;

use crate::coordinator::Coordinator;
use crate::duties::DutyRecord;
use crate::event::Happening;
use crate::fence::Due;
use crate::ledger::Stage;
use crate::message::{Decision, DutyName, Order, Outcome};
use crate::run::Run;
use crate::snapshots::Publication;

impl Run {
    /// What comes after the stage that is over.
    pub(crate) fn next_stage(&self) -> (u32, Stage) {
        let pass = self.ledger.pass();
        let is_last = pass as usize + 1 >= self.job.passes.len();
        let has_validation = !self.job.passes[pass as usize].validation.is_empty();
        let is_told_to_stop = self.decision.as_ref().is_some_and(|decision| decision.stop);
        let stops = is_told_to_stop || self.missed_slots().is_some();
        match self.ledger.stage() {
            Stage::Train if has_validation => (pass, Stage::Validate),
            Stage::Train | Stage::Validate => (pass, Stage::Decide),
            Stage::Decide if is_last || stops => (pass, Stage::Ended),
            Stage::Decide => (pass + 1, Stage::Train),
            Stage::Ended => (pass, Stage::Ended),
        }
    }

    /// Sees to it that somebody decides, once.
    fn want_decision(&mut self) -> bool {
        if self.decision.is_some()
            || self
                .duties
                .open()
                .iter()
                .any(|duty| duty.record.name == DutyName::Decide)
        {
            return false;
        }
        if !self.job.decides {
            self.decision = Some(Decision {
                schedule: self.schedule.clone(),
                ..Decision::default()
            });
            return true;
        }
        let pass = self.ledger.pass();
        let input = json!({ "pass": pass, "history": self.history, "schedule": self.schedule });
        self.duties.add(DutyRecord {
            name: DutyName::Decide,
            pass,
            input,
            snapshots: Vec::new(),
        });
        true
    }
}

impl Coordinator {
    pub(crate) fn step_stage(&mut self) -> bool {
        if self.want_counted() {
            return true;
        }
        let is_everyone_busy = self.is_everyone_busy();
        let Some(run) = &mut self.run else { return false };
        let due = match run.ledger.stage() {
            Stage::Train | Stage::Validate if run.ledger.is_over() => Due::EndOfStage,
            Stage::Decide if run.decision.is_some() => Due::Decided,
            Stage::Decide => return run.want_decision(),
            Stage::Train | Stage::Validate if run.duties.has_free() && is_everyone_busy => Due::Deal,
            Stage::Train | Stage::Validate | Stage::Ended => return false,
        };
        !self.fence.is_held() && self.fence.dues.insert(due)
    }

    fn is_everyone_busy(&self) -> bool {
        let trainers = self.members.trainers();
        !trainers.is_empty() && trainers.values().all(|trainer| trainer.is_busy)
    }

    pub(crate) fn next_stage(&self) -> (u32, Stage) {
        self.run.as_ref().map_or((0, Stage::Ended), Run::next_stage)
    }

    pub(crate) fn is_evicting(&self) -> bool {
        self.run
            .as_ref()
            .is_some_and(|run| run.job.evicts && run.ledger.stage() == Stage::Train)
    }

    /// Begins the next stage. Gives what servers have to know of it, if they are needed for it.
    pub(crate) fn turn(&mut self, pass: u32, stage: Stage) -> Option<Order> {
        let run = self.run.as_mut()?;
        if let Some(decision) = run.decision.take() {
            run.schedule = decision.schedule;
            run.adjust = decision.adjust;
            self.publish = run.job.publishes.then(|| Publication {
                pass: run.ledger.pass(),
                place: None,
            });
        }
        if stage == Stage::Ended {
            // The last snapshot has attempts of its own.
            self.snapshots.num_failures = 0;
        }
        self.leased_since = None;
        let job = run.job.clone();
        run.ledger.open(&job, pass, stage);
        let order = run.ledger.order(true, run.adjust.clone());
        self.members
            .trainers_mut()
            .for_each(|(_, trainer)| trainer.is_busy = false);
        self.tell(Happening::StageBegun {
            pass,
            stage: format!("{stage:?}").to_lowercase(),
        });
        matches!(stage, Stage::Train | Stage::Validate).then_some(order)
    }

    /// Takes leases back at a fence: all lanes, so that they can be dealt anew, or those of one trainer, so that
    /// there is one for the duties.
    pub(crate) fn take_leases_back(&mut self) {
        let Some(run) = &mut self.run else { return };
        let has_lanes = run.ledger.has_lanes();
        if has_lanes {
            run.ledger.void();
        }
        let chosen = if has_lanes { usize::MAX } else { 1 };
        for (incarnation, trainer) in self.members.trainers_mut().take(chosen) {
            trainer.is_busy = false;
            if !has_lanes {
                run.ledger.free(incarnation);
            }
        }
    }

    pub(crate) fn duty_done(&mut self, incarnation: u64, number: u64, outcome: Outcome) {
        let Some(run) = &mut self.run else { return };
        let Some(duty) = run.duties.finish(number, incarnation) else {
            return;
        };
        let (name, is_decision) = (duty.name(), duty.record.name == DutyName::Decide);
        let reason = match outcome {
            Outcome::Failure { words } => words,
            Outcome::Output { .. } if !is_decision => {
                return self.tell(Happening::DutyDone { duty: number, name });
            }
            Outcome::Output { output } => match serde_json::from_value::<Decision>(output) {
                Ok(decision) => {
                    run.decision = Some(decision);
                    return self.tell(Happening::DutyDone { duty: number, name });
                }
                Err(error) => format!("its output is no decision: {error}"),
            },
        };
        let is_tried_again = run.duties.fail(duty, self.settings.max_attempts, &reason);
        self.tell(Happening::DutyFailed {
            duty: number,
            name: name.clone(),
            reason: reason.clone(),
        });
        if is_decision && !is_tried_again {
            self.end_run(1, format!("`{name}` has failed: {reason}"));
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use super::*;
    use crate::job::Strategy;
    use crate::job::tests::job;

    fn run(validation: u32) -> Run {
        Run::new(job(Strategy::Async, 2, validation, 2))
    }

    fn open(run: &mut Run, pass: u32, stage: Stage) {
        let job = run.job.clone();
        run.ledger.open(&job, pass, stage);
    }

    #[test]
    fn a_pass_is_trained_validated_and_decided_upon() {
        use Stage::{Decide, Ended, Train, Validate};
        let mut run = run(1);
        let mut seen = Vec::new();
        while run.ledger.stage() != Stage::Ended {
            let (pass, stage) = run.next_stage();
            open(&mut run, pass, stage);
            seen.push((pass, stage));
        }
        assert_eq!(
            seen,
            [
                (0, Validate),
                (0, Decide),
                (1, Train),
                (1, Validate),
                (1, Decide),
                (1, Ended)
            ]
        );
    }

    #[test]
    fn without_units_for_validation_there_is_none() {
        assert_eq!(run(0).next_stage(), (0, Stage::Decide));
    }

    #[test]
    fn a_decision_to_stop_ends_the_run() {
        let mut run = run(0);
        open(&mut run, 0, Stage::Decide);
        run.decision = Some(Decision {
            stop: true,
            ..Decision::default()
        });
        assert_eq!(run.next_stage(), (0, Stage::Ended));
    }

    #[test]
    fn a_decision_is_wanted_once() {
        let mut run = run(0);
        open(&mut run, 0, Stage::Decide);
        assert!(run.want_decision());
        assert!(!run.want_decision());
        assert_eq!(run.duties.open().len(), 1);
    }

    #[test]
    fn the_schedule_stays_when_nobody_decides() {
        let mut run = run(0);
        run.job.decides = false;
        run.schedule = Some("rate 0.1".into());
        open(&mut run, 0, Stage::Decide);
        assert!(run.want_decision());
        assert_eq!(run.decision.unwrap().schedule, run.schedule);
    }
}
