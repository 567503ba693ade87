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
    /// What is done when the deadline has passed: `gives up`.
    then: String,
    /// What a person can do.
    advice: Option<String>,
}

impl Wait {
    fn new(whom: String, since: Duration, deadline: Option<Duration>) -> Self {
        Self {
            whom,
            since,
            deadline,
            then: "gives up".to_owned(),
            advice: None,
        }
    }

    pub(crate) fn words(&self, now: Duration) -> String {
        let left = |deadline: Duration| deadline.saturating_sub(now).as_secs();
        let then = self
            .deadline
            .map(|deadline| format!("; {} in {} s", self.then, left(deadline)));
        let advice = self.advice.as_ref().map(|advice| format!("; {advice}"));
        let (then, advice) = (then.unwrap_or_default(), advice.unwrap_or_default());
        format!("waiting for {}{then}{advice}", self.whom)
    }
}

impl Coordinator {
    pub(crate) fn waits(&self) -> Vec<Wait> {
        match &self.phase {
            Phase::Starting { since, .. } => {
                let whom = "the commit file to be written".to_owned();
                let deadline = *since + self.settings.start_deadline;
                vec![Wait::new(whom, *since, Some(deadline))]
            }
            Phase::Gathering { since } => self.gathering_waits(*since),
            Phase::Loading { round } => self.round_waits(round),
            Phase::Running { since } => self.running_waits(*since),
            Phase::Ending(ending) => {
                let trainers = self.members.trainers().iter();
                let left = trainers.filter(|(_, trainer)| trainer.presence.connection.is_some());
                let deadline = Some(ending.since + self.settings.end_deadline);
                let wait = |incarnation: &u64| {
                    let whom = format!("{} to go", self.members.trainer_words(*incarnation));
                    Wait::new(whom, ending.since, deadline)
                };
                let late = ending.awaited_trainers().map(|(missing, until)| {
                    let whom = format!("{missing} more of the trainers, to hear that the run is over");
                    Wait::new(whom, ending.since, Some(until))
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
        let mut waits: Vec<Wait> = whom
            .into_iter()
            .map(|whom| Wait::new(whom, since, deadline))
            .collect();
        let scaled = self.committed.route.servers;
        let fewer = self.launched.map_or(scaled, |launched| launched.min(scaled));
        for index in self.missing_servers() {
            let mut wait = self.server_wait(index, since, deadline);
            if index >= fewer {
                wait.deadline = self.gathering_until();
                wait.then = format!("goes on with {fewer} pservers");
            }
            waits.push(wait);
        }
        waits
    }

    /// For a server that has to come.
    fn server_wait(&self, index: u32, since: Duration, deadline: Option<Duration>) -> Wait {
        let coordinator = self.members.servers().get(&0).filter(|_| index > 0);
        let folder = self.settings.snapshots.as_str();
        let snapshots = if folder.is_empty() {
            String::new()
        } else {
            format!(" --snapshots {folder}")
        };
        let advice = |address: &str| {
            format!(
                "`clickmill pserver --coordinator {address}{snapshots}` starts one that takes this place, on any host"
            )
        };
        Wait {
            advice: coordinator.map(|server| advice(&server.address)),
            ..Wait::new(self.members.server_words(index, self.now), since, deadline)
        }
    }

    fn round_waits(&self, round: &Round) -> Vec<Wait> {
        let servers = round.waits_for();
        let whom = |index| format!("{} {}", self.members.server_words(index, self.now), round.what);
        let wait = |index| Wait::new(whom(index), round.since, Some(round.deadline));
        servers.map(wait).collect()
    }

    fn running_waits(&self, running_since: Duration) -> Vec<Wait> {
        let mut waits = Vec::new();
        if let Some(since) = self.alone_since {
            let deadline = Some(since + self.settings.wait_deadline);
            waits.push(Wait::new("a trainer".to_owned(), since, deadline));
        } else if self.is_gathering_trainers() {
            let deadline = Some(running_since + self.settings.gather_deadline);
            let (here, all) = (
                self.members.trainers().len(),
                self.run.as_ref().map_or(0, |run| run.job.trainers),
            );
            let whom = format!("more trainers; {here} of {all} are here");
            waits.push(Wait::new(whom, running_since, deadline));
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
                waits.extend(out.map(|(own, _)| Wait::new(whom(own), *since, deadline)));
            }
            State::Held { round, .. } => waits.extend(round.iter().flat_map(|round| self.round_waits(round))),
        }
        if let Some(scaling) = self.scaling.as_ref().filter(|scaling| scaling.is_gathering()) {
            let missing = self.awaited_for_scaling().into_iter();
            let deadline = Some(scaling.since + self.settings.wait_deadline);
            waits.extend(missing.map(|index| self.server_wait(index, scaling.since, deadline)));
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
        let lost = "pserver 1 (10.0.0.2:30240), lost 12 s ago".to_owned();
        let wait = Wait::new(lost, Duration::ZERO, Some(Duration::from_secs(300)));
        assert_eq!(
            wait.words(Duration::from_secs(12)),
            "waiting for pserver 1 (10.0.0.2:30240), lost 12 s ago; gives up in 288 s"
        );
    }
}
