//! What servers do: hold, apply, obey commands.

use clickmill_coordinator::{Answer, CallId, Command, Coordinator, Error, Event, Strategy};

use crate::plan::sorted;
use crate::server::Part;
use crate::world::{Body, Connection, Delivery, Living, MS, Process, PushStep, World};

impl World {
    pub(crate) fn answer_push(
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

    pub(crate) fn pushed(
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
            PushStep::Score => self.scored(from, to, index, epoch, incarnation, number, &parts),
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
    pub(crate) fn answer_round(
        &mut self,
        from: Process,
        to: Process,
        index: u32,
        epoch: u64,
        number: u64,
        round: u64,
    ) {
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
    pub(crate) fn commit(&mut self, process: Process, incarnation: u64, number: u64) -> Result<(), ()> {
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

    pub(crate) fn scored(
        &mut self,
        from: Process,
        to: Process,
        index: u32,
        epoch: u64,
        incarnation: u64,
        number: u64,
        parts: &[Part],
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

    pub(crate) fn called(&mut self, connection: Connection, call: CallId, command: &Command) {
        let Some(process) = self.connections.get(&connection).copied() else {
            return;
        };
        let Some(server) = self.server(process) else {
            return;
        };
        if server.index.is_none() {
            return;
        }
        let answer = match server.done.get(&call) {
            Some(answer) => answer.clone(),
            None => self.obey(process, call, command),
        };
        let Some(index) = self.server(process).and_then(|server| server.index) else {
            return;
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

    pub(crate) fn obey(
        &mut self,
        process: Process,
        call: CallId,
        command: &Command,
    ) -> Result<Answer, String> {
        if let Command::Settle { up_to } = command {
            for settled in up_to {
                self.settle(process, settled.incarnation, settled.sequence);
            }
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

    pub(crate) fn settle(&mut self, process: Process, incarnation: u64, up_to: u64) {
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

    pub(crate) fn answer_call(&mut self, connection: Connection, delay: u64, event: Event) {
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
}
