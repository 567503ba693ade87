//! What `clickmill ps status` shows.

use serde::{Deserialize, Serialize};

use crate::ledger::Stage;
use crate::message::{ServerStatistics, TrainerStatistics};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// `starting`, `gathering`, `loading`, `running`, `ending` or `stopped`.
    pub phase: String,
    pub epoch: u64,
    /// Whom all wait for, since when and for how long still; empty when nobody waits.
    pub waiting: Vec<String>,
    pub pass: u32,
    pub num_passes: u32,
    pub stage: Option<Stage>,
    pub units_done: u64,
    pub units: u64,
    /// Trained over the run.
    pub samples: u64,
    pub batches: u64,
    pub fence: u64,
    pub wanted_fence: Option<u64>,
    pub snapshot: SnapshotStatus,
    /// Servers that the cluster is moving its buckets to.
    pub scaling_to: Option<u32>,
    pub servers: Vec<ServerStatus>,
    pub trainers: Vec<TrainerStatus>,
    pub duties: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotStatus {
    pub committed: Option<u64>,
    pub bytes: u64,
    /// Since the last one was committed, in this life of the coordinator.
    pub age_s: Option<u64>,
    pub in_progress: Option<u64>,
    /// Why the last attempt failed; nothing when it did not.
    pub failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerStatus {
    pub index: u32,
    pub address: String,
    pub is_live: bool,
    pub heard_s_ago: u64,
    /// 0 for a spare.
    pub buckets: u64,
    pub statistics: ServerStatistics,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainerStatus {
    pub trainer: u32,
    pub name: String,
    pub incarnation: u64,
    pub heard_s_ago: u64,
    pub is_parked: bool,
    /// Names of the units in its hands.
    pub units: Vec<String>,
    pub statistics: TrainerStatistics,
}
