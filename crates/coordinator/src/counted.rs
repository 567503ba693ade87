//! What is due after so many batches of a pass: rows are evicted, a checkpoint is published, the pass ends.
//!
//! Where there are lanes a batch is a round, and everyone comes to the fence behind that very round: what is
//! trained depends on the count alone. Elsewhere something is due once so many batches are committed, and
//! whatever is under way at that moment is trained before it.

use crate::coordinator::Coordinator;
use crate::fence::Due;
use crate::job::Job;
use crate::ledger::{LedgerRecord, Stage};
use crate::run::Run;

impl Job {
    /// Something is due by the number of batches.
    pub(crate) fn is_counted(&self) -> bool {
        self.evict_every > 0 || self.publish_every > 0 || self.max_batches > 0
    }
}

fn is_due(every: u64, last: u64, now: u64) -> bool {
    every > 0 && now / every > last / every
}

impl Run {
    /// What the batches so far have made due, and has not been done.
    fn counted(&self) -> impl Iterator<Item = Due> {
        let (job, record, now) = (&self.job, self.ledger.record(), self.ledger.steps());
        let LedgerRecord {
            evicted, published, ..
        } = record;
        let is_training = record.stage == Stage::Train;
        [
            (Due::Evict, is_due(job.evict_every, *evicted, now)),
            (Due::Publish, is_due(job.publish_every, *published, now)),
        ]
        .into_iter()
        .filter_map(move |(due, is_due)| (is_training && is_due).then_some(due))
    }

    /// The round before which all lanes come to a fence, whatever they have heard.
    pub(crate) fn until(&self) -> Option<u64> {
        if !self.ledger.has_lanes() {
            return None;
        }
        let (job, now) = (&self.job, self.ledger.steps());
        let distances = [job.evict_every, job.publish_every]
            .into_iter()
            .filter(|every| *every > 0)
            .map(|every| every - now % every);
        let last = (job.max_batches > 0).then(|| job.max_batches.saturating_sub(now));
        let distance = distances.chain(last).min()?;
        Some(self.ledger.record().round + distance)
    }
}

impl Coordinator {
    pub(crate) fn want_counted(&mut self) -> bool {
        let Some(run) = self.run.as_ref().filter(|_| !self.fence.is_held()) else {
            return false;
        };
        let before = self.fence.dues.len();
        self.fence.dues.extend(run.counted());
        self.fence.dues.len() > before
    }

    /// Something that the number of batches has made due waits for a fence.
    pub(crate) fn has_counted(&self) -> bool {
        let dues = &self.fence.dues;
        dues.contains(&Due::Evict) || dues.contains(&Due::Publish)
    }

    /// Nobody may go on before what is due is done, though it may have to wait for a snapshot that is being written.
    pub(crate) fn is_exact(&self) -> bool {
        let Some(run) = &self.run else { return false };
        // A pass that has had its batches may have data left, in the hands of trainers.
        let is_full = self.fence.dues.contains(&Due::EndOfStage) && run.ledger.stage() == Stage::Train;
        is_full && run.job.max_batches > 0 || run.ledger.has_lanes() && (is_full || self.has_counted())
    }

    /// A batch was entered: whatever is due by it is wanted at once, so that the answer to it says so.
    pub(crate) fn look_at_count(&mut self) {
        let is_counted = self.run.as_ref().is_some_and(|run| run.job.is_counted());
        while is_counted && self.fence.is_open() && (self.step_stage() || self.step_fence()) {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::Strategy;
    use crate::job::tests::job;
    use crate::ledger::{Grant, LedgerEntry};

    fn run(strategy: Strategy) -> Run {
        let mut own = job(strategy, 3, 0, 1);
        (own.evict_every, own.publish_every, own.max_batches) = (4, 6, 9);
        Run::new(own)
    }

    /// One batch of every lane, or of the first unit.
    fn step(run: &mut Run, batches: u64) {
        let now = Duration::ZERO;
        run.ledger.deal(&[7], now);
        let leases: Vec<(u64, u32)> = match run.ledger.grant(7, &[], now) {
            Some(Grant::Lanes { lanes, .. }) => lanes.iter().map(|lane| (lane.lease, lane.unit)).collect(),
            Some(Grant::Unit { lease, unit, .. }) => vec![(lease, unit)],
            None => panic!("there is work left"),
        };
        for (lease, unit) in leases {
            let entry = LedgerEntry {
                unit,
                position: None,
                samples: batches,
                batches,
                is_last: false,
                reading: None,
            };
            run.ledger.advance(7, lease, entry, now).expect("it is held");
        }
    }

    #[test]
    fn lanes_count_rounds_and_know_the_next_one_that_matters() {
        let mut run = run(Strategy::Sync);
        let mut seen = Vec::new();
        for _ in 0..8 {
            step(&mut run, 1);
            seen.push(run.until().expect("something is due"));
        }
        assert_eq!(seen, [4, 4, 4, 6, 6, 8, 8, 9]);
        assert!(!run.ledger.is_over());
        step(&mut run, 1);
        assert!(run.ledger.is_over());
    }

    #[test]
    fn a_round_of_empty_units_is_no_batch() {
        let mut run = run(Strategy::Sync);
        step(&mut run, 0);
        assert_eq!((run.ledger.steps(), run.until()), (0, Some(5)));
    }

    #[test]
    fn without_lanes_batches_count_and_one_push_may_bring_several() {
        let mut run = run(Strategy::Async);
        step(&mut run, 3);
        assert_eq!(run.counted().next(), None);
        step(&mut run, 4);
        assert_eq!(run.counted().collect::<Vec<_>>(), [Due::Evict, Due::Publish]);
        assert_eq!(run.until(), None);
        run.ledger.mark_evicted();
        run.ledger.mark_published();
        assert_eq!(run.counted().next(), None);
        step(&mut run, 3);
        assert!(run.ledger.is_over());
        assert_eq!(run.counted().collect::<Vec<_>>(), [Due::Evict]);
    }

    #[test]
    fn a_pass_starts_to_count_anew() {
        let mut run = run(Strategy::Sync);
        step(&mut run, 1);
        let job = run.job.clone();
        run.ledger.open(&job, 0, Stage::Train);
        assert_eq!(run.until(), Some(5));
    }
}
