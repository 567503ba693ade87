//! The world of a simulated cluster: processes, connections, time, and what goes wrong.
//!
//! Everything is a delivery at a point of time, drawn from the seed. Control messages of a connection keep their order
//! and are lost with it; data messages between a trainer and a server keep their order and are sometimes lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clickmill_coordinator::{
    Action, Answer, CallId, Command, Coordinator, Error, Event, Happening, Reply, Request, RequestId,
    ServerStatistics, Settings, SnapshotFiles, Strategy,
};

use crate::disk::Disk;
use crate::plan::{Plan, batches_of, sorted};
use crate::random::Random;
use crate::server::{Part, Server};
use crate::trainer::{Next, Trainer};

pub(crate) type Process = u64;
type Connection = u64;

#[derive(Debug)]
enum Delivery {
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
enum PushStep {
    Hold,
    Commit,
    Score,
}

#[derive(Clone, Debug)]
enum Role {
    Trainer,
    Server { index: Option<u32> },
    Coordinator,
}

enum Body {
    Trainer(Box<Trainer>),
    Server(Box<Server>),
}

struct Living {
    body: Body,
    connection: Option<Connection>,
    /// The number of the open request, by which its answer is known; heartbeats have others.
    open: Option<(u64, u64)>,
    num_requests: u64,
    stalled_until: u64,
    /// Changes with every piece of work, so that an old timer does not count.
    work: u64,
}

pub(crate) struct World {
    random: Random,
    pub(crate) plan: Plan,
    pub(crate) disk: Disk,
    coordinator: Option<Coordinator>,
    life: u64,
    settings: Settings,
    now: u64,
    queue: BTreeMap<(u64, u64), Delivery>,
    num_deliveries: u64,
    processes: BTreeMap<Process, Living>,
    num_processes: u64,
    connections: BTreeMap<Connection, Process>,
    num_connections: u64,
    /// The last delivery of each ordered stream.
    streams: BTreeMap<(u64, u64), u64>,
    leases: BTreeMap<(u64, u64), u64>,
    /// The connection with which a server has registered, by index.
    routes: BTreeMap<u32, Connection>,
    round_fences: BTreeMap<u64, u64>,
    chaos_until: u64,
    chaos_every: u64,
    /// Kinds of disasters that happen in this world.
    profile: &'static [u64],
    pub(crate) stopped: Option<(i32, String)>,
    pub(crate) num_disasters: u64,
    pub(crate) scaled: u64,
    pub(crate) log: Vec<String>,
}

/// Trainers, servers, scaling, connections, and everything at once; the numbers are those of [`World::disaster`].
const PROFILES: [&[u64]; 5] = [
    &[0, 0, 0, 9, 12, 13, 14],
    &[0, 3, 3, 5, 7, 9, 11, 14],
    &[0, 12, 13, 14, 15, 15, 15, 15, 3],
    &[7, 7, 7, 9, 9, 14],
    &[0, 0, 0, 3, 3, 5, 6, 7, 7, 9, 9, 11, 12, 13, 14, 15],
];

const MS: u64 = 1000;
const SECOND: u64 = 1000 * MS;

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
            scaled: 0,
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

    fn after(&mut self, delay: u64, delivery: Delivery) {
        self.num_deliveries += 1;
        self.queue
            .insert((self.now + delay, self.num_deliveries), delivery);
    }

    /// In order behind the last delivery of the stream.
    fn in_order(&mut self, stream: (u64, u64), delay: u64, delivery: Delivery) {
        let time = (self.now + delay).max(self.streams.get(&stream).copied().unwrap_or(0));
        self.streams.insert(stream, time);
        self.num_deliveries += 1;
        self.queue.insert((time, self.num_deliveries), delivery);
    }

    fn delay(&mut self) -> u64 {
        if self.random.chance(3) {
            self.random.between(1, 1500) * MS
        } else {
            self.random.between(100, 20 * MS)
        }
    }

    fn note(&mut self, words: String) {
        self.log.push(format!("{:>9.3} {words}", self.now as f64 / 1e6));
    }

    fn deliver(&mut self, delivery: Delivery) {
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
            } => self.called(connection, call, command),
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
    fn stall_of(&self, delivery: &Delivery) -> Option<u64> {
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

    // Processes.

    fn start(&mut self, role: Role) {
        let body = match &role {
            Role::Trainer => {
                let name = format!("host-{}", self.random.between(0, 5));
                Body::Trainer(Box::new(Trainer::new(name)))
            }
            Role::Server { index } => {
                let incarnation = self.random.between(1, 1 << 50);
                Body::Server(Box::new(Server {
                    incarnation,
                    wanted_index: *index,
                    ..Server::default()
                }))
            }
            Role::Coordinator => {
                if self.coordinator.is_some() {
                    return;
                }
                self.life += 1;
                self.round_fences.clear();
                self.routes.clear();
                self.note(format!("coordinator starts, life {}", self.life));
                self.coordinator = Some(Coordinator::new(
                    self.settings.clone(),
                    self.disk.committed.clone(),
                ));
                let incarnation = self.random.between(1, 1 << 50);
                Body::Server(Box::new(Server {
                    incarnation,
                    wanted_index: Some(0),
                    ..Server::default()
                }))
            }
        };
        self.num_processes += 1;
        let process = self.num_processes;
        self.note(format!("process {process} starts as {role:?}"));
        let living = Living {
            body,
            connection: None,
            open: None,
            num_requests: 0,
            stalled_until: 0,
            work: 0,
        };
        self.processes.insert(process, living);
        self.after(0, Delivery::Timer { process });
    }

    fn trainer(&self, process: Process) -> Option<&Trainer> {
        match &self.processes.get(&process)?.body {
            Body::Trainer(trainer) => Some(trainer),
            Body::Server(_) => None,
        }
    }

    fn trainer_mut(&mut self, process: Process) -> Option<&mut Trainer> {
        match &mut self.processes.get_mut(&process)?.body {
            Body::Trainer(trainer) => Some(trainer),
            Body::Server(_) => None,
        }
    }

    fn server(&self, process: Process) -> Option<&Server> {
        match &self.processes.get(&process)?.body {
            Body::Server(server) => Some(server),
            Body::Trainer(_) => None,
        }
    }

    fn server_mut(&mut self, process: Process) -> Option<&mut Server> {
        match &mut self.processes.get_mut(&process)?.body {
            Body::Server(server) => Some(server),
            Body::Trainer(_) => None,
        }
    }

    fn servers(&self) -> Vec<Process> {
        self.processes
            .keys()
            .copied()
            .filter(|process| self.server(*process).is_some())
            .collect()
    }

    fn trainers(&self) -> Vec<Process> {
        self.processes
            .keys()
            .copied()
            .filter(|process| self.trainer(*process).is_some())
            .collect()
    }

    /// The process that carries the coordinator.
    fn host(&self) -> Option<Process> {
        let is_host = |process: &Process| {
            self.server(*process)
                .is_some_and(|server| server.wanted_index == Some(0))
        };
        self.servers().into_iter().find(is_host)
    }

    fn kill(&mut self, process: Process) {
        self.note(format!("process {process} dies"));
        let is_host = self.host() == Some(process);
        let Some(living) = self.processes.remove(&process) else {
            return;
        };
        if let Some(connection) = living.connection {
            // Sometimes nobody says that a connection is gone.
            let is_noticed = self.random.chance(70);
            self.disconnect(connection, is_noticed);
        }
        if is_host {
            self.coordinator = None;
            self.connections.clear();
            let wait = self.random.between(100, 8000) * MS;
            self.after(
                wait,
                Delivery::Start {
                    role: Role::Coordinator,
                },
            );
        }
    }

    fn disconnect(&mut self, connection: Connection, is_noticed: bool) {
        self.connections.remove(&connection);
        if is_noticed {
            let delay = self.delay();
            let event = Event::Closed { from: connection };
            self.in_order(
                (connection, 0),
                delay,
                Delivery::ToCoordinator {
                    life: self.life,
                    event,
                },
            );
        }
    }

    // Control connections.

    fn connect(&mut self, process: Process) -> Option<Connection> {
        self.coordinator.as_ref()?;
        let living = self.processes.get_mut(&process)?;
        if let Some(connection) = living.connection.filter(|own| self.connections.contains_key(own)) {
            return Some(connection);
        }
        self.num_connections += 1;
        let connection = self.num_connections;
        living.connection = Some(connection);
        if let Body::Server(server) = &mut living.body {
            server.is_registered = false;
        }
        self.connections.insert(connection, process);
        Some(connection)
    }

    /// Sends a request; gives its number.
    fn send(&mut self, process: Process, request: Request) -> Option<u64> {
        let connection = self.connect(process)?;
        let living = self.processes.get_mut(&process)?;
        living.num_requests += 1;
        let number = living.num_requests;
        let request = if self.random.chance(5) {
            spelled(&request)
        } else {
            request
        };
        let event = Event::Request {
            from: RequestId { connection, number },
            request,
        };
        let delay = self.delay();
        self.in_order(
            (connection, 0),
            delay,
            Delivery::ToCoordinator {
                life: self.life,
                event,
            },
        );
        Some(number)
    }

    /// Sends the one request of a trainer that it waits for. It is sent again by the timer when it is lost.
    fn ask(&mut self, process: Process, request: Request) {
        if let Some(trainer) = self.trainer_mut(process) {
            trainer.asked = Some(request.clone());
        }
        let number = self.send(process, request);
        let now = self.now;
        if let Some(living) = self.processes.get_mut(&process) {
            living.open = number.map(|number| (number, now));
        }
    }

    /// Once a second: heartbeats, and what was lost is sent again.
    fn timer(&mut self, process: Process) {
        let Some(living) = self.processes.get(&process) else {
            return;
        };
        let open = living.open;
        match &living.body {
            Body::Trainer(trainer) => {
                let (heartbeat, asked, has_joined) = (
                    trainer.heartbeat(),
                    trainer.asked.clone(),
                    trainer.incarnation > 0,
                );
                let is_new = !has_joined && asked.is_none();
                if is_new {
                    let job = Box::new(self.plan.job.clone());
                    let name = self
                        .trainer(process)
                        .map(|trainer| trainer.name.clone())
                        .unwrap_or_default();
                    self.ask(process, Request::Join { job, name });
                } else {
                    if has_joined {
                        self.send(process, heartbeat);
                    }
                    let is_lost = open.is_none_or(|(_, since)| self.now > since + 8 * SECOND);
                    if let Some(asked) = asked.filter(|_| is_lost) {
                        self.cut(process);
                        self.ask(process, asked);
                    }
                    self.push_again(process);
                }
            }
            Body::Server(server) => {
                let request = match (server.is_registered && self.is_connected(process), server.index) {
                    (true, Some(index)) => Request::ServerHeartbeat {
                        index,
                        incarnation: server.incarnation,
                        statistics: ServerStatistics::default(),
                    },
                    _ => Request::Register {
                        index: server.index.or(server.wanted_index),
                        address: process.to_string(),
                        incarnation: server.incarnation,
                    },
                };
                self.send(process, request);
            }
        }
        let wait = self.random.between(800, 1200) * MS;
        self.after(wait, Delivery::Timer { process });
    }

    fn is_connected(&self, process: Process) -> bool {
        let connection = self.processes.get(&process).and_then(|living| living.connection);
        connection.is_some_and(|own| self.connections.contains_key(&own))
    }

    /// Breaks the connection of a process: what is on it is lost.
    fn cut(&mut self, process: Process) {
        let connection = self
            .processes
            .get_mut(&process)
            .and_then(|living| living.connection.take());
        if let Some(connection) = connection {
            self.disconnect(connection, true);
        }
    }

    fn feed(&mut self, event: Event) {
        let now = Duration::from_micros(self.now);
        let Some(coordinator) = &mut self.coordinator else {
            return;
        };
        for action in coordinator.handle(event, now) {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Reply { to, reply } => {
                self.check_lease(&reply, to.connection);
                if let Reply::Duty { input, .. } = &reply
                    && let Some(snapshot) = input.get("snapshot")
                {
                    let files: SnapshotFiles = serde_json::from_value(snapshot.clone()).unwrap();
                    assert!(self.disk.has(&files), "the files of a duty are retained");
                }
                if let Reply::Registered { index, .. } = reply {
                    self.routes.insert(index, to.connection);
                }
                let reply = if self.random.chance(5) {
                    spelled(&reply)
                } else {
                    reply
                };
                let (connection, number, delay) = (to.connection, to.number, self.delay());
                self.in_order(
                    (connection, 1),
                    delay,
                    Delivery::Reply {
                        connection,
                        number,
                        reply,
                    },
                );
            }
            Action::Call {
                server,
                call,
                command,
            } => {
                let command = if self.random.chance(5) {
                    spelled(&command)
                } else {
                    command
                };
                if let Some(connection) = self.routes.get(&server).copied() {
                    let delay = self.delay();
                    if self.random.chance(3) {
                        let (again, late) = (command.clone(), delay + self.random.between(1, 3000) * MS);
                        self.after(
                            late,
                            Delivery::Call {
                                connection,
                                call,
                                command: again,
                            },
                        );
                    }
                    self.in_order(
                        (connection, 1),
                        delay,
                        Delivery::Call {
                            connection,
                            call,
                            command,
                        },
                    );
                }
            }
            Action::Store { number, committed } => {
                let result = self.disk.store(&self.plan, *committed);
                let delay = self.random.between(1, 200) * MS;
                let event = Event::Stored { number, result };
                self.after(
                    delay,
                    Delivery::ToCoordinator {
                        life: self.life,
                        event,
                    },
                );
            }
            Action::Stop { exit_code, words } => self.stopped = Some((exit_code, words)),
            Action::Tell { event } => {
                self.scaled += u64::from(matches!(event, Happening::Scaled { .. }));
                self.note(format!("{event:?}"));
            }
        }
    }

    /// No lease is ever given to two incarnations.
    fn check_lease(&mut self, reply: &Reply, connection: Connection) {
        let leases: Vec<u64> = match reply {
            Reply::Train { lease, .. } | Reply::Validate { lease, .. } => vec![*lease],
            Reply::Lanes { lanes, .. } => lanes.iter().map(|lane| lane.lease).collect(),
            _ => return,
        };
        let incarnation = self
            .connections
            .get(&connection)
            .and_then(|process| self.trainer(*process))
            .map(|t| t.incarnation);
        for lease in leases {
            if let Some(incarnation) = incarnation {
                let owner = *self.leases.entry((self.life, lease)).or_insert(incarnation);
                assert_eq!(owner, incarnation, "lease {lease} is in two hands");
            }
        }
    }

    fn replied(&mut self, connection: Connection, number: u64, reply: Reply) {
        let Some(process) = self.connections.get(&connection).copied() else {
            return;
        };
        let Some(living) = self.processes.get_mut(&process) else {
            return;
        };
        match &mut living.body {
            Body::Server(server) => match reply {
                Reply::Registered { index, .. } => {
                    server.index = Some(index);
                    server.is_registered = true;
                }
                Reply::Refused { may_join: true, .. } => {
                    let wanted_index = server.wanted_index;
                    let incarnation = self.random.between(1, 1 << 50);
                    **server = Server {
                        incarnation,
                        wanted_index,
                        ..Server::default()
                    };
                }
                _ => {}
            },
            Body::Trainer(trainer) => {
                let is_open = living.open.is_some_and(|(open, _)| open == number);
                let next = if is_open {
                    living.open = None;
                    let Some(asked) = trainer.asked.take() else { return };
                    let fails = self.random.chance(10);
                    trainer.take(asked, reply, &self.plan, fails)
                } else {
                    trainer.beat(&reply, &self.plan)
                };
                self.follow(process, next);
            }
        }
    }

    // Trainers.

    fn follow(&mut self, process: Process, next: Next) {
        match next {
            Next::Ask(request) => self.ask(process, request),
            Next::Compute => {
                let plan = &self.plan;
                let Some(Living {
                    body: Body::Trainer(trainer),
                    work,
                    ..
                }) = self.processes.get_mut(&process)
                else {
                    return;
                };
                if trainer.needs_lanes(plan) {
                    let (incarnation, epoch) = (trainer.incarnation, trainer.epoch());
                    return self.ask(
                        process,
                        Request::Lease {
                            incarnation,
                            epoch,
                            holding: Vec::new(),
                        },
                    );
                }
                *work += 1;
                let life = *work;
                let slowness = process % 5 * 40;
                let wait = self.random.between(1, 40 + slowness) * MS;
                self.after(wait, Delivery::Computed { process, life });
            }
            Next::Work(request) => {
                let incarnation = self.trainer(process).map_or(0, |trainer| trainer.incarnation);
                let wait = self.random.between(10, 3000) * MS;
                self.after(
                    wait,
                    Delivery::Worked {
                        process,
                        incarnation,
                        request,
                    },
                );
            }
            Next::Rest => {}
            Next::Exit => {
                self.note(format!("process {process} goes"));
                if let Some(connection) = self
                    .processes
                    .remove(&process)
                    .and_then(|living| living.connection)
                {
                    self.disconnect(connection, true);
                }
            }
        }
    }

    fn computed(&mut self, process: Process, life: u64) {
        let Some(Living {
            body: Body::Trainer(trainer),
            work,
            ..
        }) = self.processes.get_mut(&process)
        else {
            return;
        };
        // Since it began it may have been told to drop everything.
        if *work != life || trainer.asked.is_some() || trainer.flight.is_some() || trainer.is_stuck {
            return;
        }
        trainer.push(&self.plan);
        self.push_again(process);
    }

    /// Sends the present step of the push to all servers that have not answered it.
    fn push_again(&mut self, process: Process) {
        let Some(trainer) = self.trainer(process).filter(|trainer| !trainer.is_stuck) else {
            return;
        };
        let (Some(flight), Some(place)) = (trainer.flight.clone(), trainer.place.clone()) else {
            return;
        };
        let incarnation = trainer.incarnation;
        let step = match (flight.is_validation, flight.is_committing) {
            (true, _) => PushStep::Score,
            (false, true) => PushStep::Commit,
            (false, false) => PushStep::Hold,
        };
        for index in flight.open {
            let to: Process = place.servers[index as usize].parse().unwrap();
            if self.random.chance(1) {
                continue;
            }
            let delay = self.delay();
            let delivery = Delivery::Push {
                from: process,
                to,
                index,
                epoch: place.epoch,
                incarnation,
                number: flight.number,
                parts: flight.parts.clone(),
                step,
            };
            self.in_order((process << 32, to << 32), delay, delivery);
        }
    }

    fn push_answered(
        &mut self,
        to: Process,
        index: u32,
        number: u64,
        epoch: u64,
        is_commit: bool,
        fence: Option<u64>,
    ) {
        let Some(trainer) = self.trainer_mut(to) else {
            return;
        };
        if trainer.epoch() != epoch
            || trainer
                .flight
                .as_ref()
                .is_none_or(|flight| flight.number != number)
        {
            return;
        }
        let Some(fence) = fence else {
            trainer.is_stuck = true;
            return;
        };
        if !trainer.answered(index, number, is_commit, fence) {
            return;
        }
        if is_commit {
            let next = trainer.boundary();
            self.follow(to, next);
        } else {
            trainer.commit();
            self.push_again(to);
        }
    }

    // Servers.

    fn answer_push(
        &mut self,
        from: Process,
        to: Process,
        index: u32,
        epoch: u64,
        number: u64,
        is_commit: bool,
        fence: Option<u64>,
    ) {
        if self.random.chance(1) {
            return;
        }
        let delay = self.delay();
        let delivery = Delivery::Pushed {
            to,
            index,
            number,
            epoch,
            is_commit,
            fence,
        };
        self.in_order((from << 32, to << 32), delay, delivery);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a frame")]
    fn pushed(
        &mut self,
        from: Process,
        to: Process,
        index: u32,
        epoch: u64,
        incarnation: u64,
        number: u64,
        parts: Vec<Part>,
        step: PushStep,
    ) {
        let Some(server) = self.server_mut(to) else { return };
        let is_commit = step != PushStep::Hold;
        if server.epoch != epoch || server.closed.contains(&incarnation) {
            return self.answer_push(to, from, index, epoch, number, is_commit, None);
        }
        let last = server.last.get(&incarnation).copied().unwrap_or(0);
        match step {
            PushStep::Hold => {
                if number > last {
                    server.held.insert(incarnation, (number, parts));
                }
                self.answer_push(to, from, index, epoch, number, false, Some(0));
            }
            PushStep::Score => self.scored(from, to, index, epoch, incarnation, number, parts),
            PushStep::Commit => {
                let round = parts[0].round;
                if number > last {
                    if self.commit(to, incarnation, number).is_err() {
                        return self.answer_push(to, from, index, epoch, number, true, None);
                    }
                    if let Some(server) = self.server_mut(to) {
                        server.waiting.push((from, number));
                    }
                }
                self.answer_round(from, to, index, epoch, number, round);
            }
        }
    }

    /// Answers everyone whose round is applied now, or the one who asks again.
    fn answer_round(&mut self, from: Process, to: Process, index: u32, epoch: u64, number: u64, round: u64) {
        let is_sync = self.plan.job.strategy == Strategy::Sync;
        let Some(server) = self.server_mut(to) else { return };
        let waits = |waiting: &[(Process, u64)]| waiting.contains(&(from, number));
        let mut answered = vec![(from, number)];
        if waits(&server.waiting) {
            if is_sync && !server.pending.is_empty() {
                return;
            }
            answered = std::mem::take(&mut server.waiting);
        }
        let fence = match &self.coordinator {
            Some(_) if index == 0 && is_sync => self.round_fences.get(&round).copied().unwrap_or(0),
            Some(coordinator) if index == 0 => coordinator.wanted_fence(),
            Some(_) | None => 0,
        };
        for (process, number) in answered {
            self.answer_push(to, process, index, epoch, number, true, Some(fence));
        }
    }

    /// Applies what is held. On server 0 the ledger has to agree.
    fn commit(&mut self, process: Process, incarnation: u64, number: u64) -> Result<(), ()> {
        let is_sync = self.plan.job.strategy == Strategy::Sync;
        let server = self.server_mut(process).ok_or(())?;
        let Some((held, parts)) = server.held.remove(&incarnation) else {
            return Err(());
        };
        assert_eq!(held, number, "what is committed is held");
        let (epoch, is_first) = (server.epoch, server.index == Some(0));
        for part in parts {
            let mut entered = None;
            if is_first {
                let Some(coordinator) = &mut self.coordinator else {
                    return Err(());
                };
                match coordinator.advance(incarnation, epoch, part.lease, part.entry.clone()) {
                    Ok(advanced) => entered = Some(advanced),
                    Err(Error::Epoch { .. } | Error::NotRunning { .. }) => return Err(()),
                    Err(error) => panic!("{error}"),
                }
            }
            let server = self.server_mut(process).ok_or(())?;
            let round = part.round;
            let is_applied = server.apply(part, is_sync);
            if let Some(advanced) = entered.filter(|_| is_sync) {
                assert_eq!(
                    advanced.applied_round.is_some(),
                    is_applied,
                    "ledger and server agree on rounds"
                );
                if is_applied {
                    self.round_fences.insert(round, advanced.fence);
                }
            }
        }
        self.server_mut(process)
            .ok_or(())?
            .last
            .insert(incarnation, number);
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a frame")]
    fn scored(
        &mut self,
        from: Process,
        to: Process,
        index: u32,
        epoch: u64,
        incarnation: u64,
        number: u64,
        parts: Vec<Part>,
    ) {
        let Some(server) = self.server(to) else { return };
        if number > server.scored.get(&incarnation).copied().unwrap_or(0) {
            let Some(coordinator) = &mut self.coordinator else {
                return;
            };
            let part = &parts[0];
            match coordinator.advance(incarnation, epoch, part.lease, part.entry.clone()) {
                Ok(_) => {}
                // One that was declared dead may come too late; its unit is another's by now.
                Err(Error::Epoch { .. } | Error::NotRunning { .. } | Error::NotHeld { .. }) => {
                    return self.answer_push(to, from, index, epoch, number, true, None);
                }
                Err(error) => panic!("{error}"),
            }
            let batch = part.batch;
            if let Some(server) = self.server_mut(to) {
                server.scored.insert(incarnation, number);
                server.scores.push(batch);
            }
        }
        let fence = self.coordinator.as_ref().map_or(0, Coordinator::wanted_fence);
        self.answer_push(to, from, index, epoch, number, true, Some(fence));
    }

    fn called(&mut self, connection: Connection, call: CallId, command: Command) {
        let Some(process) = self.connections.get(&connection).copied() else {
            return;
        };
        let Some(server) = self.server(process) else {
            return;
        };
        let Some(index) = server.index else { return };
        let answer = match server.done.get(&call) {
            Some(answer) => answer.clone(),
            None => self.obey(process, call, &command),
        };
        let is_slow = matches!(
            command,
            Command::Load { .. } | Command::Write { .. } | Command::Prepare { .. } | Command::Move { .. }
        );
        let delay = if is_slow {
            self.random.between(1, 2500) * MS
        } else {
            self.delay()
        };
        // A slow answer does not hold up the others.
        self.answer_call(
            connection,
            delay,
            Event::ServerAnswer {
                server: index,
                call,
                answer,
            },
        );
        if matches!(command, Command::Stop { .. }) {
            self.note(format!("process {process} is told to stop"));
            self.processes.remove(&process);
        }
    }

    fn obey(&mut self, process: Process, call: CallId, command: &Command) -> Result<Answer, String> {
        if let Command::Settle { up_to } = command {
            up_to
                .iter()
                .for_each(|settled| self.settle(process, settled.incarnation, settled.sequence));
        }
        let Some(Living {
            body: Body::Server(server),
            ..
        }) = self.processes.get_mut(&process)
        else {
            return Err("a trainer".into());
        };
        let answer = server.obey(command, &mut self.disk);
        server.done.insert(call, answer.clone());
        if let Ok(Answer::Report { metrics }) = &answer {
            let order = server.order.clone().expect("a stage has ended");
            if order.is_validation {
                let scores: Vec<(u32, u32, u64)> = serde_json::from_value(metrics.clone()).unwrap();
                assert_eq!(
                    sorted(scores),
                    self.plan.validation(order.pass),
                    "every sample is scored once"
                );
            }
        }
        answer
    }

    fn settle(&mut self, process: Process, incarnation: u64, up_to: u64) {
        let held = self
            .server(process)
            .and_then(|server| server.held.get(&incarnation));
        if held.is_some_and(|(number, _)| *number <= up_to) {
            assert!(
                self.commit(process, incarnation, up_to).is_ok(),
                "a settled push counts"
            );
        } else if let Some(server) = self.server_mut(process) {
            server.held.remove(&incarnation);
            let last = server.last.get(&incarnation).copied().unwrap_or(0);
            assert!(last <= up_to, "what one server has applied all apply");
        }
    }

    fn answer_call(&mut self, connection: Connection, delay: u64, event: Event) {
        let delivery = Delivery::ToCoordinator {
            life: self.life,
            event,
        };
        if self.random.chance(98) {
            self.after(delay, delivery);
        } else {
            self.disconnect(connection, true);
        }
    }

    // What goes wrong.

    fn disaster(&mut self) {
        self.num_disasters += 1;
        let (trainers, servers) = (self.trainers(), self.servers());
        let kinds = self.profile;
        match self.random.pick(kinds).unwrap_or(0) {
            0 => {
                if let Some(process) = self.random.pick(&trainers) {
                    self.kill(process);
                    let wait = self.random.between(0, 10_000) * MS;
                    self.after(wait, Delivery::Start { role: Role::Trainer });
                }
            }
            3 => {
                let host = self.host();
                let others: Vec<Process> = servers
                    .into_iter()
                    .filter(|process| Some(*process) != host)
                    .collect();
                if let Some(process) = self.random.pick(&others) {
                    self.kill_server(process);
                }
            }
            5 => {
                if let Some(host) = self.host() {
                    self.kill(host);
                }
            }
            6 => {
                for process in trainers.into_iter().chain(servers) {
                    if self.trainer(process).is_some() {
                        self.kill(process);
                        self.after(5 * SECOND, Delivery::Start { role: Role::Trainer });
                    } else if self.host() == Some(process) {
                        self.kill(process);
                    } else {
                        self.kill_server(process);
                    }
                }
            }
            7 => {
                let all: Vec<Process> = self.processes.keys().copied().collect();
                if let Some(process) = self.random.pick(&all) {
                    self.note(format!("process {process} loses its connection"));
                    self.cut(process);
                }
            }
            9 => {
                let host = self.host();
                let all: Vec<Process> = self
                    .processes
                    .keys()
                    .copied()
                    .filter(|process| Some(*process) != host)
                    .collect();
                if let Some(process) = self.random.pick(&all) {
                    let stall = self.random.between(100, 12_000) * MS;
                    self.note(format!("process {process} stalls for {} ms", stall / MS));
                    let until = self.now + stall;
                    if let Some(living) = self.processes.get_mut(&process) {
                        living.stalled_until = until;
                    }
                }
            }
            11 => {
                self.disk.is_full = true;
                self.note("the disk is full".into());
                let wait = self.random.between(100, 15_000) * MS;
                self.after(wait, Delivery::Disk { is_full: false });
            }
            12 => self.after(0, Delivery::Start { role: Role::Trainer }),
            13 => {
                if let Some(trainer) = self
                    .random
                    .pick(&trainers)
                    .filter(|_| trainers.len() > 1)
                    .and_then(|own| self.trainer_mut(own))
                {
                    trainer.leave_soon();
                }
            }
            14 => self.admin(Request::Snapshot {}),
            _ => self.scale(),
        }
    }

    fn kill_server(&mut self, process: Process) {
        let index = self.server(process).and_then(|server| server.index);
        self.kill(process);
        let index = if self.random.chance(70) { index } else { None };
        let wait = self.random.between(0, 10_000) * MS;
        self.after(
            wait,
            Delivery::Start {
                role: Role::Server { index },
            },
        );
    }

    fn admin(&mut self, request: Request) {
        let from = RequestId {
            connection: 0,
            number: 0,
        };
        self.feed(Event::Request { from, request });
    }

    fn scale(&mut self) {
        let pservers = self.random.between(1, 4) as u32;
        self.note(format!("scale to {pservers}"));
        let there: BTreeSet<u32> = self
            .servers()
            .into_iter()
            .filter_map(|process| self.server(process)?.index)
            .collect();
        for index in (1..pservers).filter(|index| !there.contains(index)) {
            let wait = self.random.between(0, 3000) * MS;
            self.after(
                wait,
                Delivery::Start {
                    role: Role::Server { index: Some(index) },
                },
            );
        }
        self.admin(Request::Scale { pservers });
    }

    /// Whatever is missing comes back, so that the run can end.
    fn make_whole(&mut self) {
        self.note("no more disasters".into());
        self.disk.is_full = false;
        self.after(0, Delivery::Start { role: Role::Trainer });
        for index in 1..4 {
            self.after(
                10 * SECOND,
                Delivery::Start {
                    role: Role::Server { index: Some(index) },
                },
            );
        }
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
        assert_eq!(
            batches_of(&applied),
            self.plan.everything(),
            "every batch is trained exactly once"
        );
        if self.plan.job.strategy == Strategy::Sync {
            assert_eq!(
                applied,
                self.plan.undisturbed(),
                "rounds are those of an undisturbed run"
            );
        }
        let ledger = &committed.run.as_ref().expect("a run ends with its ledger").ledger;
        assert_eq!(
            ledger.past_samples,
            self.plan.samples_of(&self.plan.everything()),
            "samples add up"
        );
    }
}

/// As it comes over the wire.
fn spelled<T: serde::Serialize + serde::de::DeserializeOwned>(message: &T) -> T {
    serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap()
}
