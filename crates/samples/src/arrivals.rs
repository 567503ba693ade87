//! Files that come while others are read.
//!
//! A reader waits for each file before it opens it. Whoever brings files takes the one that is waited for, or one
//! of the next few, says when it is whole, and hears which ones are not needed any more.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Absent,
    /// Somebody brings it.
    Taken,
    Here,
    /// It will not come.
    Failed(String),
}

#[derive(Debug)]
struct State {
    stages: Vec<Stage>,
    /// The file that the reader has asked for last.
    asked: Option<usize>,
    finished: Vec<usize>,
    is_closed: bool,
}

/// Which files of a reader are here, by their places in its configuration.
#[derive(Debug)]
pub struct Arrivals {
    state: Mutex<State>,
    changed: Condvar,
}

impl Arrivals {
    pub fn new(num_files: usize) -> Self {
        Self {
            state: Mutex::new(State {
                stages: vec![Stage::Absent; num_files],
                asked: None,
                finished: Vec::new(),
                is_closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is one assignment: the state is whole, whoever panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, mut is_waiting: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        let held = self.lock();
        self.changed
            .wait_while(held, |state| !state.is_closed && is_waiting(state))
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until `file` is here; why it will never be, otherwise.
    pub(crate) fn wait_for(&self, file: usize) -> Result<(), String> {
        self.change(|state| state.asked = Some(file));
        let state = self.wait_while(|state| matches!(state.stages[file], Stage::Absent | Stage::Taken));
        match &state.stages[file] {
            Stage::Here => Ok(()),
            Stage::Failed(reason) => Err(reason.clone()),
            Stage::Absent | Stage::Taken => Err("nobody waits for it any more".to_owned()),
        }
    }

    /// The reader has gone through all of `file`.
    pub(crate) fn finish(&self, file: usize) {
        self.change(|state| state.finished.push(file));
    }

    /// A file to bring, waiting until one is wanted: the one that the reader waits for, else one of the `ahead` after
    /// it. None when the reader is gone.
    pub fn take(&self, ahead: usize) -> Option<usize> {
        let mut found = None;
        let mut state = self.wait_while(|state| {
            found = state.asked.and_then(|asked| {
                let last = state
                    .stages
                    .len()
                    .min(asked.saturating_add(ahead).saturating_add(1));
                (asked..last).find(|file| state.stages[*file] == Stage::Absent)
            });
            found.is_none()
        });
        let file = found.filter(|_| !state.is_closed)?;
        state.stages[file] = Stage::Taken;
        Some(file)
    }

    /// Waits until the reader asks for `file`, which somebody has taken ahead; false when the reader is gone.
    pub fn wait_until_asked(&self, file: usize) -> bool {
        !self.wait_while(|state| state.asked != Some(file)).is_closed
    }

    /// `file` is whole, and stays until it is finished.
    pub fn arrive(&self, file: usize) {
        self.change(|state| state.stages[file] = Stage::Here);
    }

    /// `file` cannot be had; whoever waits for it is told why.
    pub fn fail(&self, file: usize, reason: String) {
        self.change(|state| state.stages[file] = Stage::Failed(reason));
    }

    /// Files that were finished since the last call.
    pub fn take_finished(&self) -> Vec<usize> {
        std::mem::take(&mut self.lock().finished)
    }

    /// Ends all waits, those to come as well.
    pub fn close(&self) {
        self.change(|state| state.is_closed = true);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_is_waited_for_is_brought_first_then_what_follows() {
        let arrivals = Arrivals::new(5);
        thread::scope(|scope| {
            let reader = scope.spawn(|| arrivals.wait_for(2));
            assert_eq!(arrivals.take(1), Some(2));
            assert_eq!(arrivals.take(1), Some(3));
            arrivals.arrive(2);
            assert_eq!(reader.join().expect("it ends"), Ok(()));
            let other = scope.spawn(|| arrivals.take(1));
            arrivals.arrive(3);
            assert_eq!(arrivals.wait_for(3), Ok(()));
            assert_eq!(other.join().expect("it ends"), Some(4));
        });
    }

    #[test]
    fn a_file_that_cannot_be_had_is_told_of_when_it_is_asked_for() {
        let arrivals = Arrivals::new(2);
        arrivals.fail(1, "gone".to_owned());
        arrivals.arrive(0);
        assert_eq!(arrivals.wait_for(0), Ok(()));
        assert_eq!(arrivals.wait_for(1), Err("gone".to_owned()));
    }

    #[test]
    fn closing_ends_all_waits() {
        let arrivals = Arrivals::new(2);
        thread::scope(|scope| {
            let reader = scope.spawn(|| arrivals.wait_for(0));
            assert!(arrivals.wait_until_asked(0));
            let helper = scope.spawn(|| arrivals.wait_until_asked(1));
            assert_eq!(arrivals.take(0), Some(0));
            arrivals.close();
            assert!(reader.join().expect("it ends").is_err());
            assert!(!helper.join().expect("it ends"));
        });
        assert_eq!(arrivals.take(1), None);
    }

    #[test]
    fn finished_files_are_told_once() {
        let arrivals = Arrivals::new(3);
        arrivals.finish(0);
        arrivals.finish(1);
        assert_eq!(arrivals.take_finished(), [0, 1]);
        assert!(arrivals.take_finished().is_empty());
    }
}
