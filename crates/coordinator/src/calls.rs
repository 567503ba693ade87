//! Commands on their way to servers, and rounds of them: the same question to several servers.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::event::Action;
use crate::message::{Answer, CallId, Command};

/// What it means when a server does not answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// The server is dead.
    Death,
    /// The command has failed.
    Failure,
}

#[derive(Clone, Debug)]
struct Open {
    server: u32,
    command: Command,
    deadline: Duration,
    overdue: Overdue,
}

/// Commands without an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    /// Servers outlive a coordinator: no two lives use the same numbers.
    first: u64,
    num_made: u64,
    open: BTreeMap<CallId, Open>,
}

impl Calls {
    pub(crate) fn new(life: u64) -> Self {
        Self {
            first: life << 40,
            ..Self::default()
        }
    }
    pub(crate) fn start(
        &mut self,
        server: u32,
        command: Command,
        deadline: Duration,
        overdue: Overdue,
        out: &mut Vec<Action>,
    ) -> CallId {
        self.num_made += 1;
        let call = CallId(self.first + self.num_made);
        out.push(Action::Call {
            server,
            call,
            command: command.clone(),
        });
        self.open.insert(
            call,
            Open {
                server,
                command,
                deadline,
                overdue,
            },
        );
        call
    }

    pub(crate) fn is_open(&self, call: CallId) -> bool {
        self.open.contains_key(&call)
    }

    /// False: nobody waits for this answer (any more).
    pub(crate) fn finish(&mut self, server: u32, call: CallId) -> bool {
        let is_open = self.open.get(&call).is_some_and(|open| open.server == server);
        if is_open {
            self.open.remove(&call);
        }
        is_open
    }

    /// All that a server has not answered, once more: its connection was lost and it is back.
    pub(crate) fn resend(&self, server: u32, out: &mut Vec<Action>) {
        let own = self.open.iter().filter(|(_, open)| open.server == server);
        out.extend(own.map(|(call, open)| Action::Call {
            server,
            call: *call,
            command: open.command.clone(),
        }));
    }

    pub(crate) fn forget(&mut self, server: u32) {
        self.open.retain(|_, open| open.server != server);
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    pub(crate) fn overdue(&self, now: Duration) -> Vec<(CallId, u32, Overdue)> {
        let late = self.open.iter().filter(|(_, open)| now >= open.deadline);
        late.map(|(call, open)| (*call, open.server, open.overdue))
            .collect()
    }
}

/// The same command to several servers; complete when all have answered.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    open: BTreeMap<CallId, u32>,
    answers: BTreeMap<u32, Answer>,
    failure: Option<String>,
    is_damaged: bool,
    /// `to freeze snapshot 7`.
    pub(crate) what: String,
    pub(crate) since: Duration,
    pub(crate) deadline: Duration,
}

impl Round {
    pub(crate) fn new(what: String, since: Duration, deadline: Duration) -> Self {
        Self {
            open: BTreeMap::new(),
            answers: BTreeMap::new(),
            failure: None,
            is_damaged: false,
            what,
            since,
            deadline,
        }
    }

    pub(crate) fn expect(&mut self, call: CallId, server: u32) {
        self.open.insert(call, server);
    }

    /// Takes an answer to a call of this round.
    pub(crate) fn take(&mut self, call: CallId, answer: &Result<Answer, String>) {
        let Some(server) = self.open.remove(&call) else {
            return;
        };
        match answer {
            Ok(Answer::Damaged { words }) => {
                self.failure = Some(format!("pserver {server}: {words}"));
                self.is_damaged = true;
            }
            Ok(answer) => {
                self.answers.insert(server, answer.clone());
            }
            Err(words) => self.failure = Some(format!("pserver {server}: {words}")),
        }
    }

    pub(crate) fn forget(&mut self, server: u32) {
        self.open.retain(|_, asked| *asked != server);
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The failure is that of a file.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    pub(crate) fn answers(&self) -> &BTreeMap<u32, Answer> {
        &self.answers
    }

    pub(crate) fn waits_for(&self) -> impl Iterator<Item = u32> {
        self.open.values().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Duration = Duration::from_secs(9);

    #[test]
    fn an_answer_counts_once_and_from_its_server_alone() {
        let (mut calls, mut out) = (Calls::default(), Vec::new());
        let call = calls.start(1, Command::Ping {}, LATER, Overdue::Death, &mut out);
        assert!(!calls.finish(0, call));
        assert!(calls.finish(1, call));
        assert!(!calls.finish(1, call));
    }

    #[test]
    fn a_server_that_is_back_is_asked_again_under_the_same_number() {
        let (mut calls, mut out) = (Calls::default(), Vec::new());
        let call = calls.start(1, Command::Ping {}, LATER, Overdue::Death, &mut out);
        calls.start(0, Command::Ping {}, LATER, Overdue::Death, &mut out);
        out.clear();
        calls.resend(1, &mut out);
        assert!(matches!(out[..], [Action::Call { server: 1, call: again, .. }] if again == call));
    }

    #[test]
    fn a_round_is_complete_when_all_have_answered_and_keeps_the_failure() {
        let mut round = Round::new("to answer".into(), Duration::ZERO, LATER);
        round.expect(CallId(1), 0);
        round.expect(CallId(2), 1);
        round.take(CallId(1), &Ok(Answer::Done {}));
        assert_eq!(round.waits_for().collect::<Vec<_>>(), [1]);
        round.take(CallId(3), &Ok(Answer::Done {}));
        assert!(!round.is_complete());
        round.take(CallId(2), &Err("disk is full".into()));
        assert!(round.is_complete());
        assert_eq!(round.failure(), Some("pserver 1: disk is full"));
    }
}
