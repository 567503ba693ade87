//! Requests: who asks what, and what the answer is. An answer that must wait is kept here.

use std::time::Duration;

use crate::coordinator::{Coordinator, Phase};
use crate::error::Error;
use crate::event::{Action, Happening};
use crate::fence::Due;
use crate::members::Registration;
use crate::message::{Place, Reply, Request, RequestId, Terms};
use crate::route::NUM_BUCKETS;
use crate::run::Run;
use crate::scaling::Scaling;

/// A request without an answer.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: RequestId,
    since: Duration,
    ask: Ask,
}

#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Join {
        name: String,
    },
    Lease {
        incarnation: u64,
        epoch: u64,
        holding: Vec<u64>,
    },
    Fence {
        incarnation: u64,
        epoch: u64,
        number: u64,
    },
}

impl Waiting {
    pub(crate) fn incarnation(&self) -> Option<u64> {
        match &self.ask {
            Ask::Join { .. } => None,
            Ask::Lease { incarnation, .. } | Ask::Fence { incarnation, .. } => Some(*incarnation),
        }
    }
}

impl Coordinator {
    pub(crate) fn request(&mut self, from: RequestId, request: Request) {
        let reply = match request {
            Request::Join { job, name } => self.join(from, &job, name),
            Request::Lease {
                incarnation,
                epoch,
                holding,
            } => self.lease(from, incarnation, epoch, holding),
            Request::Heartbeat {
                incarnation,
                epoch: _,
                statistics,
            } => {
                let reply = match self.heard(from, incarnation) {
                    Err(refused) => refused,
                    // One that waits for a server that is gone would wait on.
                    Ok(()) if self.is_over() => Reply::End {
                        summary: self.summary(),
                    },
                    Ok(()) => self.beat(),
                };
                if let Some(trainer) = self.members.trainer_mut(incarnation) {
                    trainer.statistics = statistics;
                }
                Some(reply)
            }
            Request::Fence {
                incarnation,
                epoch,
                number,
                state,
            } => self.park(from, incarnation, epoch, number, state),
            Request::DutyDone {
                incarnation,
                duty,
                outcome,
            } => Some(match self.heard(from, incarnation) {
                Ok(()) => {
                    self.duty_done(incarnation, duty, outcome);
                    Reply::Noted {}
                }
                Err(refused) => refused,
            }),
            Request::Leave { incarnation } => {
                self.bury(incarnation, "it has left");
                Some(Reply::Noted {})
            }
            Request::Register {
                index,
                is_fixed,
                address,
                incarnation,
            } => {
                let (reply, back) = self.register(from, index, is_fixed, &address, incarnation);
                self.out.push(Action::Reply { to: from, reply });
                // After the answer, from which the driver learns over which connection they go.
                if let Some(index) = back {
                    self.calls.resend(index, &mut self.out);
                }
                None
            }
            Request::ServerHeartbeat {
                index,
                incarnation,
                statistics,
            } => {
                let heard = self
                    .members
                    .hear_server(index, incarnation, from.connection, self.now);
                Some(match heard {
                    Some((own, server)) => {
                        let before = server.note(statistics);
                        self.watch_memory(own, &before);
                        match self.fill_place(own) {
                            place if place == index => self.beat(),
                            index => Reply::Registered {
                                index,
                                epoch: self.epoch,
                            },
                        }
                    }
                    None => refused_server(incarnation),
                })
            }
            Request::Status {} => Some(Reply::Status {
                status: Box::new(self.status()),
            }),
            Request::Scale { pservers } => Some(self.scale(pservers)),
            Request::Snapshot {} => {
                Some(self.want_at_fence(Due::Snapshot, "a snapshot is taken at the next fence"))
            }
            Request::Stop {} => Some(self.want_at_fence(Due::Stop, "the run stops at the next fence")),
        };
        if let Some(reply) = reply {
            self.out.push(Action::Reply { to: from, reply });
        }
    }

    fn beat(&self) -> Reply {
        Reply::Beat {
            epoch: self.epoch,
            fence: self.fence.number,
        }
    }

    pub(crate) fn keep(&mut self, id: RequestId, ask: Ask) -> Option<Reply> {
        self.waiting.push(Waiting {
            id,
            since: self.now,
            ask,
        });
        None
    }

    /// Notes that a trainer lives, or says why it does not.
    fn heard(&mut self, from: RequestId, incarnation: u64) -> Result<(), Reply> {
        if self.members.hear(incarnation, from.connection, self.now) {
            return Ok(());
        }
        if self.is_over() {
            return Err(Reply::End {
                summary: self.summary(),
            });
        }
        Err(refused_trainer(incarnation))
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ending(_) | Phase::Stopped)
    }

    fn lease(&mut self, from: RequestId, incarnation: u64, epoch: u64, holding: Vec<u64>) -> Option<Reply> {
        if let Err(refused) = self.heard(from, incarnation) {
            return Some(refused);
        }
        if let Some(trainer) = self.members.trainer_mut(incarnation) {
            trainer.is_busy &= !holding.is_empty();
            trainer.parked = None;
        }
        self.keep(
            from,
            Ask::Lease {
                incarnation,
                epoch,
                holding,
            },
        )
    }

    fn park(
        &mut self,
        from: RequestId,
        incarnation: u64,
        epoch: u64,
        number: u64,
        state: Option<String>,
    ) -> Option<Reply> {
        if let Err(refused) = self.heard(from, incarnation) {
            return Some(refused);
        }
        let is_wanted = self.is_running() && epoch == self.epoch && number > self.fence.passed();
        if let Some(trainer) = self.members.trainer_mut(incarnation).filter(|_| is_wanted) {
            trainer.parked = Some(number);
            if let (Some(run), Some(state)) = (&mut self.run, state) {
                run.states.insert(trainer.name.clone(), state);
            }
        }
        self.keep(
            from,
            Ask::Fence {
                incarnation,
                epoch,
                number,
            },
        )
    }

    /// The answer, and the index of a server whose commands may be lost.
    fn register(
        &mut self,
        from: RequestId,
        index: Option<u32>,
        is_fixed: bool,
        address: &str,
        incarnation: u64,
    ) -> (Reply, Option<u32>) {
        // Server 0 is this process; it stops last.
        if self.is_over() && index != Some(0) {
            if let Phase::Ending(ending) = &mut self.phase {
                ending.told_server(from.connection);
            }
            return (
                Reply::End {
                    summary: self.summary(),
                },
                None,
            );
        }
        if index.is_some_and(|index| index as usize >= NUM_BUCKETS) {
            let reason = format!("there can be {NUM_BUCKETS} pservers at most");
            return (
                Reply::Refused {
                    reason,
                    may_join: false,
                },
                None,
            );
        }
        let (epoch, now) = (self.epoch, self.now);
        match self
            .members
            .register(index, is_fixed, address, incarnation, from.connection, now)
        {
            Registration::New { index, replaced } => {
                let address = address.to_owned();
                if replaced {
                    self.lost_server(index, address.clone(), "its process was started again".to_owned());
                }
                self.tell(Happening::ServerJoined { index, address });
                (Reply::Registered { index, epoch }, None)
            }
            Registration::Back { index, is_other } => {
                (Reply::Registered { index, epoch }, is_other.then_some(index))
            }
            Registration::Taken { address } => {
                let for_whom =
                    format!("waiting for the pserver at {address}, which has this index, to be given up");
                let reply = Reply::Wait {
                    for_whom,
                    since_s: 0,
                    is_running: self.is_running(),
                };
                (reply, None)
            }
            Registration::Dead => (refused_server(incarnation), None),
        }
    }

    fn scale(&mut self, pservers: u32) -> Reply {
        let refused = |reason: &str| Reply::Refused {
            reason: reason.to_owned(),
            may_join: false,
        };
        if pservers == 0 || pservers as usize > NUM_BUCKETS {
            return refused(&format!("there can be 1 to {NUM_BUCKETS} pservers"));
        }
        if !self.is_running() {
            return refused(&format!("the cluster is not running: {}", self.waiting_words()));
        }
        if let Some(scaling) = &self.scaling {
            let (next, now) = (scaling.next.servers, self.route.servers);
            if !scaling.is_gathering() {
                return refused(&format!("the cluster is being scaled to {next} pservers"));
            }
            if pservers != now {
                return refused(&format!(
                    "the cluster waits for pservers to be scaled to {next}; --pservers {now} takes that back"
                ));
            }
            self.give_up_scaling("it was taken back before the pservers had come");
            return Reply::Accepted {
                words: format!(
                    "the cluster stays at {now} pservers: {next} were wanted, and are not any more"
                ),
            };
        }
        if pservers == self.route.servers {
            return Reply::Accepted {
                words: format!("the cluster has {pservers} pservers already"),
            };
        }
        self.scaling_failure = None;
        self.scaling = Some(Scaling::new(&self.route, pservers, self.now));
        let awaited = self.awaited_for_scaling();
        let names: Vec<String> = awaited.iter().map(|index| format!("pserver {index}")).collect();
        let words = match names.as_slice() {
            [] => format!("buckets move to {pservers} pservers while training goes on"),
            names => format!(
                "waiting for {}; then buckets move to {pservers} pservers while training goes on",
                names.join(" and ")
            ),
        };
        Reply::Accepted { words }
    }

    fn want_at_fence(&mut self, due: Due, words: &str) -> Reply {
        if self.is_running() {
            self.fence.dues.insert(due);
            return Reply::Accepted {
                words: words.to_owned(),
            };
        }
        if let Some(words) = self.nothing_to_stop().filter(|_| due == Due::Stop) {
            self.end_run(0, words.to_owned());
            return Reply::Accepted {
                words: words.to_owned(),
            };
        }
        let reason = Error::NotRunning {
            reason: self.waiting_words(),
        }
        .to_string();
        if due == Due::Stop && !self.is_over() {
            self.end_run(1, format!("stopped as asked; {reason}"));
            return Reply::Accepted {
                words: "the run stops now".to_owned(),
            };
        }
        Reply::Refused {
            reason,
            may_join: false,
        }
    }

    /// What is said where this life has not begun to train: it can end without a loss.
    fn nothing_to_stop(&self) -> Option<&'static str> {
        let has_trainer = |waiting: &Waiting| matches!(waiting.ask, Ask::Join { .. });
        if self.is_over() || self.num_epochs > 0 || self.waiting.iter().any(has_trainer) {
            return None;
        }
        Some(match &self.run {
            None => "stopped as asked before a job came",
            Some(_) => "stopped as asked before a trainer came; the run can be resumed",
        })
    }

    /// Answers whoever can be answered, and tells the others after a while to ask again.
    /// True: somebody was answered.
    pub(crate) fn answer_waiting(&mut self) -> bool {
        let asked = std::mem::take(&mut self.waiting);
        let num_asked = asked.len();
        for waiting in asked {
            if let (Ask::Join { .. }, Some(run)) = (&waiting.ask, &self.run)
                && self.is_over()
            {
                self.told_trainer(waiting.id, run.job.trainers);
            }
            let mut reply = match &waiting.ask {
                _ if self.is_over() => Some(Reply::End {
                    summary: self.summary(),
                }),
                _ if !self.is_running() => None,
                Ask::Join { name } => Some(self.welcome(waiting.id, name)),
                Ask::Lease {
                    incarnation,
                    epoch,
                    holding,
                } => self.work(*incarnation, *epoch, holding),
                Ask::Fence {
                    incarnation,
                    epoch,
                    number,
                } => self.released(*incarnation, *epoch, *number),
            };
            if reply.is_none() && self.now >= waiting.since + self.settings.poll_interval {
                let since_s = self.longest_wait().as_secs();
                reply = Some(Reply::Wait {
                    for_whom: self.waiting_words(),
                    since_s,
                    is_running: self.is_running(),
                });
            }
            match reply {
                Some(reply) => self.out.push(Action::Reply {
                    to: waiting.id,
                    reply,
                }),
                None => self.waiting.push(waiting),
            }
        }
        self.waiting.len() < num_asked
    }

    fn welcome(&mut self, from: RequestId, name: &str) -> Reply {
        if let Some(before) = self.members.left_behind(name) {
            self.bury(before, "its process was started again");
        }
        let known = self.members.joined_over(from.connection);
        let incarnation = known.unwrap_or_else(|| {
            self.members
                .join(name, from.connection, self.committed.life, self.now)
        });
        if known.is_none() {
            self.tell(Happening::TrainerJoined {
                name: name.to_owned(),
                incarnation,
            });
        }
        let run = self.run.as_ref().expect("a cluster that runs has a job");
        let state = run.states.get(name).or_else(|| run.states.values().next());
        Reply::Welcome {
            trainer: self
                .members
                .trainers()
                .get(&incarnation)
                .map_or(0, |trainer| trainer.number),
            incarnation,
            place: self.place(),
            fence: self.fence.passed(),
            state: state.cloned(),
            terms: Box::new(Terms {
                units: run.job.units.clone(),
                passes: run.job.passes.clone(),
                snapshots: self.settings.snapshots.clone(),
                heartbeat_ms: self.settings.heartbeat_interval().as_millis() as u64,
            }),
        }
    }

    pub(crate) fn place(&self) -> Place {
        let run = self.run.as_ref().expect("a cluster that runs has a job");
        let address = |index| {
            self.members
                .servers()
                .get(&index)
                .map(|server| server.address.clone())
        };
        Place {
            epoch: self.epoch,
            servers: (0..self.route.servers)
                .map(|index| address(index).unwrap_or_default())
                .collect(),
            route: self.route.buckets.clone(),
            strategy: run.job.strategy,
            step: run.ledger.trained().1,
        }
    }

    fn released(&mut self, incarnation: u64, epoch: u64, number: u64) -> Option<Reply> {
        if epoch != self.epoch {
            return Some(Reply::Changed { place: self.place() });
        }
        let keep = self.members.trainers().get(&incarnation)?.is_busy;
        let until = self.run.as_ref().and_then(Run::until);
        (number <= self.fence.passed()).then_some(Reply::Released {
            number,
            epoch,
            keep,
            until,
        })
    }
}

pub(crate) fn refused_trainer(incarnation: u64) -> Reply {
    let reason =
        format!("incarnation {incarnation} was declared dead or is of another life of the coordinator");
    Reply::Refused {
        reason,
        may_join: true,
    }
}

fn refused_server(incarnation: u64) -> Reply {
    let reason = format!("pserver incarnation {incarnation} was declared dead or is not known");
    Reply::Refused {
        reason,
        may_join: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::job::Strategy;
    use crate::job::tests::job;
    use crate::settings::Settings;

    fn ask(coordinator: &mut Coordinator, request: Request) -> Vec<Action> {
        let from = RequestId {
            connection: 1,
            number: 1,
        };
        coordinator.handle(Event::Request { from, request }, Duration::ZERO)
    }

    fn starting() -> Coordinator {
        let mut coordinator = Coordinator::new(Settings::default(), None);
        coordinator.handle(Event::Tick, Duration::ZERO);
        coordinator.stored_life(1, &Ok(()));
        coordinator
    }

    #[test]
    fn a_cluster_that_is_stopped_before_a_job_came_ends_well() {
        let mut coordinator = starting();
        let actions = ask(&mut coordinator, Request::Stop {});
        let told = "stopped as asked before a job came";
        let is_end =
            |action: &Action| matches!(action, Action::Stop { exit_code: 0, words } if words == told);
        assert!(actions.iter().any(is_end), "{actions:?}");
        let is_reply = |action: &Action| matches!(action, Action::Reply { reply: Reply::Accepted { words }, .. } if words == told);
        assert!(actions.iter().any(is_reply), "{actions:?}");
    }

    #[test]
    fn a_job_that_could_not_begin_ends_with_an_error_when_it_is_stopped() {
        let mut coordinator = starting();
        let (job, name) = (Box::new(job(Strategy::Async, 1, 0, 1)), "trainer".to_owned());
        ask(&mut coordinator, Request::Join { job, name });
        ask(&mut coordinator, Request::Stop {});
        let (exit_code, words) = coordinator.verdict.clone().unwrap_or_default();
        assert_eq!(exit_code, 1, "{words}");
        assert!(words.contains("waiting for pserver 0"), "{words}");
    }
}
