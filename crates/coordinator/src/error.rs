//! What the coordinator refuses, in words for the one who asked.

/// Why a request or an entry of the ledger was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the job cannot be run: {reason}")]
    Job { reason: String },
    #[error("epoch {asked} is over; the cluster is in epoch {current}")]
    Epoch { asked: u64, current: u64 },
    #[error("the cluster is not running: {reason}")]
    NotRunning { reason: String },
    #[error("lease {lease} is not held by incarnation {incarnation}")]
    NotHeld { lease: u64, incarnation: u64 },
    #[error("lease {lease} is of unit {expected}, the entry is of unit {found}")]
    OtherUnit { lease: u64, expected: u32, found: u32 },
    #[error("lane {lane} has already brought its batch of round {round}")]
    LaneIsAhead { lane: u32, round: u64 },
    #[error("incarnation {incarnation} is parked at a fence and may not push")]
    Parked { incarnation: u64 },
}
