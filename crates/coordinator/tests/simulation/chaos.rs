//! What goes wrong, and that it ends.

use std::collections::BTreeSet;

use clickmill_coordinator::{Event, Request, RequestId};

use crate::world::{Delivery, MS, Process, Role, SECOND, World};

/// Trainers, servers, scaling, connections, everything at once, spares, and scaled clusters that are started anew; the numbers are those of [`World::disaster`].
pub(crate) const PROFILES: [&[u64]; 7] = [
    &[0, 0, 0, 9, 12, 13, 14],
    &[0, 3, 3, 5, 7, 9, 11, 14, 16],
    &[0, 12, 13, 14, 15, 15, 15, 15, 16, 3],
    &[7, 7, 7, 9, 9, 14],
    &[0, 0, 0, 3, 3, 5, 6, 7, 7, 9, 9, 11, 12, 13, 14, 15, 16],
    &[3, 3, 5, 6, 7, 9, 14, 15, 16, 16],
    &[14, 15, 15, 15, 15, 15, 15, 6],
];

impl World {
    pub(crate) fn disaster(&mut self) {
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
                // Each comes back by itself, or all are started as they were the first time.
                let is_anew = self.random.chance(50);
                for process in trainers.into_iter().chain(servers) {
                    if self.trainer(process).is_some() {
                        self.kill(process);
                        self.after(5 * SECOND, Delivery::Start { role: Role::Trainer });
                    } else if is_anew || self.host() == Some(process) {
                        self.kill(process);
                    } else {
                        self.kill_server(process);
                    }
                }
                for index in (1..self.settings.servers).filter(|_| is_anew) {
                    let role = Role::Server { index: Some(index) };
                    self.after(5 * SECOND, Delivery::Start { role });
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
                self.note("the disk is full");
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
            16 => self.after(
                0,
                Delivery::Start {
                    role: Role::Server { index: None },
                },
            ),
            _ => self.scale(),
        }
    }

    pub(crate) fn kill_server(&mut self, process: Process) {
        let index = self.server(process).and_then(|server| server.index);
        self.kill(process);
        // Where there are more than the run needs, not every one comes again.
        if self.servers().len() > self.settings.servers as usize && self.random.chance(50) {
            return;
        }
        let index = if self.random.chance(70) { index } else { None };
        let wait = self.random.between(0, 10_000) * MS;
        self.after(
            wait,
            Delivery::Start {
                role: Role::Server { index },
            },
        );
    }

    pub(crate) fn admin(&mut self, request: Request) {
        let from = RequestId {
            connection: 0,
            number: 0,
        };
        self.feed(Event::Request { from, request });
    }

    pub(crate) fn scale(&mut self) {
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
    pub(crate) fn make_whole(&mut self) {
        self.note("no more disasters");
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
}
