//! Control connections: requests and answers between processes and the coordinator.

use std::time::Duration;

use clickmill_coordinator::{
    Action, Event, Happening, Reply, Request, RequestId, ServerStatistics, SnapshotFiles, Strategy,
};

use crate::plan::batches_of;
use crate::server::Server;
use crate::world::{Body, Connection, Delivery, MS, Process, SECOND, World, spelled};

impl World {
    pub(crate) fn connect(&mut self, process: Process) -> Option<Connection> {
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
    pub(crate) fn send(&mut self, process: Process, request: Request) -> Option<u64> {
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
    pub(crate) fn ask(&mut self, process: Process, request: Request) {
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
    pub(crate) fn timer(&mut self, process: Process) {
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
                let is_registered = server.is_registered && self.is_connected(process);
                let request = if let Some(index) = server.index.filter(|_| is_registered) {
                    Request::ServerHeartbeat {
                        index,
                        incarnation: server.incarnation,
                        statistics: ServerStatistics::default(),
                    }
                } else {
                    let index = server.index.or(server.last_index).or(server.wanted_index);
                    Request::Register {
                        index,
                        is_fixed: index.is_some() && index == server.wanted_index,
                        address: process.to_string(),
                        incarnation: server.incarnation,
                    }
                };
                self.send(process, request);
            }
        }
        let wait = self.random.between(800, 1200) * MS;
        self.after(wait, Delivery::Timer { process });
    }

    pub(crate) fn is_connected(&self, process: Process) -> bool {
        let connection = self.processes.get(&process).and_then(|living| living.connection);
        connection.is_some_and(|own| self.connections.contains_key(&own))
    }

    /// Breaks the connection of a process: what is on it is lost.
    pub(crate) fn cut(&mut self, process: Process) {
        let connection = self
            .processes
            .get_mut(&process)
            .and_then(|living| living.connection.take());
        if let Some(connection) = connection {
            self.disconnect(connection, true);
        }
    }

    pub(crate) fn feed(&mut self, event: Event) {
        let now = Duration::from_micros(self.now);
        let Some(coordinator) = &mut self.coordinator else {
            return;
        };
        for action in coordinator.handle(event, now) {
            self.act(action);
        }
    }

    pub(crate) fn act(&mut self, action: Action) {
        match action {
            Action::Reply { to, reply } => {
                self.check_lease(&reply, to.connection);
                if let Reply::Duty { pass, input, .. } = &reply
                    && let Some(snapshot) = input.get("snapshot")
                {
                    let files: SnapshotFiles = serde_json::from_value(snapshot.clone()).unwrap();
                    assert!(self.disk.has(&files), "the files of a duty are retained");
                    self.check_publication(*pass, &files, input);
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
                let slowest = if self.random.chance(10) { 8000 } else { 200 };
                let delay = self.random.between(1, slowest) * MS;
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
                self.num_spares_taken += u64::from(matches!(event, Happening::SpareTaken { .. }));
                self.num_resized += u64::from(matches!(event, Happening::GoesOn { .. }));
                self.note(format!("{event:?}"));
            }
        }
    }

    /// A checkpoint within a pass is what it says it is.
    fn check_publication(&mut self, pass: u32, files: &SnapshotFiles, input: &serde_json::Value) {
        let Some(batch) = input["step"]["batch"].as_u64() else {
            return;
        };
        let applied = self.disk.read(files, 0).unwrap();
        let job = &self.plan.job;
        let trained = if job.strategy == Strategy::Sync {
            assert_eq!(batch % job.publish_every, 0, "exactly where it is due");
            self.plan.count_rounds(&applied, pass)
        } else {
            self.plan.count(&batches_of(&applied), pass)
        };
        assert_eq!(trained, batch);
        self.published.insert((pass, batch));
    }

    /// No lease is ever given to two incarnations.
    pub(crate) fn check_lease(&mut self, reply: &Reply, connection: Connection) {
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

    pub(crate) fn replied(&mut self, connection: Connection, number: u64, reply: Reply) {
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
                    let last_index = server.index.or(server.last_index);
                    let incarnation = self.random.between(1, 1 << 50);
                    **server = Server {
                        incarnation,
                        wanted_index,
                        last_index,
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
}
