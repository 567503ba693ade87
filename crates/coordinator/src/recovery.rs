//! Recovery: how a cluster starts, and how it starts again when a server is lost. It is the same thing.
//!
//! The number of this life of the coordinator is made durable; then all servers of the route and the job must be
//! there; then all servers read the last committed snapshot, the ledger goes back to it, and a new epoch begins.

use crate::calls::Overdue;
use crate::coordinator::{Coordinator, Phase};
use crate::event::Happening;
use crate::job::Strategy;
use crate::members::PER_LIFE;
use crate::message::{Command, Order};
use crate::scaling::Scaling;
use crate::waits::Wait;

/// Exit code of a run whose files are damaged, as the command line has it.
const DAMAGED: i32 = 4;

impl Coordinator {
    pub(crate) fn step_starting(&mut self) -> bool {
        let Phase::Starting {
            store,
            since,
            retry_at,
        } = &self.phase
        else {
            return false;
        };
        let since = if self.num_stores == 0 { self.now } else { *since };
        let is_free = store.is_none();
        if self.now >= since + self.settings.start_deadline {
            self.end_run(1, "the commit file could not be written".to_owned());
            return true;
        }
        if !is_free || self.now < *retry_at {
            return false;
        }
        let number = self.store(Box::new(self.committed.clone()));
        let retry_at = self.now + self.settings.retry_interval;
        self.phase = Phase::Starting {
            store: Some(number),
            since,
            retry_at,
        };
        true
    }

    pub(crate) fn stored_life(&mut self, number: u64, result: &Result<(), String>) -> bool {
        let Phase::Starting { store, .. } = &mut self.phase else {
            return false;
        };
        if *store != Some(number) {
            return false;
        }
        match result {
            Ok(()) => self.phase = Phase::Gathering { since: self.now },
            Err(words) => {
                *store = None;
                let words = format!("the commit file cannot be written: {words}");
                self.tell(Happening::Waiting { words });
            }
        }
        true
    }

    pub(crate) fn step_gathering(&mut self) -> bool {
        let Phase::Gathering { since } = self.phase else {
            return false;
        };
        let deadline = since + self.gathering_limit();
        if self.committed.is_over {
            // Until a trainer comes: it may bring passes that are to be added.
            let is_alone = self.now >= deadline;
            if is_alone {
                self.end_old_run();
            }
            return is_alone;
        }
        if self.now >= deadline {
            let words = self
                .gathering_waits(since)
                .iter()
                .map(Wait::whom_words)
                .collect::<Vec<_>>();
            self.end_run(1, format!("gave up waiting for {}", words.join(", ")));
            return true;
        }
        // It may bring other passes; and if nothing can be loaded, there is one to be told so.
        let is_first_awaited = self.num_epochs == 0 && !self.has_agreed;
        if is_first_awaited || self.snapshots.is_storing() {
            return false;
        }
        if !self.missing_servers().is_empty() {
            return false;
        }
        self.settle_number();
        self.route = self.committed.route.clone();
        self.load();
        true
    }

    pub(crate) fn gathering_limit(&self) -> std::time::Duration {
        if self.num_epochs == 0 {
            self.settings.start_deadline
        } else {
            self.settings.wait_deadline
        }
    }

    /// The run was over before this life, and nobody has brought more to do.
    pub(crate) fn end_old_run(&mut self) {
        self.end_as_committed();
        let num_here = self.members.servers().keys().filter(|index| **index != 0).count();
        if let Phase::Ending(ending) = &mut self.phase {
            ending.has_servers(num_here as u32);
        }
    }

    fn load(&mut self) {
        let Some(run) = &mut self.run else { return };
        run.go_back(self.committed.run.clone());
        let order = run.ledger.order(run.metrics.is_none(), run.adjust.clone());
        let (job, metrics) = (Box::new(run.job.clone()), run.metrics.clone());
        self.next_epoch();
        let (epoch, route) = (self.epoch, self.route.buckets.clone());
        let snapshot = self.committed.snapshot.clone();
        let command = |index| Command::Load {
            job: job.clone(),
            index,
            epoch,
            route: route.clone(),
            snapshot: snapshot.clone(),
            metrics: metrics.clone().filter(|_| index == 0),
            order: order.clone(),
        };
        let (all, limit) = (self.active_servers(), self.settings.load_deadline);
        let round = self.ask_within(&all, "to load the last snapshot", limit, Overdue::Death, command);
        self.phase = Phase::Loading { round };
    }

    pub(crate) fn step_loading(&mut self) -> bool {
        let Phase::Loading { round } = &self.phase else {
            return false;
        };
        if let Some(words) = round.failure().map(ToOwned::to_owned) {
            let way_on = match &self.committed.snapshot {
                None => "",
                Some(_) => {
                    "; this snapshot cannot be loaded: bring the file back, or start a new run \
                     from a checkpoint with `init_model_path`"
                }
            };
            // What a run starts from may only be out of reach of a server.
            let is_damaged = round.is_damaged() && self.committed.snapshot.is_some();
            let exit_code = if is_damaged { DAMAGED } else { 1 };
            self.end_run(exit_code, words + way_on);
            return true;
        }
        if !round.is_complete() {
            return false;
        }
        self.phase = Phase::Running { since: self.now };
        self.began.get_or_insert(self.now);
        self.snapshots.last = self.now;
        self.snapshots.make_full();
        self.alone_since = None;
        if let Some(scaling) = &mut self.scaling {
            scaling.since = self.now;
        }
        let snapshot = self.committed.snapshot.as_ref().map(|files| files.snapshot);
        self.tell(Happening::EpochBegun {
            epoch: self.epoch,
            snapshot,
        });
        true
    }

    pub(crate) fn next_epoch(&mut self) {
        self.num_epochs += 1;
        self.epoch = self.committed.life * PER_LIFE + self.num_epochs;
    }

    /// A new epoch with the parameters that are there: all leases are void.
    pub(crate) fn new_turn(&mut self) -> Order {
        self.next_epoch();
        self.settling.clear();
        self.members.trainers_mut().for_each(|(_, trainer)| {
            trainer.is_busy = false;
            trainer.parked = None;
        });
        let run = self.run.as_mut().expect("a cluster that runs has a job");
        if run.job.strategy == Strategy::Hybrid {
            run.ledger.close_round(self.now);
        }
        run.ledger.void();
        run.ledger.deal(&[], self.now);
        run.ledger.order(false, None)
    }

    /// Declares a server dead.
    pub(crate) fn lose_server(&mut self, index: u32, reason: &str) {
        let Some(server) = self
            .members
            .servers()
            .get(&index)
            .filter(|server| server.lost.is_none())
        else {
            return;
        };
        let (address, reason) = (server.address.clone(), reason.to_owned());
        self.members.lose(index, self.now);
        self.lost_server(index, address, reason);
    }

    /// What follows from the loss of a server.
    pub(crate) fn lost_server(&mut self, index: u32, address: String, reason: String) {
        self.calls.forget(index);
        self.tell(Happening::ServerLost {
            index,
            address,
            reason,
        });
        match &mut self.phase {
            Phase::Loading { .. } | Phase::Running { .. } if index < self.route.servers => self.go_back(),
            Phase::Running { .. } => self.lost_spare(index),
            Phase::Ending(ending) => ending.forget(index),
            Phase::Starting { .. } | Phase::Gathering { .. } | Phase::Loading { .. } | Phase::Stopped => {}
        }
    }

    /// Nothing that was under way counts any more; what was committed last is loaded when all servers are there.
    pub(crate) fn go_back(&mut self) {
        self.phase = Phase::Gathering { since: self.now };
        self.calls.clear();
        self.settlements.clear();
        self.settling.clear();
        self.fence.reset();
        self.snapshots.reset(self.now);
        self.publish = None;
        // A wish that waits for servers has not begun, and waits on; for those that took the places of lost ones, too.
        if !self.scaling.as_ref().is_some_and(Scaling::is_gathering) {
            self.give_up_scaling("a pserver was lost");
        }
        self.members.trainers_mut().for_each(|(_, trainer)| {
            trainer.is_busy = false;
            trainer.parked = None;
        });
        if let Some(run) = &mut self.run {
            run.ledger.void();
        }
    }
}
