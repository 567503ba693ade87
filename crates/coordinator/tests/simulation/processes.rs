//! Processes: how they start, how they are found and how they die.

use clickmill_coordinator::{Coordinator, Event};

use crate::server::Server;
use crate::trainer::Trainer;
use crate::world::{Body, Connection, Delivery, Living, MS, Process, Role, World};

impl World {
    pub(crate) fn start(&mut self, role: Role) {
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

    pub(crate) fn trainer(&self, process: Process) -> Option<&Trainer> {
        match &self.processes.get(&process)?.body {
            Body::Trainer(trainer) => Some(trainer),
            Body::Server(_) => None,
        }
    }

    pub(crate) fn trainer_mut(&mut self, process: Process) -> Option<&mut Trainer> {
        match &mut self.processes.get_mut(&process)?.body {
            Body::Trainer(trainer) => Some(trainer),
            Body::Server(_) => None,
        }
    }

    pub(crate) fn server(&self, process: Process) -> Option<&Server> {
        match &self.processes.get(&process)?.body {
            Body::Server(server) => Some(server),
            Body::Trainer(_) => None,
        }
    }

    pub(crate) fn server_mut(&mut self, process: Process) -> Option<&mut Server> {
        match &mut self.processes.get_mut(&process)?.body {
            Body::Server(server) => Some(server),
            Body::Trainer(_) => None,
        }
    }

    pub(crate) fn servers(&self) -> Vec<Process> {
        self.processes
            .keys()
            .copied()
            .filter(|process| self.server(*process).is_some())
            .collect()
    }

    pub(crate) fn trainers(&self) -> Vec<Process> {
        self.processes
            .keys()
            .copied()
            .filter(|process| self.trainer(*process).is_some())
            .collect()
    }

    /// The process that carries the coordinator.
    pub(crate) fn host(&self) -> Option<Process> {
        let is_host = |process: &Process| {
            self.server(*process)
                .is_some_and(|server| server.wanted_index == Some(0))
        };
        self.servers().into_iter().find(is_host)
    }

    pub(crate) fn kill(&mut self, process: Process) {
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

    pub(crate) fn disconnect(&mut self, connection: Connection, is_noticed: bool) {
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
}
