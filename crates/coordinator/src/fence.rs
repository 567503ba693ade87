//! The fence: the point between batches at which everything that must not happen within one happens.
//!
//! Wanted, until no trainer is in the middle of a batch; held, while what is due is done on all servers; over.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::calls::Round;
use crate::coordinator::Coordinator;
use crate::event::Happening;
use crate::ledger::Stage;
use crate::message::{Answer, Command, PassSummary};

/// What a fence is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// All units of the stage are done.
    EndOfStage,
    /// The next pass may begin, or the run is over.
    Decided,
    /// Rows are evicted within a pass.
    Evict,
    /// A checkpoint is taken within a pass.
    Publish,
    /// Leases are taken back: a trainer wants lanes, or nobody is free for a duty.
    Deal,
    /// The memory of a server is full.
    Relief,
    Snapshot,
    /// Buckets move.
    Move,
    /// An admin wants the run to stop.
    Stop,
}

/// What is done while the fence is held, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Evict,
    Relieve,
    Report,
    Turn { pass: u32, stage: Stage },
    Freeze { moves: bool },
    AwaitCommit,
    Move,
    Deal,
    Stop,
}

#[derive(Clone, Debug)]
pub(crate) enum State {
    Open,
    Wanted {
        since: Duration,
    },
    Held {
        since: Duration,
        works: VecDeque<Work>,
        round: Option<Round>,
    },
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    /// The highest number that trainers were or are asked to come to.
    pub(crate) number: u64,
    pub(crate) dues: BTreeSet<Due>,
    pub(crate) state: State,
}

impl Default for Fence {
    fn default() -> Self {
        Self {
            number: 0,
            dues: BTreeSet::new(),
            state: State::Open,
        }
    }
}

impl Fence {
    pub(crate) fn passed(&self) -> u64 {
        if matches!(self.state, State::Open) {
            self.number
        } else {
            self.number - 1
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(self.state, State::Held { .. })
    }

    /// Everything goes back: what was due will be due again.
    pub(crate) fn reset(&mut self) {
        self.dues.retain(|due| *due == Due::Stop);
        self.state = State::Open;
    }

    /// What is done for what is due, in the only order that makes sense: a stage ends before a snapshot is taken of the
    /// next one, and buckets move with a snapshot of their own.
    fn works(dues: &BTreeSet<Due>, next: (u32, Stage), evicts: bool) -> VecDeque<Work> {
        let mut works = VecDeque::new();
        let (pass, stage) = next;
        if dues.contains(&Due::Evict) {
            works.push_back(Work::Evict);
        }
        if dues.contains(&Due::EndOfStage) {
            if evicts {
                works.push_back(Work::Evict);
            }
            works.extend([Work::Report, Work::Turn { pass, stage }]);
        }
        if dues.contains(&Due::Decided) {
            works.push_back(Work::Turn { pass, stage });
        }
        if dues.contains(&Due::Deal) {
            works.push_back(Work::Deal);
        }
        if dues.contains(&Due::Relief) {
            works.push_back(Work::Relieve);
        }
        if dues.contains(&Due::Move) {
            works.extend([Work::Freeze { moves: true }, Work::AwaitCommit, Work::Move]);
        } else if dues
            .iter()
            .any(|due| matches!(due, Due::Snapshot | Due::Publish | Due::Decided | Due::Stop))
        {
            works.push_back(Work::Freeze { moves: false });
        }
        if dues.contains(&Due::Stop) {
            works.extend([Work::AwaitCommit, Work::Stop]);
        }
        works
    }
}

impl Coordinator {
    /// What can be done now. One snapshot at a time: what needs another one waits until it is written, and so does
    /// what would move the rows that are being written.
    fn possible_dues(&self) -> BTreeSet<Due> {
        let is_idle = self.snapshots.current.is_none();
        // Rows that a save has not copied yet cannot be evicted.
        let evicts = self.is_evicting();
        let possible = |due: &&Due| match due {
            Due::Deal => true,
            // What its batches have made due comes before the end of a pass.
            Due::EndOfStage => (is_idle || !evicts) && !self.has_counted(),
            Due::Evict
            | Due::Publish
            | Due::Decided
            | Due::Relief
            | Due::Snapshot
            | Due::Move
            | Due::Stop => is_idle,
        };
        self.fence.dues.iter().filter(possible).copied().collect()
    }

    pub(crate) fn step_fence(&mut self) -> bool {
        match &self.fence.state {
            State::Open if self.possible_dues().is_empty() && !self.is_exact() => false,
            State::Open => {
                self.fence.number += 1;
                self.fence.state = State::Wanted { since: self.now };
                self.tell(Happening::FenceWanted {
                    number: self.fence.number,
                });
                true
            }
            State::Wanted { .. } => {
                let is_possible = !self.is_exact() || self.snapshots.current.is_none();
                let is_ready = is_possible
                    && self.settlements.is_empty()
                    && self.members.trainers().values().all(|t| !t.is_out());
                if is_ready {
                    self.hold_fence();
                }
                is_ready
            }
            State::Held { .. } => self.step_held(),
        }
    }

    fn hold_fence(&mut self) {
        let dues = self.possible_dues();
        self.fence.dues.retain(|due| !dues.contains(due));
        let (next, evicts) = (self.next_stage(), self.is_evicting());
        let works = Fence::works(&dues, next, evicts);
        if dues.contains(&Due::Publish) {
            self.publish_step();
        }
        self.fence.state = State::Held {
            since: self.now,
            works,
            round: None,
        };
    }

    /// Does the next thing that is due. False: servers are at it.
    fn step_held(&mut self) -> bool {
        let State::Held { works, round, since } = &mut self.fence.state else {
            return false;
        };
        let Some(work) = works.front().cloned() else {
            let held = self.now.saturating_sub(*since);
            self.release(held);
            return true;
        };
        match round.take_if(|round| round.is_complete()) {
            Some(round) => {
                if let Some(words) = round.failure().map(ToOwned::to_owned) {
                    self.fail_work(&work, &words);
                } else {
                    self.finish_work(&work, &round);
                }
                self.pop_work();
                true
            }
            None if round.is_some() => false,
            None => self.begin_work(&work),
        }
    }

    fn pop_work(&mut self) {
        if let State::Held { works, .. } = &mut self.fence.state {
            works.pop_front();
        }
    }

    fn begin_work(&mut self, work: &Work) -> bool {
        let number = self.fence.number;
        let all = self.active_servers();
        let round = match work {
            Work::Evict => self.ask(&all, "to evict rows", |_| Command::Evict { fence: number }),
            Work::Relieve => self.ask(&all, "to make room", |_| Command::Relieve {}),
            Work::Report => self.ask(&[0], "to report metrics", |_| Command::Report {}),
            Work::Turn { pass, stage } => {
                let Some(order) = self.turn(*pass, *stage) else {
                    self.pop_work();
                    return true;
                };
                let epoch = self.epoch;
                let what = "to begin the next stage";
                self.ask(&all, what, |_| Command::Begin {
                    epoch,
                    order: order.clone(),
                })
            }
            Work::Freeze { .. } => {
                let (snapshot, base) = self.plan_snapshot();
                let what = format!("to freeze snapshot {snapshot}");
                self.ask(&all, &what, |_| Command::Freeze { snapshot, base })
            }
            Work::AwaitCommit => {
                let is_idle = self.snapshots.current.is_none();
                if is_idle {
                    self.pop_work();
                }
                return is_idle;
            }
            Work::Move => {
                let Some(round) = self.begin_move() else {
                    self.pop_work();
                    return true;
                };
                round
            }
            Work::Deal => {
                self.take_leases_back();
                self.pop_work();
                return true;
            }
            Work::Stop => {
                self.stop_as_asked();
                return true;
            }
        };
        if let State::Held { round: place, .. } = &mut self.fence.state {
            *place = Some(round);
        }
        true
    }

    fn finish_work(&mut self, work: &Work, round: &Round) {
        match work {
            Work::Report => self.take_report(round),
            Work::Freeze { moves } => self.frozen(round, *moves),
            Work::Move => self.moved(),
            Work::Relieve => self.relieved(round),
            Work::Evict => {
                if let Some(run) = &mut self.run {
                    run.ledger.mark_evicted();
                }
            }
            Work::Turn { .. } | Work::AwaitCommit | Work::Deal | Work::Stop => {}
        }
    }

    fn fail_work(&mut self, work: &Work, words: &str) {
        match work {
            Work::Freeze { .. } => self.fail_snapshot(words),
            Work::Evict
            | Work::Relieve
            | Work::Report
            | Work::Turn { .. }
            | Work::AwaitCommit
            | Work::Move
            | Work::Deal
            | Work::Stop => self.end_run(1, words.to_owned()),
        }
    }

    fn take_report(&mut self, round: &Round) {
        let Some(Answer::Report { metrics }) = round.answers().get(&0) else {
            return;
        };
        let Some(run) = &mut self.run else { return };
        let (pass, (samples, batches)) = (run.ledger.pass(), run.ledger.counted());
        if run.ledger.stage() == Stage::Train {
            run.history.push(PassSummary {
                pass,
                samples,
                batches,
                seconds: self
                    .leased_since
                    .map_or(0.0, |since| self.now.saturating_sub(since).as_secs_f64()),
                train: metrics.clone(),
                bad_lines: run.bad_lines(),
                absent: run.absent_slots(),
                ..PassSummary::default()
            });
        } else {
            let absent = run.absent_slots();
            if let Some(summary) = run.history.last_mut() {
                summary.validation = metrics.clone();
                summary.absent.extend(absent);
            }
        }
    }

    /// All go on. Who polls in between is answered by the state of its membership.
    fn release(&mut self, held: Duration) {
        let number = self.fence.number;
        self.fence.state = State::Open;
        self.members
            .trainers_mut()
            .for_each(|(_, trainer)| trainer.parked = None);
        if let Some(run) = &mut self.run {
            run.ledger.touch(self.now);
            if run.ledger.is_over() {
                // There may be data left in their hands, in a pass that has had its batches.
                self.members
                    .trainers_mut()
                    .for_each(|(_, trainer)| trainer.is_busy = false);
            }
        }
        self.tell(Happening::FenceOver {
            number,
            held_ms: held.as_millis() as u64,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn works(dues: &[Due]) -> Vec<Work> {
        let next = (1, Stage::Train);
        Fence::works(&dues.iter().copied().collect(), next, true).into()
    }

    #[test]
    fn the_next_pass_begins_before_the_snapshot_is_taken() {
        let turn = Work::Turn {
            pass: 1,
            stage: Stage::Train,
        };
        assert_eq!(works(&[Due::Decided]), [turn, Work::Freeze { moves: false }]);
    }

    #[test]
    fn rows_are_evicted_before_the_stage_is_reported() {
        let turn = Work::Turn {
            pass: 1,
            stage: Stage::Train,
        };
        assert_eq!(works(&[Due::EndOfStage]), [Work::Evict, Work::Report, turn]);
    }

    #[test]
    fn rows_are_evicted_before_the_checkpoint_of_the_same_batch() {
        let freeze = Work::Freeze { moves: false };
        assert_eq!(works(&[Due::Evict, Due::Publish]), [Work::Evict, freeze]);
    }

    #[test]
    fn buckets_move_with_a_single_snapshot() {
        let freeze = Work::Freeze { moves: true };
        assert_eq!(
            works(&[Due::Snapshot, Due::Move]),
            [freeze, Work::AwaitCommit, Work::Move]
        );
    }

    #[test]
    fn a_fence_that_is_wanted_has_not_been_passed() {
        let mut fence = Fence {
            number: 3,
            ..Fence::default()
        };
        assert_eq!(fence.passed(), 3);
        fence.number = 4;
        fence.state = State::Wanted {
            since: Duration::ZERO,
        };
        assert_eq!(fence.passed(), 3);
        fence.dues.insert(Due::Snapshot);
        fence.reset();
        assert_eq!((fence.passed(), fence.dues.len()), (4, 0));
    }
}
