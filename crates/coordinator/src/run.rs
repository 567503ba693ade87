//! The run: what is true of the training at this moment. It goes back as a whole when the parameters go back.

use std::collections::BTreeMap;

use crate::committed::RunRecord;
use crate::duties::Duties;
use crate::job::Job;
use crate::ledger::Ledger;
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

    /// Goes back to `record`, or to the start. Numbers of leases and duties are not used again.
    pub(crate) fn go_back(&mut self, record: Option<RunRecord>) {
        let mut next = match record {
            Some(record) => Self::restore(record),
            None => Self::new(self.job.clone()),
        };
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
