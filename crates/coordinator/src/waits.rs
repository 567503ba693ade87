//! Waits: whom the cluster waits for, since when, and when it gives up. Nobody hangs without a name.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::calls::Round;
use crate::coordinator::{Coordinator, Phase};
use crate::event::Happening;
use crate::fence::State;

/// Shorter waits are the normal course of things.
const WORTH_TELLING: Duration = Duration::from_secs(5);
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What is waited for, as far as those who look from outside treat it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A server has to come.
    Server,
    /// So that all begin together; those that are here go on without them.
    MoreTrainers,
    /// All others stand still at a fence.
    Fence,
    Other,
}

/// A wait for those who look from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitStatus {
    pub kind: WaitKind,
    /// `pserver 1`, or the name of a trainer; none where it is for nobody in particular.
    pub member: Option<String>,
    /// `pserver 1 (10.0.0.2:30240)`: the same as long as it lasts.
    pub whom: String,
    /// `waiting for pserver 1 (10.0.0.2:30240), lost 12 s ago; gives up in 288 s`.
    pub words: String,
    /// What a person can do where nobody starts again what has died.
    pub advice: Option<String>,
    pub for_s: u64,
    /// Since the server that is waited for was lost.
    pub lost_s: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    kind: WaitKind,
    member: Option<String>,
    /// `pserver 1 (10.0.0.2:30240)`.
    whom: String,
    /// What it is to do: `to come to fence 3`. Empty: to be there.
    task: String,
    lost_for: Option<Duration>,
    since: Duration,
    deadline: Option<Duration>,
    /// What is done when the deadline has passed: `gives up`.
    then: String,
    advice: Option<String>,
}

impl Wait {
    fn new(whom: String, since: Duration, deadline: Option<Duration>) -> Self {
        Self {
            kind: WaitKind::Other,
            member: None,
            whom,
            task: String::new(),
            lost_for: None,
            since,
            deadline,
            then: "gives up".to_owned(),
            advice: None,
        }
    }

    /// `pserver 1 (10.0.0.2:30240), lost 12 s ago`.
    pub(crate) fn whom_words(&self) -> String {
        let lost = self
            .lost_for
            .map(|lost| format!(", lost {} s ago", lost.as_secs()));
        format!("{}{}{}", self.whom, lost.unwrap_or_default(), self.task_words())
    }

    fn task_words(&self) -> String {
        match self.task.as_str() {
            "" => String::new(),
            task => format!(" {task}"),
        }
    }

    fn plain_words(&self, now: Duration) -> String {
        let left = |deadline: Duration| deadline.saturating_sub(now).as_secs();
        let then = self
            .deadline
            .map(|deadline| format!("; {} in {} s", self.then, left(deadline)));
        format!("waiting for {}{}", self.whom_words(), then.unwrap_or_default())
    }

    pub(crate) fn words(&self, now: Duration) -> String {
        let advice = self.advice.as_ref().map(|advice| format!("; {advice}"));
        self.plain_words(now) + &advice.unwrap_or_default()
    }

    pub(crate) fn status(&self, now: Duration) -> WaitStatus {
        WaitStatus {
            kind: self.kind,
            member: self.member.clone(),
            whom: format!("{}{}", self.whom, self.task_words()),
            words: self.plain_words(now),
            advice: self.advice.clone(),
            for_s: now.saturating_sub(self.since).as_secs(),
            lost_s: self.lost_for.map(|lost| lost.as_secs()),
        }
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
                let wait =
                    |incarnation: &u64| self.trainer_wait(*incarnation, "to go", ending.since, deadline);
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
            kind: WaitKind::Server,
            advice: coordinator.map(|server| advice(&server.address)),
            ..self.wait_for_server(index, since, deadline)
        }
    }

    fn wait_for_server(&self, index: u32, since: Duration, deadline: Option<Duration>) -> Wait {
        Wait {
            member: Some(format!("pserver {index}")),
            lost_for: self.members.lost_for(index, self.now),
            ..Wait::new(self.members.server_name(index), since, deadline)
        }
    }

    fn trainer_wait(
        &self,
        incarnation: u64,
        task: &str,
        since: Duration,
        deadline: Option<Duration>,
    ) -> Wait {
        Wait {
            member: self
                .members
                .trainers()
                .get(&incarnation)
                .map(|trainer| trainer.name.clone()),
            task: task.to_owned(),
            ..Wait::new(self.members.trainer_words(incarnation), since, deadline)
        }
    }

    fn round_waits(&self, round: &Round) -> Vec<Wait> {
        let wait = |index| Wait {
            task: round.what.clone(),
            ..self.wait_for_server(index, round.since, Some(round.deadline))
        };
        round.waits_for().map(wait).collect()
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
            waits.push(Wait {
                kind: WaitKind::MoreTrainers,
                then: "goes on with those".to_owned(),
                ..Wait::new(whom, running_since, deadline)
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
                let task = format!("to come to fence {}", self.fence.number);
                let deadline = Some(*since + self.settings.fence_deadline);
                waits.extend(out.map(|(own, _)| Wait {
                    kind: WaitKind::Fence,
                    ..self.trainer_wait(*own, &task, *since, deadline)
                }));
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

    fn lost() -> Wait {
        Wait {
            member: Some("pserver 1".to_owned()),
            lost_for: Some(Duration::from_secs(12)),
            task: "to load".to_owned(),
            advice: Some("start it".to_owned()),
            ..Wait::new(
                "pserver 1 (10.0.0.2:30240)".to_owned(),
                Duration::from_secs(2),
                Some(Duration::from_secs(300)),
            )
        }
    }

    #[test]
    fn a_wait_says_whom_and_until_when() {
        assert_eq!(
            lost().words(Duration::from_secs(12)),
            "waiting for pserver 1 (10.0.0.2:30240), lost 12 s ago to load; gives up in 288 s; start it"
        );
    }

    #[test]
    fn what_changes_while_a_wait_lasts_is_not_in_whom_it_is_for() {
        let status = lost().status(Duration::from_secs(12));
        assert_eq!(status.whom, "pserver 1 (10.0.0.2:30240) to load");
        assert_eq!((status.for_s, status.lost_s), (10, Some(12)));
        assert_eq!(
            status.words,
            "waiting for pserver 1 (10.0.0.2:30240), lost 12 s ago to load; gives up in 288 s"
        );
    }
}
