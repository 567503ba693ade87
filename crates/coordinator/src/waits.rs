//! Waits: whom the cluster waits for, since when, and when it gives up. Nobody hangs without a name.

use std::time::Duration;

use crate::calls::Round;
use crate::coordinator::{Coordinator, Phase};
use crate::event::Happening;
use crate::fence::State;

/// Shorter waits are the normal course of things.
const WORTH_TELLING: Duration = Duration::from_secs(5);
const TELL_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// `pserver 1 (10.0.0.2:30240), lost 12 s ago`.
    pub(crate) whom: String,
    since: Duration,
    deadline: Option<Duration>,
}

impl Wait {
    pub(crate) fn words(&self, now: Duration) -> String {
        match self.deadline {
            Some(deadline) => {
                let left = deadline.saturating_sub(now).as_secs();
                format!("waiting for {}; gives up in {left} s", self.whom)
            }
            None => format!("waiting for {}", self.whom),
        }
    }
}

impl Coordinator {
    pub(crate) fn waits(&self) -> Vec<Wait> {
        match &self.phase {
            Phase::Starting { since, .. } => {
                let whom = "the commit file to be written".to_owned();
                vec![Wait {
                    whom,
                    since: *since,
                    deadline: Some(*since + self.settings.start_deadline),
                }]
            }
            Phase::Gathering { since } => self.gathering_waits(*since),
            Phase::Loading { round } => self.round_waits(round),
            Phase::Running { since } => self.running_waits(*since),
            Phase::Ending(ending) => {
                let trainers = self.members.trainers().iter();
                let left = trainers.filter(|(_, trainer)| trainer.presence.connection.is_some());
                let deadline = Some(ending.since + self.settings.end_deadline);
                let wait = |incarnation: &u64| Wait {
                    whom: format!("{} to go", self.members.trainer_words(*incarnation)),
                    since: ending.since,
                    deadline,
                };
                let late = ending.awaited_trainers().map(|(missing, until)| Wait {
                    whom: format!("{missing} more of the trainers, to hear that the run is over"),
                    since: ending.since,
                    deadline: Some(until),
                });
                left.map(|(incarnation, _)| wait(incarnation))
                    .chain(late)
                    .collect()
            }
            Phase::Stopped => Vec::new(),
        }
    }

    pub(crate) fn gathering_waits(&self, since: Duration) -> Vec<Wait> {
        let deadline = Some(since + self.gathering_limit());
        let mut whom = Vec::new();
        if self.num_epochs == 0 && !self.has_agreed {
            whom.push("the first trainer, which brings the job".to_owned());
        }
        if self.snapshots.is_storing() {
            whom.push("the commit file of a snapshot".to_owned());
        }
        // A run that is over needs no servers.
        let needed = if self.committed.is_over {
            Vec::new()
        } else {
            self.active_servers()
        };
        let missing = needed.into_iter().filter(|index| !self.members.is_live(*index));
        whom.extend(missing.map(|index| self.members.server_words(index, self.now)));
        whom.into_iter()
            .map(|whom| Wait {
                whom,
                since,
                deadline,
            })
            .collect()
    }

    fn round_waits(&self, round: &Round) -> Vec<Wait> {
        let servers = round.waits_for();
        let whom = |index| format!("{} {}", self.members.server_words(index, self.now), round.what);
        let wait = |index| Wait {
            whom: whom(index),
            since: round.since,
            deadline: Some(round.deadline),
        };
        servers.map(wait).collect()
    }

    fn running_waits(&self, running_since: Duration) -> Vec<Wait> {
        let mut waits = Vec::new();
        if let Some(since) = self.alone_since {
            let deadline = Some(since + self.settings.wait_deadline);
            waits.push(Wait {
                whom: "a trainer".to_owned(),
                since,
                deadline,
            });
        } else if self.is_gathering_trainers() {
            let deadline = Some(running_since + self.settings.gather_deadline);
            let (here, all) = (
                self.members.trainers().len(),
                self.run.as_ref().map_or(0, |run| run.job.trainers),
            );
            let whom = format!("more trainers; {here} of {all} are here");
            waits.push(Wait {
                whom,
                since: running_since,
                deadline,
            });
        }
        for round in self
            .settlements
            .iter()
            .filter_map(|settlement| settlement.round())
        {
            waits.extend(self.round_waits(round));
        }
        match &self.fence.state {
            State::Open => {}
            State::Wanted { since } => {
                let out = self
                    .members
                    .trainers()
                    .iter()
                    .filter(|(_, trainer)| trainer.is_out());
                let whom = |incarnation: &u64| {
                    format!(
                        "{} to come to fence {}",
                        self.members.trainer_words(*incarnation),
                        self.fence.number
                    )
                };
                let deadline = Some(*since + self.settings.fence_deadline);
                waits.extend(out.map(|(own, _)| Wait {
                    whom: whom(own),
                    since: *since,
                    deadline,
                }));
            }
            State::Held { round, .. } => waits.extend(round.iter().flat_map(|round| self.round_waits(round))),
        }
        if let Some(scaling) = self.scaling.as_ref().filter(|scaling| scaling.is_gathering()) {
            let missing = self.awaited_for_scaling().into_iter();
            let deadline = Some(scaling.since + self.settings.wait_deadline);
            let whom = |index| self.members.server_words(index, self.now);
            waits.extend(missing.map(|index| Wait {
                whom: whom(index),
                since: scaling.since,
                deadline,
            }));
        }
        waits
    }

    /// What is being waited for; for one who asks for work and there is none, who has it.
    pub(crate) fn waiting_words(&self) -> String {
        let waits = self.waits();
        if !waits.is_empty() {
            return waits
                .iter()
                .map(|wait| wait.words(self.now))
                .collect::<Vec<_>>()
                .join("; ");
        }
        let Some(run) = &self.run else {
            return "waiting for work".to_owned();
        };
        let owners = run
            .ledger
            .owners()
            .into_iter()
            .chain(run.duties.open().iter().filter_map(|duty| duty.owner));
        let owners: Vec<String> = owners.map(|own| self.members.trainer_words(own)).collect();
        match owners.len() {
            0 => "waiting for work".to_owned(),
            _ => format!("waiting for work that is in the hands of {}", owners.join(", ")),
        }
    }

    pub(crate) fn longest_wait(&self) -> Duration {
        let oldest = self.waits().iter().map(|wait| wait.since).min();
        oldest.map_or(Duration::ZERO, |since| self.now.saturating_sub(since))
    }

    pub(crate) fn tell_waits(&mut self) {
        if self.now < self.waits_told + TELL_EVERY {
            return;
        }
        let now = self.now;
        let long: Vec<String> = self
            .waits()
            .iter()
            .filter(|wait| now >= wait.since + WORTH_TELLING)
            .map(|wait| wait.words(now))
            .collect();
        if !long.is_empty() {
            self.waits_told = now;
        }
        for words in long {
            self.tell(Happening::Waiting { words });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_says_whom_and_until_when() {
        let wait = Wait {
            whom: "pserver 1 (10.0.0.2:30240), lost 12 s ago".into(),
            since: Duration::ZERO,
            deadline: Some(Duration::from_secs(300)),
        };
        assert_eq!(
            wait.words(Duration::from_secs(12)),
            "waiting for pserver 1 (10.0.0.2:30240), lost 12 s ago; gives up in 288 s"
        );
    }
}
