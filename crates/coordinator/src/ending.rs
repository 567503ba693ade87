//! The end of a run: all are told, all go, and the process gets its exit code.

use std::time::Duration;

use crate::calls::{Overdue, Round};
use crate::coordinator::{Coordinator, Phase};
use crate::event::{Action, Happening};
use crate::ledger::Stage;
use crate::message::{Command, Summary};

#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) exit_code: i32,
    pub(crate) words: String,
    pub(crate) since: Duration,
    /// The commit file that says that nothing is left to do.
    store: Option<u64>,
    /// Servers are told to stop.
    pub(crate) round: Option<Round>,
    are_servers_told: bool,
    /// Of a run that was over before this life: those who have been started and not heard of it yet.
    absent: Option<Absent>,
}

#[derive(Clone, Copy, Debug)]
struct Absent {
    servers: u32,
    /// Those who come say how many they are; there may have been another number before.
    trainers: u32,
    num_trainers_told: u32,
}

impl Absent {
    fn is_nobody(self) -> bool {
        self.servers == 0 && self.num_trainers_told >= self.trainers
    }
}

impl Ending {
    /// A server that has come after the end of the run was told so.
    pub(crate) fn told_server(&mut self) {
        if let Some(absent) = &mut self.absent {
            absent.servers = absent.servers.saturating_sub(1);
        }
    }

    pub(crate) fn told_trainer(&mut self, expected: u32) {
        if let Some(absent) = &mut self.absent {
            absent.trainers = expected;
            absent.num_trainers_told += 1;
        }
    }

    /// The run was over before this life.
    pub(crate) fn is_old(&self) -> bool {
        self.absent.is_some()
    }

    /// A server that is lost is not waited for.
    pub(crate) fn forget(&mut self, server: u32) {
        if let Some(round) = &mut self.round {
            round.forget(server);
        }
    }
}

impl Coordinator {
    /// Ends the run when all passes are over and nothing is left to do.
    pub(crate) fn step_end(&mut self) -> bool {
        if let Some(since) = self
            .lonely_since()
            .filter(|since| self.now >= *since + self.settings.wait_deadline)
        {
            let waited = self.now.saturating_sub(since).as_secs();
            self.end_run(1, format!("no trainer was there for {waited} s"));
            return true;
        }
        let Some(run) = &self.run else { return false };
        if run.ledger.stage() != Stage::Ended || self.snapshots.current.is_some() {
            return false;
        }
        if !self.is_end_committed() {
            let has_failed = self.snapshots.num_failures >= self.settings.max_attempts;
            if has_failed {
                let reason = self.snapshots.failure.clone().unwrap_or_default();
                self.end_run(1, format!("the last snapshot could not be committed: {reason}"));
            }
            return has_failed;
        }
        if !run.duties.open().is_empty() {
            return false;
        }
        let given_up = run.duties.given_up.clone();
        if !given_up.is_empty() {
            self.end_run(
                1,
                format!(
                    "all passes are trained, but these have failed: {}",
                    given_up.join(", ")
                ),
            );
            return true;
        }
        self.committed.is_over = true;
        if let Some(record) = &mut self.committed.run {
            record.duties.clear();
        }
        let store = self.store(Box::new(self.committed.clone()));
        self.end_run(0, "all passes are done".to_owned());
        if let Phase::Ending(ending) = &mut self.phase {
            ending.store = Some(store);
        }
        true
    }

    /// Notes since when there has been no trainer.
    fn lonely_since(&mut self) -> Option<Duration> {
        if self.members.trainers().is_empty() {
            self.alone_since.get_or_insert(self.now);
        } else {
            self.alone_since = None;
        }
        self.alone_since
    }

    /// The commit file of before says that the run is over.
    pub(crate) fn end_as_committed(&mut self) {
        self.end_run(0, "all passes are done".to_owned());
        let absent = Absent {
            servers: self.settings.servers.saturating_sub(1),
            trainers: self.run.as_ref().map_or(1, |run| run.job.trainers),
            num_trainers_told: 0,
        };
        if let Phase::Ending(ending) = &mut self.phase {
            ending.absent = Some(absent);
        }
    }

    pub(crate) fn stop_as_asked(&mut self) {
        match self.snapshots.failure.clone() {
            None => self.end_run(0, "stopped as asked; the run can be resumed".to_owned()),
            Some(reason) => self.end_run(1, format!("stopped as asked, without a last snapshot: {reason}")),
        }
    }

    pub(crate) fn end_run(&mut self, exit_code: i32, words: String) {
        if matches!(self.phase, Phase::Ending(_) | Phase::Stopped) {
            return;
        }
        self.calls.clear();
        self.settlements.clear();
        self.tell(Happening::Ending {
            exit_code,
            words: words.clone(),
        });
        self.verdict = Some((exit_code, words.clone()));
        let (since, store, round) = (self.now, None, None);
        self.phase = Phase::Ending(Ending {
            exit_code,
            words,
            since,
            store,
            round,
            are_servers_told: false,
            absent: None,
        });
    }

    pub(crate) fn stored_end(&mut self, number: u64, _result: &Result<(), String>) -> bool {
        // When it could not be written, the next start does what is left once more: nothing is lost by it.
        match &mut self.phase {
            Phase::Ending(ending) if ending.store == Some(number) => {
                ending.store = None;
                true
            }
            Phase::Starting { .. }
            | Phase::Gathering { .. }
            | Phase::Loading { .. }
            | Phase::Running { .. }
            | Phase::Ending(_)
            | Phase::Stopped => false,
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        // Also of a run that has stopped: who asks late is told the same.
        let (exit_code, words) = self.verdict.clone().unwrap_or_default();
        let (samples, batches) = self.run.as_ref().map_or((0, 0), |run| run.ledger.trained());
        let passes = self.run.as_ref().map_or_else(Vec::new, |run| run.history.clone());
        Summary {
            exit_code,
            words,
            passes,
            samples,
            batches,
        }
    }

    pub(crate) fn step_ending(&mut self) -> bool {
        let Phase::Ending(ending) = &self.phase else {
            return false;
        };
        let is_late = self.now >= ending.since + self.settings.end_deadline;
        let has_gone = self
            .members
            .trainers()
            .values()
            .all(|trainer| trainer.presence.connection.is_none())
            && ending.absent.is_none_or(Absent::is_nobody);
        if !(is_late || has_gone && ending.store.is_none()) {
            return false;
        }
        if !ending.are_servers_told {
            self.tell_servers_to_stop();
            return true;
        }
        if ending.round.as_ref().is_some_and(|round| !round.is_complete()) {
            return false;
        }
        let (exit_code, words) = (ending.exit_code, ending.words.clone());
        self.phase = Phase::Stopped;
        self.out.push(Action::Stop { exit_code, words });
        true
    }

    fn tell_servers_to_stop(&mut self) {
        let Phase::Ending(Ending { exit_code, words, .. }) = &self.phase else {
            return;
        };
        let (exit_code, words) = (*exit_code, words.clone());
        let live = self
            .members
            .servers()
            .iter()
            .filter(|(_, server)| server.lost.is_none());
        // Server 0 is this process: it stops last.
        let others: Vec<u32> = live
            .map(|(index, _)| *index)
            .filter(|index| *index != 0)
            .collect();
        let command = |_| Command::Stop {
            exit_code,
            words: words.clone(),
        };
        let limit = self.settings.end_deadline;
        let round = self.ask_within(&others, "to stop", limit, Overdue::Failure, command);
        if let Phase::Ending(ending) = &mut self.phase {
            ending.round = Some(round);
            ending.are_servers_told = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn who_asks_when_all_have_stopped_is_told_how_it_ended() {
        let mut coordinator = Coordinator::new(Settings::default(), None);
        coordinator.end_run(1, "the disk is full".to_owned());
        let told = coordinator.summary();
        while !matches!(coordinator.phase, Phase::Stopped) {
            assert!(coordinator.step_ending());
        }
        assert_eq!(coordinator.summary(), told);
        assert_eq!((told.exit_code, told.words.as_str()), (1, "the disk is full"));
    }

    #[test]
    fn an_old_run_waits_for_those_who_were_started_now() {
        let mut coordinator = Coordinator::new(
            Settings {
                servers: 2,
                ..Settings::default()
            },
            None,
        );
        coordinator.end_as_committed();
        assert!(!coordinator.step_ending(), "nobody was told yet");
        let Phase::Ending(ending) = &mut coordinator.phase else {
            unreachable!("it was just ended")
        };
        ending.told_server();
        ending.told_trainer(2);
        assert!(!coordinator.step_ending(), "one of two trainers is missing");
        let Phase::Ending(ending) = &mut coordinator.phase else {
            unreachable!("it waits")
        };
        ending.told_trainer(2);
        while !matches!(coordinator.phase, Phase::Stopped) {
            assert!(coordinator.step_ending());
        }
    }
}
