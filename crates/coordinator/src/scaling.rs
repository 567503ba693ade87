//! Scaling: buckets move to another number of servers while training goes on.
//!
//! A snapshot is taken and committed; those who receive buckets read them from it, beside what they serve; at the next
//! fence an increment is taken and committed together with the new route; the receivers complete what they
//! have, the others drop what has gone, and a new epoch begins. Until the commit nothing has happened, after it
//! there is no way back: whatever dies, a recovery finishes the move.

use std::time::Duration;

use crate::calls::{Overdue, Round};
use crate::coordinator::Coordinator;
use crate::event::Happening;
use crate::fence::Due;
use crate::message::Command;
use crate::route::Route;

#[derive(Clone, Debug)]
pub(crate) struct Scaling {
    pub(crate) next: Route,
    /// Servers before.
    before: u32,
    pub(crate) since: Duration,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
    /// New servers have to register.
    Gathering,
    /// A snapshot is to be committed after this one.
    Copying {
        after: Option<u64>,
    },
    Preparing(Round),
    Moving,
}

impl Scaling {
    pub(crate) fn new(before: &Route, servers: u32, since: Duration) -> Self {
        Self {
            next: before.resized(servers),
            before: before.servers,
            since,
            step: Step::Gathering,
        }
    }

    pub(crate) fn round_mut(&mut self) -> Option<&mut Round> {
        match &mut self.step {
            Step::Preparing(round) => Some(round),
            Step::Gathering | Step::Copying { .. } | Step::Moving => None,
        }
    }

    pub(crate) fn is_gathering(&self) -> bool {
        matches!(self.step, Step::Gathering)
    }
}

impl Coordinator {
    /// Receivers read the files of the last snapshot: no other must take its place.
    pub(crate) fn is_preparing(&self) -> bool {
        let step = self.scaling.as_ref().map(|scaling| &scaling.step);
        matches!(step, Some(Step::Preparing(_) | Step::Moving))
    }

    /// Servers that a wish waits for.
    pub(crate) fn awaited_for_scaling(&self) -> Vec<u32> {
        let scaling = self.scaling.as_ref().filter(|scaling| scaling.is_gathering());
        let wanted = scaling.map_or(0, |scaling| scaling.next.servers);
        (0..wanted)
            .filter(|index| !self.members.is_live(*index))
            .collect()
    }

    pub(crate) fn next_route(&self) -> Option<Route> {
        self.scaling.as_ref().map(|scaling| scaling.next.clone())
    }

    pub(crate) fn step_scaling(&mut self) -> bool {
        let Some(scaling) = &self.scaling else {
            return false;
        };
        match &scaling.step {
            Step::Gathering => self.step_scaling_gathering(),
            Step::Copying { after } => {
                let last = self.committed.snapshot.as_ref().map(|files| files.snapshot);
                if last > *after {
                    self.prepare();
                    return true;
                }
                // The snapshot has failed: say so rather than try for ever.
                let is_over = self.snapshots.current.is_none() && !self.fence.dues.contains(&Due::Snapshot);
                let has_failed = is_over && self.fence.is_open();
                if has_failed {
                    self.give_up_scaling("its snapshot has failed");
                }
                has_failed
            }
            Step::Preparing(round) => {
                let (is_complete, failure) = (round.is_complete(), round.failure().map(ToOwned::to_owned));
                if let Some(words) = failure {
                    self.give_up_scaling(&words);
                    return true;
                }
                if is_complete {
                    self.set_step(Step::Moving);
                    self.fence.dues.insert(Due::Move);
                }
                is_complete
            }
            Step::Moving => false,
        }
    }

    fn set_step(&mut self, step: Step) {
        if let Some(scaling) = &mut self.scaling {
            scaling.step = step;
        }
    }

    fn step_scaling_gathering(&mut self) -> bool {
        let Some(Scaling { since, .. }) = &self.scaling else {
            return false;
        };
        if let Some(index) = self.awaited_for_scaling().first() {
            let is_late = self.now >= *since + self.settings.wait_deadline;
            if is_late {
                let whom = self.members.server_words(*index, self.now);
                self.give_up_scaling(&format!("gave up waiting for {whom}"));
            }
            return is_late;
        }
        if self.snapshots.current.is_some() || !self.fence.is_open() {
            return false;
        }
        let after = self.committed.snapshot.as_ref().map(|files| files.snapshot);
        self.set_step(Step::Copying { after });
        self.fence.dues.insert(Due::Snapshot);
        true
    }

    fn prepare(&mut self) {
        let (Some(scaling), Some(run)) = (&self.scaling, &self.run) else {
            return;
        };
        let Some(snapshot) = self.committed.snapshot.clone() else {
            return;
        };
        let receivers = self.route.receivers(&scaling.next);
        let (job, route) = (Box::new(run.job.clone()), scaling.next.buckets.clone());
        let epoch = self.epoch;
        let command = |index| Command::Prepare {
            job: job.clone(),
            index,
            epoch,
            route: route.clone(),
            snapshot: snapshot.clone(),
        };
        let limit = self.settings.load_deadline;
        let round = self.ask_within(
            &receivers,
            "to read their new buckets",
            limit,
            Overdue::Failure,
            command,
        );
        self.set_step(Step::Preparing(round));
    }

    /// The increment is committed with the new route: serve by it. Nothing: it is not, all stays as it was.
    pub(crate) fn begin_move(&mut self) -> Option<Round> {
        let next = self.next_route()?;
        if self.committed.route != next {
            self.give_up_scaling("its snapshot has failed");
            return None;
        }
        let snapshot = self.committed.snapshot.clone()?;
        self.route = next;
        if !self
            .active_servers()
            .iter()
            .all(|index| self.members.is_live(*index))
        {
            self.go_back();
            return None;
        }
        let order = self.new_turn();
        let (epoch, route) = (self.epoch, self.route.buckets.clone());
        let command = |index| Command::Move {
            index,
            epoch,
            route: route.clone(),
            snapshot: snapshot.clone(),
            order: order.clone(),
        };
        let (all, limit) = (self.active_servers(), self.settings.load_deadline);
        Some(self.ask_within(&all, "to take their new buckets", limit, Overdue::Death, command))
    }

    pub(crate) fn moved(&mut self) {
        // A dead trainer of the epoch before has nothing left that could be applied.
        self.settlements.clear();
        self.settling.clear();
        let before = self.scaling.take().map_or(0, |scaling| scaling.before);
        self.snapshots.make_full();
        self.dismiss(self.route.servers..before);
        self.tell(Happening::Scaled {
            servers: self.route.servers,
        });
        let snapshot = self.committed.snapshot.as_ref().map(|files| files.snapshot);
        self.tell(Happening::EpochBegun {
            epoch: self.epoch,
            snapshot,
        });
    }

    /// Servers whose buckets have gone have nothing left to do.
    fn dismiss(&mut self, servers: std::ops::Range<u32>) {
        let servers: Vec<u32> = servers.filter(|index| self.members.is_live(*index)).collect();
        let words = "its buckets have moved to other servers".to_owned();
        let command = |_| Command::Stop {
            exit_code: 0,
            words: words.clone(),
        };
        self.ask_within(
            &servers,
            "",
            self.settings.call_deadline,
            Overdue::Failure,
            command,
        );
        for index in servers {
            self.calls.forget(index);
            self.members.dismiss(index);
        }
    }

    /// A server that has no buckets yet is lost.
    pub(crate) fn lost_spare(&mut self, index: u32) {
        let is_receiver = |scaling: &Scaling| index < scaling.next.servers && !scaling.is_gathering();
        if !self.scaling.as_ref().is_some_and(is_receiver) {
            return;
        }
        let reason = "a pserver that was to receive buckets was lost";
        if self
            .snapshots
            .drafted_route()
            .is_some_and(|route| *route != self.route)
        {
            // What is on its way to the commit file cannot be called back: then a recovery waits for the server.
            if self.snapshots.is_storing() {
                return;
            }
            self.fail_snapshot(reason);
        }
        self.give_up_scaling(reason);
    }

    pub(crate) fn give_up_scaling(&mut self, reason: &str) {
        let Some(scaling) = self.scaling.take() else {
            return;
        };
        self.fence.dues.remove(&Due::Move);
        let reason = reason.to_owned();
        self.scaling_failure = Some(reason.clone());
        self.tell(Happening::ScalingFailed {
            servers: scaling.next.servers,
            reason,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::Phase;
    use crate::event::{Action, Event};
    use crate::job::Strategy;
    use crate::job::tests::job;
    use crate::message::{Layer, Reply, Request, RequestId, SnapshotFiles};
    use crate::run::Run;
    use crate::settings::Settings;

    fn running() -> Coordinator {
        let mut coordinator = Coordinator::new(Settings::default(), None);
        coordinator.phase = Phase::Running {
            since: Duration::ZERO,
        };
        coordinator
    }

    fn scale(coordinator: &mut Coordinator, pservers: u32) -> Reply {
        let from = RequestId {
            connection: 1,
            number: 1,
        };
        let request = Request::Scale { pservers };
        let actions = coordinator.handle(Event::Request { from, request }, Duration::ZERO);
        let reply = actions.into_iter().find_map(|action| match action {
            Action::Reply { reply, .. } => Some(reply),
            Action::Call { .. } | Action::Store { .. } | Action::Stop { .. } | Action::Tell { .. } => None,
        });
        reply.expect("a request is answered")
    }

    #[test]
    fn a_wish_that_waits_for_servers_can_be_taken_back() {
        let mut coordinator = running();
        assert!(matches!(scale(&mut coordinator, 3), Reply::Accepted { .. }));
        let Reply::Refused { reason, .. } = scale(&mut coordinator, 2) else {
            unreachable!("one wish at a time")
        };
        assert_eq!(
            reason,
            "the cluster waits for pservers to be scaled to 3; --pservers 1 takes that back"
        );
        let Reply::Accepted { words } = scale(&mut coordinator, 1) else {
            unreachable!("it can be taken back")
        };
        assert_eq!(
            words,
            "the cluster stays at 1 pservers: 3 were wanted, and are not any more"
        );
        let status = coordinator.status();
        assert_eq!((status.scaling_to, status.num_servers), (None, 1));
        assert!(
            status
                .waiting
                .iter()
                .all(|wait| wait.member.as_deref() != Some("pserver 1"))
        );
        // Who waits for it learns why it does not come.
        let failure = status.scaling_failure.unwrap_or_default();
        assert_eq!(failure, "it was taken back before the pservers had come");
        assert!(matches!(scale(&mut coordinator, 2), Reply::Accepted { .. }));
    }

    /// Whether the next snapshot is full: the chain has as many layers as the job lets it have.
    fn is_next_full(coordinator: &mut Coordinator) -> bool {
        let job = job(Strategy::Async, 2, 0, 1);
        let layer = |snapshot| Layer {
            snapshot,
            is_full: snapshot == 1,
            files: Vec::new(),
        };
        coordinator.committed.snapshot = Some(SnapshotFiles {
            snapshot: u64::from(job.full_every),
            layers: (1..=u64::from(job.full_every)).map(layer).collect(),
        });
        coordinator.run = Some(Run::new(job));
        let (_, base) = coordinator.plan_snapshot();
        base.is_none()
    }

    #[test]
    fn a_chain_of_snapshots_grows_beyond_its_length_only_while_buckets_are_copied() {
        let mut coordinator = running();
        scale(&mut coordinator, 2);
        assert!(is_next_full(&mut coordinator), "nothing is copied from it yet");
        coordinator.set_step(Step::Copying { after: None });
        assert!(!is_next_full(&mut coordinator));
    }

    #[test]
    fn a_wish_that_waits_says_for_which_servers() {
        let mut coordinator = running();
        let Reply::Accepted { words } = scale(&mut coordinator, 2) else {
            unreachable!("it is a wish like any other")
        };
        let expected =
            "waiting for pserver 0 and pserver 1; then buckets move to 2 pservers while training goes on";
        assert_eq!(words, expected);
        assert_eq!(coordinator.status().scaling_waits_for, [0, 1]);
        coordinator.set_step(Step::Moving);
        assert_eq!(coordinator.status().scaling_waits_for, [0; 0]);
    }

    #[test]
    fn buckets_that_are_on_their_way_are_not_called_back() {
        let mut coordinator = running();
        scale(&mut coordinator, 2);
        coordinator.set_step(Step::Copying { after: None });
        coordinator.fence.dues.insert(Due::Snapshot);
        let Reply::Refused { reason, .. } = scale(&mut coordinator, 1) else {
            unreachable!("they are on their way")
        };
        assert_eq!(reason, "the cluster is being scaled to 2 pservers");
    }
}
