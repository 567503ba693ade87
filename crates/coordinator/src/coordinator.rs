//! The coordinator: takes an event, brings everything forward that can go forward, gives the actions.
//!
//! Events change facts; what follows from the facts is found by `step`, again and again until nothing
//! follows any more. So it does not matter in which order facts become known.

use std::time::Duration;

use crate::calls::{Calls, Overdue, Round};
use crate::committed::Committed;
use crate::ending::Ending;
use crate::error::Error;
use crate::event::{Action, Event, Happening};
use crate::fence::Fence;
use crate::ledger::{Advanced, LedgerEntry};
use crate::members::Members;
use crate::message::{Answer, CallId, Command};
use crate::requests::Waiting;
use crate::route::Route;
use crate::run::Run;
use crate::scaling::Scaling;
use crate::settings::Settings;
use crate::settlement::Settlement;
use crate::snapshots::{Publication, Snapshots};

/// What the cluster is able to do.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// The number of this life is being made durable.
    Starting {
        store: Option<u64>,
        since: Duration,
        retry_at: Duration,
    },
    /// The job or a server is missing.
    Gathering {
        since: Duration,
    },
    /// All servers read the last committed snapshot.
    Loading {
        round: Round,
    },
    Running {
        since: Duration,
    },
    Ending(Ending),
    Stopped,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Coordinator {
    pub(crate) settings: Settings,
    pub(crate) now: Duration,
    pub(crate) phase: Phase,
    pub(crate) members: Members,
    /// What the commit file says.
    pub(crate) committed: Committed,
    /// Servers that this life was started with, where the run had been scaled to another number and it is open which
    /// one counts.
    pub(crate) launched: Option<u32>,
    pub(crate) route: Route,
    pub(crate) epoch: u64,
    pub(crate) run: Option<Run>,
    /// The checkpoint that goes with the next snapshot.
    pub(crate) publish: Option<Publication>,
    pub(crate) calls: Calls,
    pub(crate) fence: Fence,
    pub(crate) snapshots: Snapshots,
    pub(crate) settlements: Vec<Settlement>,
    /// Dead trainers of `sync` that wait for the next settlement.
    pub(crate) settling: Vec<u64>,
    pub(crate) scaling: Option<Scaling>,
    /// Why the last attempt to scale failed; nothing when it did not.
    pub(crate) scaling_failure: Option<String>,
    pub(crate) waiting: Vec<Waiting>,
    /// Since when there has been no trainer while the cluster could train.
    pub(crate) alone_since: Option<Duration>,
    /// A trainer has brought the job of this life: no other number of passes is taken from now on.
    pub(crate) has_agreed: bool,
    /// When the cluster could train for the first time in this life.
    pub(crate) began: Option<Duration>,
    /// Lanes were dealt before, in this life.
    pub(crate) has_gathered: bool,
    /// Since when there has been a lease in the stage under way.
    pub(crate) leased_since: Option<Duration>,
    pub(crate) waits_told: Duration,
    /// Exit code and words of the run, once it has ended.
    pub(crate) verdict: Option<(i32, String)>,
    pub(crate) num_epochs: u64,
    pub(crate) num_stores: u64,
    pub(crate) out: Vec<Action>,
}

impl Coordinator {
    /// `restored`: the commit file that is there.
    pub fn new(settings: Settings, restored: Option<Committed>) -> Self {
        let servers = settings.servers;
        let committed = restored
            .unwrap_or_else(|| Committed::empty(servers))
            .reborn(servers);
        Self {
            settings,
            now: Duration::ZERO,
            phase: Phase::Starting {
                store: None,
                since: Duration::ZERO,
                retry_at: Duration::ZERO,
            },
            members: Members::default(),
            launched: committed.launched_anew(),
            route: committed.route.clone(),
            calls: Calls::new(committed.life),
            run: committed.run.clone().map(Run::restore),
            committed,
            epoch: 0,
            publish: None,
            fence: Fence::default(),
            snapshots: Snapshots::default(),
            settlements: Vec::new(),
            settling: Vec::new(),
            scaling: None,
            scaling_failure: None,
            waiting: Vec::new(),
            alone_since: None,
            has_agreed: false,
            began: None,
            has_gathered: false,
            leased_since: None,
            waits_told: Duration::ZERO,
            verdict: None,
            num_epochs: 0,
            num_stores: 0,
            out: Vec::new(),
        }
    }

    /// `now`: since some start, the same for all calls.
    pub fn handle(&mut self, event: Event, now: Duration) -> Vec<Action> {
        self.now = self.now.max(now);
        match event {
            Event::Request { from, request } => self.request(from, request),
            Event::Closed { from } => self.closed(from),
            Event::ServerAnswer { server, call, answer } => self.answered(server, call, &answer),
            Event::Stored { number, result } => self.stored(number, &result),
            Event::Tick => {}
        }
        self.bury_the_overdue();
        loop {
            while self.step() {}
            if !self.answer_waiting() {
                break;
            }
        }
        self.tell_waits();
        std::mem::take(&mut self.out)
    }

    /// Enters a batch that is being committed on server 0, in the same breath. An error: the push is not to be applied.
    pub fn advance(
        &mut self,
        incarnation: u64,
        epoch: u64,
        lease: u64,
        entry: LedgerEntry,
    ) -> Result<Advanced, Error> {
        if epoch != self.epoch {
            return Err(Error::Epoch {
                asked: epoch,
                current: self.epoch,
            });
        }
        let (Phase::Running { .. }, Some(run)) = (&self.phase, &mut self.run) else {
            return Err(Error::NotRunning {
                reason: self.waiting_words(),
            });
        };
        let trainer = self.members.trainers().get(&incarnation);
        if trainer.is_some_and(|trainer| trainer.parked.is_some()) {
            return Err(Error::Parked { incarnation });
        }
        let applied_round = run.ledger.advance(incarnation, lease, entry, self.now)?;
        self.look_at_count();
        Ok(Advanced {
            applied_round,
            fence: self.fence.number,
        })
    }

    /// The fence that trainers are to come to, or the last one that is over.
    pub fn wanted_fence(&self) -> u64 {
        self.fence.number
    }

    /// Whether the answer to a command is still waited for.
    pub fn is_open(&self, call: CallId) -> bool {
        self.calls.is_open(call)
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn committed(&self) -> &Committed {
        &self.committed
    }

    /// Batches can be trained.
    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    fn step(&mut self) -> bool {
        match &self.phase {
            Phase::Starting { .. } => self.step_starting(),
            Phase::Gathering { .. } => self.step_gathering(),
            Phase::Loading { .. } => self.step_loading(),
            Phase::Running { .. } => {
                self.step_settlements()
                    || self.step_stage()
                    || self.step_fence()
                    || self.step_snapshot()
                    || self.step_scaling()
                    || self.step_end()
            }
            Phase::Ending(_) => self.step_ending(),
            Phase::Stopped => false,
        }
    }

    pub(crate) fn closed(&mut self, connection: u64) {
        if let Phase::Ending(ending) = &mut self.phase {
            ending.closed(connection);
        }
        self.members.close(connection, self.now);
        self.waiting.retain(|waiting| waiting.id.connection != connection);
    }

    fn answered(&mut self, server: u32, call: CallId, answer: &Result<Answer, String>) {
        self.members.answered(server, self.now);
        if self.calls.finish(server, call) {
            if let Ok(Answer::Holding { rows, bytes }) = answer {
                self.members.holds(server, self.epoch, *rows, *bytes);
            }
            self.take_answer(call, answer);
        }
    }

    fn take_answer(&mut self, call: CallId, answer: &Result<Answer, String>) {
        let phase = match &mut self.phase {
            Phase::Loading { round } => Some(round),
            Phase::Ending(ending) => ending.round.as_mut(),
            Phase::Starting { .. } | Phase::Gathering { .. } | Phase::Running { .. } | Phase::Stopped => None,
        };
        let fence = match &mut self.fence.state {
            crate::fence::State::Held { round, .. } => round.as_mut(),
            crate::fence::State::Open | crate::fence::State::Wanted { .. } => None,
        };
        let scaling = self.scaling.as_mut().and_then(Scaling::round_mut);
        let rounds = [phase, fence, scaling, self.snapshots.round_mut()]
            .into_iter()
            .flatten();
        let settlements = self.settlements.iter_mut().filter_map(Settlement::round_mut);
        rounds
            .chain(settlements)
            .for_each(|round| round.take(call, answer));
    }

    fn stored(&mut self, number: u64, result: &Result<(), String>) {
        let is_known = self.stored_life(number, result)
            || self.stored_snapshot(number, result)
            || self.stored_end(number, result);
        debug_assert!(is_known || matches!(self.phase, Phase::Stopped | Phase::Ending(_)));
    }

    /// Whoever let a deadline pass is dead, and everything follows from that.
    fn bury_the_overdue(&mut self) {
        for (call, server, overdue) in self.calls.overdue(self.now) {
            if overdue == Overdue::Failure {
                self.calls.finish(server, call);
                self.take_answer(call, &Err("no answer in time".to_owned()));
            } else if self.members.is_live(server) {
                self.lose_server(server, "it did not answer a command in time");
            }
        }
        for (index, reason) in self.members.dead_servers(&self.settings, self.now) {
            self.lose_server(index, &reason);
        }
        for (incarnation, reason) in self.members.dead_trainers(&self.settings, self.now) {
            self.bury(incarnation, &reason);
        }
        while let Some((incarnation, reason)) = self.late_trainer() {
            self.bury(incarnation, &reason);
        }
    }

    /// A trainer that lives but holds up the others.
    fn late_trainer(&self) -> Option<(u64, String)> {
        let run = self.run.as_ref().filter(|_| self.is_running())?;
        if let Some(late) = run.duties.overdue(self.settings.duty_deadline, self.now) {
            return Some(late);
        }
        if let crate::fence::State::Wanted { since } = self.fence.state {
            let limit = self.settings.fence_deadline;
            let out = self
                .members
                .trainers()
                .iter()
                .find(|(_, trainer)| trainer.is_out());
            let reason = format!(
                "did not come to fence {} within {} s",
                self.fence.number,
                limit.as_secs()
            );
            return out
                .filter(|_| self.now >= since + limit)
                .map(|(incarnation, _)| (*incarnation, reason));
        }
        if !self.fence.is_open() || !self.settlements.is_empty() {
            return None;
        }
        let (slowest, since) = run.ledger.slowest()?;
        let limit = self.settings.lease_deadline;
        let is_late = self.now >= since + limit && self.members.trainers().contains_key(&slowest);
        is_late.then(|| {
            (
                slowest,
                format!("has brought no batch of its lease for {} s", limit.as_secs()),
            )
        })
    }

    /// A trainer is no more: its work goes to others.
    pub(crate) fn bury(&mut self, incarnation: u64, reason: &str) {
        let Some(trainer) = self.members.bury(incarnation) else {
            return;
        };
        self.waiting
            .retain(|waiting| waiting.incarnation() != Some(incarnation));
        if let Some(run) = &mut self.run {
            run.duties.free(incarnation);
        }
        let reason = reason.to_owned();
        self.tell(Happening::TrainerGone {
            name: trainer.name,
            incarnation,
            reason,
        });
        if self.is_running() {
            self.settle_later(incarnation, trainer.granted);
        }
    }

    pub(crate) fn active_servers(&self) -> Vec<u32> {
        (0..self.route.servers).collect()
    }

    /// The same command to several servers. One that does not answer in time is dead.
    pub(crate) fn ask(&mut self, servers: &[u32], what: &str, command: impl Fn(u32) -> Command) -> Round {
        self.ask_within(
            servers,
            what,
            self.settings.call_deadline,
            Overdue::Death,
            command,
        )
    }

    pub(crate) fn ask_within(
        &mut self,
        servers: &[u32],
        what: &str,
        limit: Duration,
        overdue: Overdue,
        command: impl Fn(u32) -> Command,
    ) -> Round {
        let deadline = self.now + limit;
        let mut round = Round::new(what.to_owned(), self.now, deadline);
        for server in servers {
            let call = self
                .calls
                .start(*server, command(*server), deadline, overdue, &mut self.out);
            round.expect(call, *server);
        }
        round
    }

    /// The same command to all servers; nobody waits for their answers.
    pub(crate) fn inform(&mut self, command: impl Fn(u32) -> Command) {
        let all = self.active_servers();
        self.ask_within(&all, "", self.settings.call_deadline, Overdue::Failure, command);
    }

    pub(crate) fn store(&mut self, committed: Box<Committed>) -> u64 {
        self.num_stores += 1;
        self.out.push(Action::Store {
            number: self.num_stores,
            committed,
        });
        self.num_stores
    }

    pub(crate) fn tell(&mut self, event: Happening) {
        self.out.push(Action::Tell { event });
    }
}
