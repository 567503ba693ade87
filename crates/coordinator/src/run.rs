//! The run: what is true of the training at this moment. It goes back as a whole when the parameters go back.

use std::collections::BTreeMap;

use crate::committed::RunRecord;
use crate::duties::Duties;
use crate::job::Job;
use crate::ledger::{Ledger, Stage};
use crate::message::{Decision, PassSummary};

#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) job: Job,
    pub(crate) ledger: Ledger,
    pub(crate) history: Vec<PassSummary>,
    pub(crate) decision: Option<Decision>,
    pub(crate) schedule: Option<String>,
    pub(crate) adjust: Option<String>,
    pub(crate) duties: Duties,
    pub(crate) states: BTreeMap<String, String>,
    pub(crate) metrics: Option<String>,
}

impl Run {
    pub(crate) fn new(job: Job) -> Self {
        Self {
            ledger: Ledger::new(&job),
            job,
            history: Vec::new(),
            decision: None,
            schedule: None,
            adjust: None,
            duties: Duties::default(),
            states: BTreeMap::new(),
            metrics: None,
        }
    }

    pub(crate) fn restore(record: RunRecord) -> Self {
        let RunRecord {
            job,
            ledger,
            history,
            decision,
            schedule,
            adjust,
            duties,
            states,
            metrics,
        } = record;
        Self {
            ledger: Ledger::restore(&job, ledger),
            job,
            history,
            decision,
            schedule,
            adjust,
            duties: Duties::restore(duties),
            states,
            metrics,
        }
    }

    /// Passes that are over or under way.
    pub(crate) fn num_begun(&self) -> usize {
        self.ledger.pass() as usize + 1
    }

    /// A decision has ended it before its last pass.
    pub(crate) fn has_stopped_early(&self) -> bool {
        self.ledger.stage() == Stage::Ended && self.num_begun() < self.job.passes.len()
    }

    /// Takes the passes of `job` that have not begun; a run that was over goes on with them.
    pub(crate) fn replan(&mut self, job: &Job) {
        self.job.replan(job, self.num_begun());
        if self.ledger.stage() == Stage::Ended {
            // What was decided after the last pass holds for the one that comes after it now.
            self.ledger.open(&self.job, self.ledger.pass(), Stage::Decide);
            self.decision = Some(Decision {
                stop: false,
                schedule: self.schedule.clone(),
                adjust: self.adjust.clone(),
            });
        }
    }

    /// Goes back to `record`, or to the start. Numbers of leases and duties are not used again.
    pub(crate) fn go_back(&mut self, record: Option<RunRecord>) {
        let mut next = match record {
            Some(record) => Self::restore(record),
            None => Self::new(self.job.clone()),
        };
        next.job.adapt(&self.job);
        next.ledger.count_on(&self.ledger);
        next.duties.count_on(&self.duties);
        *self = next;
    }

    pub(crate) fn record(&self) -> RunRecord {
        RunRecord {
            job: self.job.clone(),
            ledger: self.ledger.record().clone(),
            history: self.history.clone(),
            decision: self.decision.clone(),
            schedule: self.schedule.clone(),
            adjust: self.adjust.clone(),
            duties: self.duties.record(),
            states: self.states.clone(),
            metrics: self.metrics.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::Strategy;
    use crate::job::tests::job;
    use crate::ledger::Grant;

    #[test]
    fn a_lease_of_before_means_nothing_after_going_back() {
        let mut run = Run::new(job(Strategy::Async, 2, 0, 1));
        let lease = |run: &mut Run| match run.ledger.grant(1, &[], Duration::ZERO) {
            Some(Grant::Unit { lease, .. }) => lease,
            other => panic!("{other:?}"),
        };
        let before = lease(&mut run);
        run.go_back(None);
        assert!(lease(&mut run) > before);
    }

    #[test]
    fn what_this_life_was_told_holds_after_going_back() {
        let mut run = Run::new(job(Strategy::Sync, 2, 0, 1));
        let record = run.record();
        run.job.trainers = 5;
        run.job.snapshot_interval_ms = 7;
        run.go_back(Some(record));
        assert_eq!((run.job.trainers, run.job.snapshot_interval_ms), (5, 7));
    }

    fn ended(num_passes: usize, last: u32) -> Run {
        let mut run = Run::new(job(Strategy::Async, 2, 0, num_passes));
        let job = run.job.clone();
        run.ledger.open(&job, last, Stage::Ended);
        run.schedule = Some("rate 0.1".into());
        run
    }

    #[test]
    fn a_run_that_was_over_goes_on_with_the_passes_that_are_added() {
        let mut run = ended(1, 0);
        run.replan(&job(Strategy::Async, 2, 0, 3));
        assert_eq!(run.next_stage(), (1, Stage::Train));
        assert_eq!(run.job.passes.len(), 3);
        let decision = run.decision.expect("it was made after the last pass");
        assert_eq!(decision.schedule, run.schedule);
    }

    #[test]
    fn a_run_that_was_stopped_by_a_decision_is_told_from_one_that_came_to_its_end() {
        assert!(ended(4, 1).has_stopped_early());
        assert!(!ended(2, 1).has_stopped_early());
    }

    #[test]
    fn a_record_brings_everything_back() {
        let mut run = Run::new(job(Strategy::Async, 2, 0, 1));
        run.schedule = Some("rate 0.1".into());
        run.states.insert("a".into(), "state".into());
        let record = run.record();
        run.go_back(None);
        assert_ne!(run.record(), record);
        run.go_back(Some(record.clone()));
        assert_eq!(run.record(), record);
    }
}
