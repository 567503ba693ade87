//! The world of a simulated cluster: processes, connections, time, and what goes wrong.
//!
//! Everything is a delivery at a point of time, drawn from the seed. Control messages of a connection keep their order
//! and are lost with it; data messages between a trainer and a server keep their order and are sometimes lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clickmill_coordinator::{CallId, Command, Coordinator, Event, Reply, Request, Settings, Stage, Strategy};

use crate::chaos::PROFILES;
use crate::disk::Disk;
use crate::plan::{Applied, Batch, EVICTED, Plan, batches_of};
use crate::random::Random;
use crate::server::{Part, Server};
use crate::trainer::Trainer;

pub(crate) type Process = u64;
pub(crate) type Connection = u64;

#[derive(Debug)]
pub(crate) enum Delivery {
    ToCoordinator {
        life: u64,
        event: Event,
    },
    Reply {
        connection: Connection,
        number: u64,
        reply: Reply,
    },
    Call {
        connection: Connection,
        call: CallId,
        command: Command,
    },
    Push {
        from: Process,
        to: Process,
        index: u32,
        epoch: u64,
        incarnation: u64,
        number: u64,
        parts: Vec<Part>,
        step: PushStep,
    },
    Pushed {
        to: Process,
        index: u32,
        number: u64,
        epoch: u64,
        is_commit: bool,
        fence: Option<u64>,
    },
    Timer {
        process: Process,
    },
    Computed {
        process: Process,
        life: u64,
    },
    Worked {
        process: Process,
        incarnation: u64,
        request: Request,
    },
    Start {
        role: Role,
    },
    Disk {
        is_full: bool,
    },
    Tick,
    Chaos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushStep {
    Hold,
    Commit,
    Score,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    Trainer,
    Server { index: Option<u32> },
    Coordinator,
}

pub(crate) enum Body {
    Trainer(Box<Trainer>),
    Server(Box<Server>),
}

pub(crate) struct Living {
    pub(crate) body: Body,
    pub(crate) connection: Option<Connection>,
    /// The number of the open request, by which its answer is known; heartbeats have others.
    pub(crate) open: Option<(u64, u64)>,
    pub(crate) num_requests: u64,
    pub(crate) stalled_until: u64,
    /// Changes with every piece of work, so that an old timer does not count.
    pub(crate) work: u64,
}

pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) plan: Plan,
    pub(crate) disk: Disk,
    pub(crate) coordinator: Option<Coordinator>,
    pub(crate) life: u64,
    pub(crate) settings: Settings,
    pub(crate) now: u64,
    pub(crate) queue: BTreeMap<(u64, u64), Delivery>,
    pub(crate) num_deliveries: u64,
    pub(crate) processes: BTreeMap<Process, Living>,
    pub(crate) num_processes: u64,
    pub(crate) connections: BTreeMap<Connection, Process>,
    pub(crate) num_connections: u64,
    /// The last delivery of each ordered stream.
    pub(crate) streams: BTreeMap<(u64, u64), u64>,
    pub(crate) leases: BTreeMap<(u64, u64), u64>,
    /// The connection with which a server has registered, by index.
    pub(crate) routes: BTreeMap<u32, Connection>,
    pub(crate) round_fences: BTreeMap<u64, u64>,
    pub(crate) chaos_until: u64,
    pub(crate) chaos_every: u64,
    /// Kinds of disasters that happen in this world.
    pub(crate) profile: &'static [u64],
    pub(crate) stopped: Option<(i32, String)>,
    pub(crate) num_disasters: u64,
    /// Pass and batch of all checkpoints within passes that somebody was asked to write.
    pub(crate) published: BTreeSet<(u32, u64)>,
    pub(crate) scaled: u64,
    pub(crate) num_spares_taken: u64,
    pub(crate) num_resized: u64,
    pub(crate) log: Vec<String>,
}

pub(crate) const MS: u64 = 1000;
pub(crate) const SECOND: u64 = 1000 * MS;

impl World {
    pub(crate) fn new(seed: u64, strategy: Strategy, has_chaos: bool) -> Self {
        let mut random = Random::new(seed);
        let plan = Plan::new(strategy, &mut random);
        let servers = random.between(1, 3) as u32;
        let seconds = Duration::from_secs;
        let settings = Settings {
            servers,
            heartbeat_deadline: seconds(5),
            closed_deadline: seconds(2),
            wait_deadline: seconds(600),
            gather_deadline: seconds(3),
            fence_deadline: seconds(40),
            lease_deadline: seconds(40),
            duty_deadline: seconds(40),
            call_deadline: seconds(20),
            load_deadline: seconds(30),
            write_deadline: seconds(15),
            retry_interval: seconds(2),
            end_deadline: seconds(10),
            poll_interval: seconds(2),
            max_attempts: 50,
            ..Settings::default()
        };
        let chaos_until = if has_chaos {
            random.between(10, 90) * SECOND
        } else {
            0
        };
        let chaos_every = random.between(200, 3000) * MS;
        let profile = random.pick(&PROFILES).unwrap_or(PROFILES[0]);
        let num_trainers = random.between(1, 4);
        let mut world = Self {
            random,
            plan,
            disk: Disk::default(),
            coordinator: None,
            life: 0,
            settings,
            now: 0,
            queue: BTreeMap::new(),
            num_deliveries: 0,
            processes: BTreeMap::new(),
            num_processes: 0,
            connections: BTreeMap::new(),
            num_connections: 0,
            streams: BTreeMap::new(),
            leases: BTreeMap::new(),
            routes: BTreeMap::new(),
            round_fences: BTreeMap::new(),
            chaos_until,
            chaos_every,
            profile,
            stopped: None,
            num_disasters: 0,
            published: BTreeSet::new(),
            scaled: 0,
            num_spares_taken: 0,
            num_resized: 0,
            log: Vec::new(),
        };
        world.after(
            0,
            Delivery::Start {
                role: Role::Coordinator,
            },
        );
        for index in 1..servers {
            let delay = world.random.between(0, 3000) * MS;
            world.after(
                delay,
                Delivery::Start {
                    role: Role::Server { index: Some(index) },
                },
            );
        }
        let num_spares = world.random.between(0, 2) * u64::from(world.random.chance(40));
        for _ in 0..num_spares {
            let delay = world.random.between(0, 10_000) * MS;
            let role = Role::Server { index: None };
            world.after(delay, Delivery::Start { role });
        }
        for _ in 0..num_trainers {
            let delay = world.random.between(0, 3000) * MS;
            world.after(delay, Delivery::Start { role: Role::Trainer });
        }
        world.after(0, Delivery::Tick);
        if has_chaos {
            world.after(SECOND, Delivery::Chaos);
        }
        world
    }

    /// Runs until the coordinator stops.
    pub(crate) fn run(&mut self) {
        while self.stopped.is_none() {
            let ((time, _), delivery) = self.queue.pop_first().expect("ticks go on for ever");
            self.now = time;
            assert!(
                time < 4000 * SECOND,
                "the run does not end by itself: {:#?}",
                self.coordinator.as_ref().map(Coordinator::status)
            );
            self.deliver(delivery);
        }
    }

    pub(crate) fn after(&mut self, delay: u64, delivery: Delivery) {
        self.num_deliveries += 1;
        self.queue
            .insert((self.now + delay, self.num_deliveries), delivery);
    }

    /// In order behind the last delivery of the stream.
    pub(crate) fn in_order(&mut self, stream: (u64, u64), delay: u64, delivery: Delivery) {
        let time = (self.now + delay).max(self.streams.get(&stream).copied().unwrap_or(0));
        self.streams.insert(stream, time);
        self.num_deliveries += 1;
        self.queue.insert((time, self.num_deliveries), delivery);
    }

    pub(crate) fn delay(&mut self) -> u64 {
        if self.random.chance(3) {
            self.random.between(1, 1500) * MS
        } else {
            self.random.between(100, 20 * MS)
        }
    }

    pub(crate) fn note(&mut self, words: impl std::fmt::Display) {
        self.log.push(format!("{:>9.3} {words}", self.now as f64 / 1e6));
    }

    pub(crate) fn deliver(&mut self, delivery: Delivery) {
        if let Some(until) = self.stall_of(&delivery) {
            let wait = until - self.now;
            return self.after(wait, delivery);
        }
        match delivery {
            Delivery::ToCoordinator { life, event } => {
                if life == self.life {
                    self.feed(event);
                }
            }
            Delivery::Reply {
                connection,
                number,
                reply,
            } => self.replied(connection, number, reply),
            Delivery::Call {
                connection,
                call,
                command,
            } => self.called(connection, call, &command),
            Delivery::Push {
                from,
                to,
                index,
                epoch,
                incarnation,
                number,
                parts,
                step,
            } => {
                self.pushed(from, to, index, epoch, incarnation, number, parts, step);
            }
            Delivery::Pushed {
                to,
                index,
                number,
                epoch,
                is_commit,
                fence,
            } => {
                self.push_answered(to, index, number, epoch, is_commit, fence);
            }
            Delivery::Timer { process } => self.timer(process),
            Delivery::Computed { process, life } => self.computed(process, life),
            Delivery::Worked {
                process,
                incarnation,
                request,
            } => {
                let trainer = self.trainer_mut(process);
                let own = trainer.filter(|trainer| trainer.incarnation == incarnation && trainer.is_on_duty);
                if let Some(trainer) = own {
                    trainer.is_on_duty = false;
                    self.ask(process, request);
                }
            }
            Delivery::Start { role } => self.start(role),
            Delivery::Disk { is_full } => self.disk.is_full = is_full,
            Delivery::Tick => {
                self.feed(Event::Tick);
                self.after(500 * MS, Delivery::Tick);
            }
            Delivery::Chaos => {
                if self.now < self.chaos_until {
                    self.disaster();
                    let wait = self.random.between(1, 2 * self.chaos_every);
                    self.after(wait, Delivery::Chaos);
                } else {
                    self.make_whole();
                }
            }
        }
    }

    /// A process that is stalled gets everything later.
    pub(crate) fn stall_of(&self, delivery: &Delivery) -> Option<u64> {
        let process = match delivery {
            Delivery::Reply { connection, .. } | Delivery::Call { connection, .. } => {
                *self.connections.get(connection)?
            }
            Delivery::Push { to, .. } | Delivery::Pushed { to, .. } => *to,
            Delivery::Timer { process }
            | Delivery::Computed { process, .. }
            | Delivery::Worked { process, .. } => *process,
            Delivery::ToCoordinator { .. }
            | Delivery::Start { .. }
            | Delivery::Disk { .. }
            | Delivery::Tick
            | Delivery::Chaos => return None,
        };
        self.processes
            .get(&process)
            .map(|living| living.stalled_until)
            .filter(|until| *until > self.now)
    }

    /// What must be true when the run has ended by itself.
    pub(crate) fn check(&self) {
        let (exit_code, words) = self.stopped.as_ref().expect("the run has ended");
        assert_eq!(*exit_code, 0, "{words}");
        let committed = self.disk.committed.as_ref().expect("a run ends with a commit");
        let snapshot = committed.snapshot.as_ref().expect("a run ends with a snapshot");
        let applied = self
            .disk
            .read(snapshot, 0)
            .expect("the files of the last snapshot are there");
        let (plan, trained) = (&self.plan, batches_of(&applied));
        let run = committed.run.as_ref().expect("a run ends with its ledger");
        run.history
            .iter()
            .for_each(|summary| plan.check_bad_lines(summary));
        let ledger = &run.ledger;
        assert_eq!(
            (ledger.stage, ledger.pass as usize + 1),
            (Stage::Ended, plan.job.passes.len())
        );
        plan.check_trained(ledger, &trained);
        if self.plan.job.strategy == Strategy::Sync {
            assert_eq!(
                applied,
                self.plan.undisturbed(),
                "rounds are those of an undisturbed run"
            );
        }
        if self.num_disasters == 0 {
            (0..plan.job.passes.len() as u32).for_each(|pass| self.check_count(pass, &applied, &trained));
        }
    }

    /// What was due by the number of batches was done, where nothing came in between.
    fn check_count(&self, pass: u32, applied: &[Applied], trained: &[Batch]) {
        let job = &self.plan.job;
        let is_sync = job.strategy == Strategy::Sync;
        let count = if is_sync {
            self.plan.count_rounds(applied, pass)
        } else {
            self.plan.count(trained, pass)
        };
        // Without rounds each of up to four trainers may bring three more.
        let most = if is_sync { 0 } else { 12 };
        assert!(
            job.max_batches == 0 || count <= job.max_batches + most,
            "pass {pass} has {count} batches"
        );
        let published = self.published.iter().filter(|(own, _)| *own == pass);
        let published: Vec<u64> = published.map(|(_, batch)| *batch).collect();
        let due = count.checked_div(job.publish_every).unwrap_or(0);
        if is_sync {
            let expected: Vec<u64> = (1..=due).map(|number| number * job.publish_every).collect();
            assert_eq!(published, expected, "checkpoints within pass {pass}");
        } else {
            assert_eq!(published.is_empty(), due == 0, "checkpoints within pass {pass}");
            let evictions = applied
                .iter()
                .filter(|(_, lane, (own, ..))| *lane == EVICTED && *own == pass);
            let within = evictions.count() - usize::from(job.evicts);
            let due = count.checked_div(job.evict_every).unwrap_or(0);
            assert_eq!(within > 0, due > 0, "evictions within pass {pass}");
        }
    }
}

/// As it comes over the wire.
pub(crate) fn spelled<T: serde::Serialize + serde::de::DeserializeOwned>(message: &T) -> T {
    serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap()
}
