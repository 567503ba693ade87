//! Where the coordinator's commands arrive: each is done once, and none that was overtaken.
//!
//! A command comes on a connection of its own, so two may arrive in another order than they were given, and
//! one may come twice. `load` makes everything void that was asked for before it.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use clickmill_coordinator::{Answer, CallId, Command};

use crate::Error;
use crate::host::Host;

/// Answers that are remembered: the coordinator asks again only for what it has no answer to.
const MAX_REMEMBERED: usize = 256;

#[derive(Default)]
pub(crate) struct Desk {
    /// The last `load`; taken by it alone, and shared by what must not happen beside it.
    last_load: RwLock<u64>,
    calls: Mutex<BTreeMap<CallId, Call>>,
    answered: Condvar,
}

enum Call {
    UnderWay,
    Done(Result<Answer, String>),
}

impl Desk {
    /// Does what was asked, or gives the answer of the first time.
    pub(crate) fn obey(&self, host: &Host, call: CallId, command: Command) -> Result<Answer, String> {
        let mut calls = lock(&self.calls);
        loop {
            match calls.get(&call) {
                None => break,
                Some(Call::Done(answer)) => return answer.clone(),
                Some(Call::UnderWay) => {
                    calls = self.answered.wait(calls).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        calls.insert(call, Call::UnderWay);
        drop(calls);
        let answer = self.carry_out(host, call, command);
        let mut calls = lock(&self.calls);
        calls.insert(call, Call::Done(answer.clone()));
        while calls.len() > MAX_REMEMBERED {
            calls.pop_first();
        }
        self.answered.notify_all();
        answer
    }

    fn carry_out(&self, host: &Host, CallId(number): CallId, command: Command) -> Result<Answer, String> {
        let overtaken = || Err("a later command has made this one void".to_owned());
        let obey = |command| host.obey(command).map_err(|error: Error| error.to_string());
        match command {
            Command::Load { .. } => {
                let mut last = self.last_load.write().unwrap_or_else(PoisonError::into_inner);
                if number < *last {
                    return overtaken();
                }
                *last = number;
                match host.obey(command) {
                    Err(error) if error.is_damage() => Ok(Answer::Damaged {
                        words: error.to_string(),
                    }),
                    other => other.map_err(|error| error.to_string()),
                }
            }
            // Files are written and read for long, and a load need not wait: what is frozen or prepared goes with
            // its life.
            Command::Write { .. }
            | Command::Retain { .. }
            | Command::Discard { .. }
            | Command::Prepare { .. }
            | Command::Ping {}
            | Command::Stop { .. } => obey(command),
            Command::Begin { .. }
            | Command::SettleQuery { .. }
            | Command::Settle { .. }
            | Command::Freeze { .. }
            | Command::Evict { .. }
            | Command::Relieve {}
            | Command::Report {}
            | Command::Move { .. } => {
                let last = self.last_load.read().unwrap_or_else(PoisonError::into_inner);
                if number < *last {
                    return overtaken();
                }
                obey(command)
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn load() -> Command {
        let job = serde_json::from_value(serde_json::json!({
            "strategy": "async", "lanes": 1, "trainers": 1, "units": [], "passes": [], "tables": [],
            "dense": {"rule": "nothing", "size": 0, "initial": ""}, "metrics": {"train": {}, "validation": {}},
            "evicts": false, "decides": false, "publishes": false, "snapshot_interval_ms": 0, "full_every": 1,
            "agreement": {}
        }));
        Command::Load {
            job: Box::new(job.expect("a job")),
            index: 0,
            epoch: 1,
            route: Vec::new(),
            snapshot: None,
            metrics: None,
            order: clickmill_coordinator::Order {
                pass: 0,
                is_validation: false,
                round: 0,
                lanes: Vec::new(),
                is_new_stage: true,
                adjust: None,
            },
        }
    }

    #[test]
    fn what_was_asked_before_a_load_is_void_after_it() {
        let (desk, host) = (Desk::default(), Host::new(PathBuf::from("nowhere"), None));
        // It fails, and still marks the place: nothing of before may come after it.
        assert!(desk.obey(&host, CallId(7), load()).is_err());
        let void = desk.obey(&host, CallId(6), Command::Report {});
        assert_eq!(void, Err("a later command has made this one void".to_owned()));
        let later = desk.obey(&host, CallId(8), Command::Report {});
        assert_ne!(later, void);
    }

    #[test]
    fn a_call_that_comes_again_is_answered_as_before() {
        let (desk, host) = (Desk::default(), Host::new(PathBuf::from("nowhere"), None));
        let first = desk.obey(&host, CallId(1), Command::Report {});
        assert_eq!(first, desk.obey(&host, CallId(1), Command::Ping {}));
    }
}
