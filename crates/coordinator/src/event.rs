//! What goes into the coordinator and what comes out of it.

use serde::Serialize;

use crate::committed::Committed;
use crate::message::{Answer, CallId, Command, ConnectionId, Reply, Request, RequestId};

#[derive(Clone, Debug)]
pub enum Event {
    Request {
        from: RequestId,
        request: Request,
    },
    /// A connection is gone.
    Closed {
        from: ConnectionId,
    },
    ServerAnswer {
        server: u32,
        call: CallId,
        answer: Result<Answer, String>,
    },
    /// What became of a [`Action::Store`]. An error must mean that the file of before is still in its place, or
    /// that the new one is whole.
    Stored {
        number: u64,
        result: Result<(), String>,
    },
    /// Time has passed. At least once a second.
    Tick,
}

#[derive(Clone, Debug)]
pub enum Action {
    Reply {
        to: RequestId,
        reply: Reply,
    },
    /// Give a command to a server, over the connection with which it has registered.
    Call {
        server: u32,
        call: CallId,
        command: Command,
    },
    /// Put this in the place of the commit file, durably and atomically, then say so.
    Store {
        number: u64,
        committed: Box<Committed>,
    },
    /// The run is over: end this process.
    Stop {
        exit_code: i32,
        words: String,
    },
    /// For the log.
    Tell {
        event: Happening,
    },
}

/// What people want to know of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Happening {
    JobTaken {
        units: usize,
        passes: usize,
    },
    TrainerJoined {
        name: String,
        incarnation: u64,
    },
    TrainerGone {
        name: String,
        incarnation: u64,
        reason: String,
    },
    TrainerSettled {
        incarnation: u64,
    },
    ServerJoined {
        index: u32,
        address: String,
    },
    ServerLost {
        index: u32,
        address: String,
        reason: String,
    },
    /// Server `spare` has the place of one that is lost, and its index.
    SpareTaken {
        index: u32,
        spare: u32,
        address: String,
    },
    /// Told by the server itself: the index that it has from now on, where nobody gave it one at the start.
    Placed {
        index: u32,
    },
    /// The run had been scaled to `before` servers; this life of the coordinator goes on with another number.
    GoesOn {
        servers: u32,
        before: u32,
    },
    /// All servers and the ledger have what they had in `snapshot`; none: nothing.
    EpochBegun {
        epoch: u64,
        snapshot: Option<u64>,
    },
    StageBegun {
        pass: u32,
        stage: String,
    },
    FenceWanted {
        number: u64,
    },
    FenceOver {
        number: u64,
        held_ms: u64,
    },
    SnapshotCommitted {
        snapshot: u64,
        is_full: bool,
        bytes: u64,
        seconds: u64,
    },
    SnapshotFailed {
        snapshot: u64,
        reason: String,
    },
    DutyGiven {
        duty: u64,
        name: String,
        trainer: u64,
    },
    DutyDone {
        duty: u64,
        name: String,
    },
    DutyFailed {
        duty: u64,
        name: String,
        reason: String,
    },
    /// `percent` of the memory budget of a server are taken.
    MemoryFills {
        index: u32,
        percent: u32,
        bytes: u64,
        max_bytes: u64,
        full_in_s: Option<u64>,
    },
    /// A server has evicted rows because its memory budget was full.
    MemoryRelieved {
        index: u32,
        evicted_by_rule: u64,
        evicted_by_score: u64,
        evicted_by_age: u64,
        rows: u64,
        bytes: u64,
    },
    Scaled {
        servers: u32,
    },
    ScalingFailed {
        servers: u32,
        reason: String,
    },
    Waiting {
        words: String,
    },
    Ending {
        exit_code: i32,
        words: String,
    },
}
