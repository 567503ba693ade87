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

    /// For the next life: the number of servers is the one that was asked for, unless it was scaled since the last
    /// time the same number was asked for.
    pub(crate) fn reborn(mut self, servers: u32) -> Self {
        self.life += 1;
        if self.launched != servers {
            self.route = self.route.resized(servers);
            self.launched = servers;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaled_cluster_stays_scaled_until_another_number_is_asked_for() {
        let mut committed = Committed::empty(2).reborn(2);
        committed.route = committed.route.resized(3);
        let again = committed.clone().reborn(2);
        assert_eq!((again.life, again.route.servers), (2, 3));
        assert_eq!(committed.reborn(4).route.servers, 4);
    }
}
