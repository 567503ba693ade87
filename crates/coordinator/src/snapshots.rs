//! Snapshots: frozen at a fence, written while training goes on, committed by one small file.
//!
//! One at a time. Whatever fails, the one that was committed last stays what it is, and the next attempt comes when the next one is
//! due. An increment lies on the last committed one; after a failure the next is full, since servers may have
//! lost track of what has changed.

use std::time::Duration;

use serde_json::json;

use crate::calls::{Overdue, Round};
use crate::committed::{Committed, RunRecord};
use crate::coordinator::Coordinator;
use crate::duties::DutyRecord;
use crate::event::Happening;
use crate::fence::Due;
use crate::ledger::Stage;
use crate::members::PER_LIFE;
use crate::message::{Answer, Command, DutyName, Layer, PartFile, SnapshotFiles};
use crate::route::Route;

#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) number: u64,
    base: Option<u64>,
    since: Duration,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
    /// The fence has the round.
    Freezing,
    Writing {
        draft: Box<Committed>,
        round: Round,
    },
    Storing {
        committed: Box<Committed>,
        store: u64,
    },
}

/// A checkpoint for the user, to be made from a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Publication {
    pub(crate) pass: u32,
    /// Batches and samples of the pass under way; none: the pass has ended.
    pub(crate) place: Option<(u64, u64)>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshots {
    num_made: u64,
    /// When the last one was begun, or the life of the coordinator.
    pub(crate) last: Duration,
    must_be_full: bool,
    pub(crate) current: Option<Current>,
    pub(crate) failure: Option<String>,
    pub(crate) num_failures: u32,
    pub(crate) committed_at: Option<Duration>,
}

impl Snapshots {
    /// The one under way is given up with the epoch, unless its commit file is on its way: then nobody knows yet which
    /// one is the last.
    pub(crate) fn reset(&mut self, now: Duration) {
        self.current = self
            .current
            .take()
            .filter(|current| matches!(current.step, Step::Storing { .. }));
        self.last = now;
    }

    /// The next one is full: servers have read what they hold, and know of no changes since a snapshot.
    pub(crate) fn make_full(&mut self) {
        self.must_be_full = true;
    }

    pub(crate) fn is_storing(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| matches!(current.step, Step::Storing { .. }))
    }

    /// The route that would be committed with the one under way.
    pub(crate) fn drafted_route(&self) -> Option<&Route> {
        match &self.current.as_ref()?.step {
            Step::Freezing => None,
            Step::Writing { draft: committed, .. } | Step::Storing { committed, .. } => {
                Some(&committed.route)
            }
        }
    }

    pub(crate) fn round_mut(&mut self) -> Option<&mut Round> {
        match &mut self.current.as_mut()?.step {
            Step::Writing { round, .. } => Some(round),
            Step::Freezing | Step::Storing { .. } => None,
        }
    }
}

/// On which committed snapshot the next one lies as an increment; none: it is full.
fn base(committed: Option<&SnapshotFiles>, full_every: u32, must_be_full: bool) -> Option<u64> {
    let last = committed.filter(|last| !must_be_full && last.layers.len() < full_every as usize)?;
    Some(last.snapshot)
}

/// The files of a snapshot with its layers below.
fn files_of(
    below: Option<&SnapshotFiles>,
    snapshot: u64,
    is_full: bool,
    files: Vec<PartFile>,
) -> SnapshotFiles {
    let below = below
        .filter(|_| !is_full)
        .map_or_else(Vec::new, |below| below.layers.clone());
    let layers = below
        .into_iter()
        .chain([Layer {
            snapshot,
            is_full,
            files,
        }])
        .collect();
    SnapshotFiles { snapshot, layers }
}

/// The snapshots whose files must stay: the layers of the committed one, and what duties still read.
fn retained(committed: &SnapshotFiles, duties: &[DutyRecord]) -> Vec<u64> {
    let layers = committed.layers.iter().map(|layer| layer.snapshot);
    let read = duties.iter().flat_map(|duty| duty.snapshots.iter().copied());
    let mut all: Vec<u64> = layers.chain(read).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Coordinator {
    pub(crate) fn step_snapshot(&mut self) -> bool {
        self.want_snapshot() || self.store_snapshot()
    }

    /// Wants the snapshots of the interval, and the last one of the run again while it fails.
    fn want_snapshot(&mut self) -> bool {
        let Some(run) = &self.run else { return false };
        if self.snapshots.current.is_some() || self.fence.dues.contains(&Due::Snapshot) {
            return false;
        }
        let interval = match run.ledger.stage() {
            Stage::Train if run.job.snapshot_interval_ms > 0 && !self.is_preparing() => {
                Duration::from_millis(run.job.snapshot_interval_ms)
            }
            Stage::Ended if !self.is_end_committed() => self.settings.retry_interval,
            Stage::Train | Stage::Validate | Stage::Decide | Stage::Ended => return false,
        };
        let is_due = self.now >= self.snapshots.last + interval && !self.fence.is_held();
        is_due && self.fence.dues.insert(Due::Snapshot)
    }

    /// The commit file says that all passes are over.
    pub(crate) fn is_end_committed(&self) -> bool {
        self.committed
            .run
            .as_ref()
            .is_some_and(|record| record.ledger.stage == Stage::Ended)
    }

    pub(crate) fn plan_snapshot(&mut self) -> (u64, Option<u64>) {
        let full_every = self.run.as_ref().map_or(1, |run| run.job.full_every);
        let snapshots = &mut self.snapshots;
        snapshots.num_made += 1;
        let number = self.committed.life * PER_LIFE + snapshots.num_made;
        // What is being copied to other servers is completed by increments, however long the chain becomes.
        let is_copying = self
            .scaling
            .as_ref()
            .is_some_and(|scaling| !scaling.is_gathering());
        let full_every = if is_copying { u32::MAX } else { full_every };
        let base = base(
            self.committed.snapshot.as_ref(),
            full_every,
            snapshots.must_be_full,
        );
        snapshots.last = self.now;
        snapshots.current = Some(Current {
            number,
            base,
            since: self.now,
            step: Step::Freezing,
        });
        (number, base)
    }

    /// All servers have frozen what they have: the ledger of this moment belongs to it.
    pub(crate) fn frozen(&mut self, round: &Round, moves: bool) {
        let Some(mut current) = self.snapshots.current.take() else {
            return;
        };
        let Some(run) = &self.run else { return };
        let mut record = run.record();
        if let Some(Answer::Frozen { metrics, .. }) = round.answers().get(&0) {
            record.metrics.clone_from(metrics);
        }
        let route = if moves { self.next_route() } else { None };
        let draft = Committed {
            route: route.unwrap_or_else(|| self.route.clone()),
            run: Some(record),
            ..self.committed.clone()
        };
        let snapshot = current.number;
        let limit = self.settings.write_deadline;
        let what = format!("to write snapshot {snapshot}");
        let all = self.active_servers();
        let round = self.ask_within(&all, &what, limit, Overdue::Failure, |_| Command::Write {
            snapshot,
        });
        current.step = Step::Writing {
            draft: Box::new(draft),
            round,
        };
        self.snapshots.current = Some(current);
    }

    /// A checkpoint of this batch goes with the snapshot of this fence.
    pub(crate) fn publish_step(&mut self) {
        let Some(run) = &mut self.run else { return };
        run.ledger.mark_published();
        self.publish = Some(Publication {
            pass: run.ledger.pass(),
            place: Some((run.ledger.steps(), run.ledger.counted().0)),
        });
    }

    fn store_snapshot(&mut self) -> bool {
        let Some(Current {
            number,
            base,
            step: Step::Writing { draft, round },
            ..
        }) = &self.snapshots.current
        else {
            return false;
        };
        if let Some(words) = round.failure().map(ToOwned::to_owned) {
            self.fail_snapshot(&words);
            return true;
        }
        if !round.is_complete() {
            return false;
        }
        let mut files = Vec::new();
        for answer in round.answers().values() {
            if let Answer::Written { files: written } = answer {
                files.extend(written.iter().cloned());
            }
        }
        let mut committed = draft.clone();
        let files = files_of(self.committed.snapshot.as_ref(), *number, base.is_none(), files);
        if let (Some(record), Some(publication)) = (&mut committed.run, self.publish) {
            let duty = publish(publication, &files, record);
            record.duties.push(duty);
        }
        committed.snapshot = Some(files);
        let store = self.store(committed.clone());
        if let Some(current) = &mut self.snapshots.current {
            current.step = Step::Storing { committed, store };
        }
        true
    }

    /// What became of a commit file. True: it was one of a snapshot.
    pub(crate) fn stored_snapshot(&mut self, number: u64, result: &Result<(), String>) -> bool {
        let Some(Current {
            step: Step::Storing { committed, store },
            since,
            ..
        }) = &self.snapshots.current
        else {
            return false;
        };
        if *store != number {
            return false;
        }
        let (committed, since) = (committed.clone(), *since);
        match result {
            Ok(()) => self.commit(*committed, since),
            Err(words) => self.fail_snapshot(&format!("the commit file: {words}")),
        }
        true
    }

    fn commit(&mut self, committed: Committed, since: Duration) {
        self.committed = committed;
        self.snapshots.current = None;
        self.snapshots.failure = None;
        self.snapshots.num_failures = 0;
        self.snapshots.must_be_full = false;
        self.snapshots.committed_at = Some(self.now);
        let Some(files) = self.committed.snapshot.clone() else {
            return;
        };
        let record = self.committed.run.as_ref();
        if let (Some(publication), Some(record), Some(run)) = (self.publish.take(), record, &mut self.run) {
            run.duties.add(publish(publication, &files, record));
        }
        // A duty that is in the record is open again after going back to it, though it may be done by now.
        let mut duties = self.run.as_ref().map_or_else(Vec::new, |run| run.duties.record());
        duties.extend(
            self.committed
                .run
                .iter()
                .flat_map(|record| record.duties.iter().cloned()),
        );
        let snapshots = retained(&files, &duties);
        if self.is_running() {
            self.inform(|_| Command::Retain {
                snapshots: snapshots.clone(),
            });
        }
        if let Some(layer) = files.layers.last() {
            self.tell(Happening::SnapshotCommitted {
                snapshot: files.snapshot,
                is_full: layer.is_full,
                bytes: layer.files.iter().map(|file| file.bytes).sum(),
                seconds: self.now.saturating_sub(since).as_secs(),
            });
        }
    }

    pub(crate) fn fail_snapshot(&mut self, words: &str) {
        let Some(current) = self.snapshots.current.take() else {
            return;
        };
        // A commit file that was not written to its end may be in its place all the same, and name these files.
        if self.is_running() && !matches!(current.step, Step::Storing { .. }) {
            let snapshot = current.number;
            self.inform(|_| Command::Discard { snapshot });
        }
        self.snapshots.must_be_full = true;
        self.snapshots.failure = Some(words.to_owned());
        self.snapshots.num_failures += 1;
        let is_over = self
            .run
            .as_ref()
            .is_some_and(|run| run.ledger.stage() == Stage::Ended);
        if !is_over {
            // The next one holds what the next pass has trained: it is no checkpoint of this one.
            self.publish = None;
        }
        self.tell(Happening::SnapshotFailed {
            snapshot: current.number,
            reason: words.to_owned(),
        });
    }
}

/// What the checkpoint of a pass holds beside parameters is in every commit file that follows; of a batch within a pass only in
/// `record`.
fn publish(publication: Publication, files: &SnapshotFiles, record: &RunRecord) -> DutyRecord {
    let Publication { pass, place } = publication;
    let mut input = json!({ "snapshot": files });
    if let Some((batch, samples)) = place {
        input["step"] = json!({
            "batch": batch,
            "samples": samples,
            "metrics": record.metrics,
            "schedule": record.schedule,
            "states": record.states,
        });
    }
    DutyRecord {
        name: DutyName::Publish,
        pass,
        input,
        snapshots: files.layers.iter().map(|layer| layer.snapshot).collect(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
#[expect(clippy::wildcard_enum_match_arm, reason = "one kind of action is looked for")]
mod tests {
    use super::*;
    use crate::coordinator::Phase;
    use crate::event::Action;
    use crate::job::Strategy;
    use crate::job::tests::job;
    use crate::run::Run;
    use crate::settings::Settings;

    fn files(snapshots: &[u64]) -> SnapshotFiles {
        let mut own = None;
        for (place, snapshot) in snapshots.iter().enumerate() {
            own = Some(files_of(own.as_ref(), *snapshot, place == 0, Vec::new()));
        }
        own.unwrap()
    }

    #[test]
    fn every_nth_snapshot_is_full_and_so_is_the_one_after_a_failure() {
        assert_eq!(base(None, 3, false), None);
        assert_eq!(base(Some(&files(&[1])), 3, false), Some(1));
        assert_eq!(base(Some(&files(&[1, 2])), 3, false), Some(2));
        assert_eq!(base(Some(&files(&[1, 2, 3])), 3, false), None);
        assert_eq!(base(Some(&files(&[1])), 3, true), None);
        assert_eq!(base(Some(&files(&[1])), 1, false), None);
    }

    #[test]
    fn a_full_snapshot_starts_a_chain_of_its_own() {
        let chain = files(&[1, 2]);
        assert_eq!(files_of(Some(&chain), 3, false, Vec::new()).layers.len(), 3);
        assert_eq!(files_of(Some(&chain), 3, true, Vec::new()).layers.len(), 1);
    }

    #[test]
    fn what_a_duty_reads_is_retained() {
        let record = Run::new(job(Strategy::Async, 1, 0, 1)).record();
        let publication = Publication { pass: 0, place: None };
        let duties = [publish(publication, &files(&[1, 2]), &record)];
        assert_eq!(retained(&files(&[3, 4]), &duties), [1, 2, 3, 4]);
        assert_eq!(retained(&files(&[3, 4]), &[]), [3, 4]);
    }

    /// Snapshots whose files servers are told to remove when the one under way fails.
    fn discarded(step: Step) -> Vec<u64> {
        let mut coordinator = Coordinator::new(Settings::default(), None);
        coordinator.phase = Phase::Running {
            since: Duration::ZERO,
        };
        coordinator.snapshots.current = Some(Current {
            number: 7,
            base: None,
            since: Duration::ZERO,
            step,
        });
        coordinator.fail_snapshot("the disk is full");
        let discarded = |action: &Action| match action {
            Action::Call {
                command: Command::Discard { snapshot },
                ..
            } => Some(*snapshot),
            _ => None,
        };
        coordinator.out.iter().filter_map(discarded).collect()
    }

    #[test]
    fn what_was_written_of_a_snapshot_goes_when_it_fails_unless_a_commit_file_may_name_it() {
        assert_eq!(discarded(Step::Freezing), [7]);
        let committed = Box::new(Committed::empty(1));
        assert_eq!(discarded(Step::Storing { committed, store: 1 }), [0; 0]);
    }

    #[test]
    fn a_commit_file_on_its_way_outlives_the_epoch() {
        let current = |step| Current {
            number: 1,
            base: None,
            since: Duration::ZERO,
            step,
        };
        let mut snapshots = Snapshots {
            current: Some(current(Step::Freezing)),
            ..Snapshots::default()
        };
        snapshots.reset(Duration::ZERO);
        assert!(snapshots.current.is_none());
        let committed = Box::new(Committed::empty(1));
        snapshots.current = Some(current(Step::Storing { committed, store: 1 }));
        snapshots.reset(Duration::ZERO);
        assert!(snapshots.is_storing());
    }
}
