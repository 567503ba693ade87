//! How a server is, for those who watch its process.

use clickmill_coordinator::{ServerStatistics, Status};
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Health {
    /// It has been told what to hold, and holds it.
    pub holds_buckets: bool,
    /// The fence that was wanted when the coordinator was heard of last.
    pub fence: u64,
    /// 0 for a spare.
    pub buckets: u64,
    /// When the memory budget is full, at the growth of the last minute; none where it is not filling.
    pub full_in_s: Option<u64>,
    pub statistics: ServerStatistics,
    /// Only where the coordinator is.
    pub coordinator: Option<CoordinatorHealth>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CoordinatorHealth {
    /// In this life of the coordinator.
    pub snapshots_committed: u64,
    pub snapshots_failed: u64,
    pub status: Status,
}
