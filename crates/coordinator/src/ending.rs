//! The end of a run: all are told, all go, and the process gets its exit code.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::calls::{Overdue, Round};
use crate::coordinator::{Coordinator, Phase};
use crate::event::{Action, Happening};
use crate::ledger::Stage;
use crate::message::{Command, ConnectionId, Summary};
use crate::reading::WRONG_DATA;

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
    /// Those who were started and have not heard of the end yet.
    absent: Option<Absent>,
}

#[derive(Clone, Debug)]
struct Absent {
    servers: u32,
    /// Those who come say how many they are; there may have been another number before.
    trainers: u32,
    num_trainers_told: u32,
    /// Connections over which somebody was told and has not gone yet: the answer may still be on its way.
    told: BTreeSet<ConnectionId>,
    /// They are waited for no longer than this.
    until: Duration,
    /// The run was over before this life.
    is_of_old_run: bool,
}

impl Absent {
    fn is_nobody(&self) -> bool {
        self.servers == 0 && self.num_trainers_told >= self.trainers && self.told.is_empty()
    }
}

impl Ending {
    /// A server that has come after the end of the run was told so.
    pub(crate) fn told_server(&mut self, connection: ConnectionId) {
        if let Some(absent) = &mut self.absent
            && absent.told.insert(connection)
        {
            absent.servers = absent.servers.saturating_sub(1);
        }
    }

    /// So many servers are here, and are told with all others; only who comes later is waited for.
    pub(crate) fn has_servers(&mut self, count: u32) {
        if let Some(absent) = &mut self.absent {
            absent.servers = absent.servers.saturating_sub(count);
        }
    }

    /// A trainer that has come after the end was told so; it says how many there are.
    pub(crate) fn told_trainer(&mut self, connection: ConnectionId, expected: u32) {
        if let Some(absent) = &mut self.absent
            && absent.told.insert(connection)
        {
            if absent.is_of_old_run {
                absent.trainers = expected;
            }
            absent.num_trainers_told += 1;
        }
    }

    pub(crate) fn closed(&mut self, connection: ConnectionId) {
        if let Some(absent) = &mut self.absent {
            absent.told.remove(&connection);
        }
    }

    /// The run was over before this life.
    pub(crate) fn is_old(&self) -> bool {
        self.absent.as_ref().is_some_and(|absent| absent.is_of_old_run)
    }

    /// How many trainers were started and have not come, and until when they are waited for.
    pub(crate) fn awaited_trainers(&self) -> Option<(u32, Duration)> {
        let absent = self.absent.as_ref()?;
        let missing = absent.trainers.saturating_sub(absent.num_trainers_told);
        (missing > 0).then_some((missing, absent.until))
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
        if let Some(words) = run.too_many_bad_lines().or_else(|| run.no_sample()) {
            self.end_for_all(WRONG_DATA, words);
            return true;
        }
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
        if let Some(words) = run.missed_slots() {
            self.end_for_all(WRONG_DATA, words);
            return true;
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
        self.end_well();
        true
    }

    fn end_well(&mut self) {
        self.committed.is_over = true;
        if let Some(record) = &mut self.committed.run {
            record.duties.clear();
        }
        let store = self.store(Box::new(self.committed.clone()));
        self.end_for_all(0, "all passes are done".to_owned());
        if let Phase::Ending(ending) = &mut self.phase {
            ending.store = Some(store);
        }
    }

    /// An end that was found by those who were there, which may be sooner than all are: empty data takes no time.
    fn end_for_all(&mut self, exit_code: i32, words: String) {
        self.end_run(exit_code, words);
        let absent = self.never_joined();
        if let Phase::Ending(ending) = &mut self.phase {
            ending.absent = absent;
        }
    }

    /// Trainers that are still starting when the others have done all work: nobody else would tell them. One that
    /// was killed has joined before, and is not waited for.
    fn never_joined(&self) -> Option<Absent> {
        let expected = u64::from(self.run.as_ref()?.job.trainers);
        let missing = expected.saturating_sub(self.members.num_joined());
        let until = self.began? + self.settings.gather_deadline;
        (missing > 0 && self.now < until).then(|| Absent {
            servers: 0,
            trainers: missing as u32,
            num_trainers_told: 0,
            told: BTreeSet::new(),
            until,
            is_of_old_run: false,
        })
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
            told: BTreeSet::new(),
            until: self.now + self.settings.end_deadline,
            is_of_old_run: true,
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
        let is_waiting = |absent: &Absent| self.now < absent.until && !absent.is_nobody();
        let is_waiting = ending.absent.as_ref().is_some_and(is_waiting);
        let is_late = self.now >= ending.since + self.settings.end_deadline && !is_waiting;
        let has_gone = self
            .members
            .trainers()
            .values()
            .all(|trainer| trainer.presence.connection.is_none())
            && !is_waiting;
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
    use crate::event::Event;
    use crate::job::tests::job;
    use crate::job::{Job, Strategy};
    use crate::message::{Reply, Request, RequestId};
    use crate::run::Run;
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

    /// One of two trainers has joined, 2 s after the start.
    fn starting() -> Coordinator {
        let mut coordinator = Coordinator::new(Settings::default(), None);
        coordinator.run = Some(Run::new(Job {
            trainers: 2,
            ..job(Strategy::Async, 1, 0, 1)
        }));
        coordinator.began = Some(Duration::ZERO);
        coordinator.members.join("first", 7, 1, Duration::ZERO);
        coordinator.now = Duration::from_secs(2);
        coordinator
    }

    /// All passes are done, and the one that has joined has gone.
    fn ended() -> Coordinator {
        let mut coordinator = starting();
        coordinator.end_well();
        coordinator.closed(7);
        coordinator.stored_end(coordinator.num_stores, &Ok(()));
        coordinator
    }

    fn is_over(coordinator: &mut Coordinator) -> bool {
        while coordinator.step_ending() {}
        matches!(coordinator.phase, Phase::Stopped)
    }

    fn joins(coordinator: &mut Coordinator, connection: u64) -> Vec<Action> {
        let (from, job) = (
            RequestId {
                connection,
                number: 1,
            },
            job(Strategy::Async, 1, 0, 1),
        );
        let request = Request::Join {
            job: Box::new(Job { trainers: 2, ..job }),
            name: "late".to_owned(),
        };
        coordinator.handle(Event::Request { from, request }, Duration::from_secs(3))
    }

    #[test]
    fn a_trainer_that_was_still_starting_when_the_others_had_done_all_work_hears_of_the_end() {
        let mut coordinator = ended();
        assert!(!is_over(&mut coordinator), "one of two has not come yet");
        let words = "waiting for 1 more of the trainers, to hear that the run is over; gives up in 8 s";
        assert_eq!(coordinator.waiting_words(), words);
        let actions = joins(&mut coordinator, 8);
        let told = |action: &Action| matches!(action, Action::Reply { reply: Reply::End { summary }, .. } if summary.exit_code == 0);
        assert!(actions.iter().any(told), "{actions:?}");
        assert!(!is_over(&mut coordinator), "the answer may still be on its way");
        coordinator.closed(8);
        assert!(is_over(&mut coordinator));
    }

    #[test]
    fn a_trainer_that_was_still_starting_when_the_data_was_found_empty_hears_of_it() {
        let mut coordinator = starting();
        coordinator.end_for_all(WRONG_DATA, "there is no sample".to_owned());
        coordinator.closed(7);
        assert!(!is_over(&mut coordinator), "one of two has not come yet");
        let actions = joins(&mut coordinator, 8);
        let told = |action: &Action| matches!(action, Action::Reply { reply: Reply::End { summary }, .. } if summary.exit_code == WRONG_DATA);
        assert!(actions.iter().any(told), "{actions:?}");
        coordinator.closed(8);
        assert!(is_over(&mut coordinator));
    }

    #[test]
    fn a_trainer_that_never_comes_is_waited_for_no_longer_than_at_the_start() {
        let mut coordinator = ended();
        coordinator.now = Duration::from_millis(9_999);
        assert!(!is_over(&mut coordinator));
        coordinator.now = Duration::from_secs(10);
        assert!(is_over(&mut coordinator));
    }

    #[test]
    fn a_trainer_that_has_joined_and_gone_is_not_waited_for() {
        let mut coordinator = Coordinator::new(Settings::default(), None);
        coordinator.run = Some(Run::new(job(Strategy::Async, 1, 0, 1)));
        coordinator.began = Some(Duration::ZERO);
        let killed = coordinator.members.join("killed", 7, 1, Duration::ZERO);
        coordinator.members.bury(killed);
        coordinator.end_well();
        coordinator.stored_end(coordinator.num_stores, &Ok(()));
        assert!(is_over(&mut coordinator));
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
        ending.told_server(1);
        ending.closed(1);
        ending.told_trainer(2, 2);
        ending.closed(2);
        assert!(!coordinator.step_ending(), "one of two trainers is missing");
        let Phase::Ending(ending) = &mut coordinator.phase else {
            unreachable!("it waits")
        };
        ending.told_trainer(3, 2);
        assert!(!coordinator.step_ending(), "it may not have heard of it yet");
        coordinator.closed(3);
        while !matches!(coordinator.phase, Phase::Stopped) {
            assert!(coordinator.step_ending());
        }
    }
}
