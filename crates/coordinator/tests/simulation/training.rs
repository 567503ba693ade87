//! What trainers do: compute, push in two steps, come to fences.

use clickmill_coordinator::Request;

use crate::trainer::Next;
use crate::world::{Body, Delivery, Living, MS, Process, PushStep, World};

impl World {
    pub(crate) fn follow(&mut self, process: Process, next: Next) {
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

    pub(crate) fn computed(&mut self, process: Process, life: u64) {
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
    pub(crate) fn push_again(&mut self, process: Process) {
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

    pub(crate) fn push_answered(
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
}
