//! What the commit file of a snapshot holds: everything that a coordinator needs to go on after its death.
//!
//! The file is small and written last; a snapshot is committed when it is in its place.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::duties::DutyRecord;
use crate::job::Job;
use crate::ledger::LedgerRecord;
use crate::message::{Decision, PassSummary, SnapshotFiles};
use crate::route::Route;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Committed {
    /// How often a coordinator has started here. Epochs and incarnations are made of it, so it is written before the
    /// first of them is used.
    pub life: u64,
    /// [`crate::Settings::servers`] of that start.
    pub launched: u32,
    pub route: Route,
    /// None: nothing was committed yet, all start empty.
    pub snapshot: Option<SnapshotFiles>,
    /// None: no trainer has brought a job yet.
    pub run: Option<RunRecord>,
    /// The run has ended, and nothing is left to do.
    pub is_over: bool,
}

/// What goes back when the parameters go back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    pub job: Job,
    pub ledger: LedgerRecord,
    pub history: Vec<PassSummary>,
    /// Of the pass, while it has not been acted upon.
    pub decision: Option<Decision>,
    pub schedule: Option<String>,
    pub adjust: Option<String>,
    pub duties: Vec<DutyRecord>,
    /// Of the trainers, by name.
    pub states: BTreeMap<String, String>,
    /// Of server 0.
    pub metrics: Option<String>,
}

impl Committed {
    /// Before anything has happened.
    pub(crate) fn empty(servers: u32) -> Self {
        Self {
            life: 0,
            launched: servers,
            route: Route::new(servers),
            snapshot: None,
            run: None,
            is_over: false,
        }
    }

    /// For the next life: the number of servers is the one that is asked for. Where the same one was asked for the last
    /// time, and the run was scaled since, it is open which one counts.
    pub(crate) fn reborn(mut self, servers: u32) -> Self {
        self.life += 1;
        if self.launched != servers {
            self.route = self.route.resized(servers);
            self.launched = servers;
        }
        self
    }

    /// The number that was asked for, where it is open whether it counts.
    pub(crate) fn launched_anew(&self) -> Option<u32> {
        (self.route.servers != Route::new(self.launched).servers).then_some(self.launched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_scaled_cluster_is_open_until_another_one_is_asked_for() {
        let mut committed = Committed::empty(2).reborn(2);
        committed.route = committed.route.resized(3);
        let again = committed.clone().reborn(2);
        assert_eq!((again.life, again.route.servers), (2, 3));
        assert_eq!(again.launched_anew(), Some(2));
        let other = committed.reborn(4);
        assert_eq!((other.route.servers, other.launched_anew()), (4, None));
    }
}
