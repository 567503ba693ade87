//! The control protocol: what trainers, servers and admins ask, what the coordinator answers, and what it tells
//! servers to do. JSON, tagged by `kind`; a field that is not known is refused.
//!
//! A connection may have several requests open; the wire numbers them ([`RequestId`]) since an answer that
//! must wait comes later than the answers to heartbeats. No answer waits for longer than a few seconds:
//! `wait` means ask again, and names whom all are waiting for.
//!
//! A command to a server is sent again under the same [`CallId`] when the connection was lost and the same
//! incarnation is back. A server does a call once; when it comes again it is answered as before, or when it is
//! done. It answers `Err` only when it cannot do what it was told; a lost connection is no answer.
//!
//! A trainer that is refused by a server, or cannot reach one, sends the same push again or asks the
//! coordinator by heartbeats until the epoch changes. It must not ask for a lease before: that would say that nothing
//! is under way.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::job::{Job, Pass, Strategy, Unit};
use crate::status::Status;

/// A connection, as the driver numbers them; never used twice.
pub type ConnectionId = u64;

/// A command on its way to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId(pub u64);

/// Whom an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub connection: ConnectionId,
    pub number: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Of a trainer: become a member. Answered by `welcome`, `wait`, `refused` or `end`.
    Join {
        job: Box<Job>,
        name: String,
    },
    /// Give me work. `holding`: the leases that the trainer knows it has, so that one whose answer was lost is
    /// given again instead of waiting for ever. Who asks and holds nothing says by that that all servers have answered
    /// all of its pushes. A trainer of `sync` asks at the start, after a release that says so, and between rounds
    /// when the unit of one of its lanes has ended, but never before it has come to a fence that it knows of; it
    /// sends an empty `holding` and is given all of its lanes.
    Lease {
        incarnation: u64,
        epoch: u64,
        holding: Vec<u64>,
    },
    Heartbeat {
        incarnation: u64,
        epoch: u64,
        statistics: TrainerStatistics,
    },
    /// The trainer is at a batch boundary: all servers have answered its last push, and it sends nothing until
    /// this is answered. `state` goes into the snapshot.
    Fence {
        incarnation: u64,
        epoch: u64,
        number: u64,
        state: Option<String>,
    },
    DutyDone {
        incarnation: u64,
        duty: u64,
        outcome: Outcome,
    },
    /// The trainer goes, with nothing under way. Its leases go to others.
    Leave {
        incarnation: u64,
    },

    /// Of a server. Without an index it takes the place of a lost one, or becomes a spare. One that is not `is_fixed` was given
    /// its index by a coordinator, and takes another one where that is taken.
    Register {
        index: Option<u32>,
        is_fixed: bool,
        address: String,
        incarnation: u64,
    },
    /// Answered by `beat`, or by `registered` where the server has another index from now on.
    ServerHeartbeat {
        index: u32,
        incarnation: u64,
        statistics: ServerStatistics,
    },

    /// Of an admin.
    Status {},
    Scale {
        pservers: u32,
    },
    Snapshot {},
    /// Take a snapshot, then end the run; it can be resumed.
    Stop {},
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    Welcome {
        trainer: u32,
        incarnation: u64,
        place: Place,
        /// The last fence that is over: one with a higher number is to be obeyed.
        fence: u64,
        /// What a trainer of this name (or else any trainer) gave at the fence of the last snapshot.
        state: Option<String>,
        terms: Box<Terms>,
    },
    /// Nothing to do yet: ask again.
    Wait {
        for_whom: String,
        since_s: u64,
        /// False: nobody can train before servers have come back.
        is_running: bool,
    },
    /// `may_join`: this incarnation is refused (it was declared dead, or is of another life of the coordinator); the process
    /// may drop all that it has and join or register again.
    Refused {
        reason: String,
        may_join: bool,
    },
    /// The epoch of the request is over: drop every lease and every batch under way, then ask again.
    Changed {
        place: Place,
    },
    Train {
        lease: u64,
        pass: u32,
        unit: u32,
        /// After the last committed batch; nothing: from the start.
        position: Option<String>,
        samples: u64,
        batches: u64,
        schedule: Option<String>,
    },
    Validate {
        lease: u64,
        pass: u32,
        unit: u32,
        position: Option<String>,
        samples: u64,
        batches: u64,
    },
    /// All lanes of this trainer that have data left.
    Lanes {
        pass: u32,
        round: u64,
        lanes: Vec<LaneGrant>,
        schedule: Option<String>,
        /// Before this round there is a fence, by the number of batches: come to the one that the answers to the round before it
        /// name, though it is the first time that they do.
        until: Option<u64>,
    },
    Duty {
        duty: u64,
        name: DutyName,
        pass: u32,
        input: Value,
    },
    End {
        summary: Summary,
    },
    Beat {
        epoch: u64,
        fence: u64,
    },
    /// The fence is over. `keep`: go on with the leases at hand; else drop them and ask.
    Released {
        number: u64,
        epoch: u64,
        keep: bool,
        /// As in `lanes`, from now on.
        until: Option<u64>,
    },
    Registered {
        index: u32,
        epoch: u64,
    },
    /// Taken; there is nothing to say.
    Noted {},
    /// To an admin: what is going to happen.
    Accepted {
        words: String,
    },
    Status {
        status: Box<Status>,
    },
}

/// Where everything is, in one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    pub epoch: u64,
    /// Address by index.
    pub servers: Vec<String>,
    /// Server index by bucket.
    pub route: Vec<u16>,
    pub strategy: Strategy,
    /// Batches trained so far, over the run.
    pub step: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneGrant {
    pub lease: u64,
    pub lane: u32,
    pub unit: u32,
    pub position: Option<String>,
    pub samples: u64,
    pub batches: u64,
    /// The last batch of this unit is the last one of the lane: servers do not wait for the lane after it.
    pub is_last_unit: bool,
    /// The batch of this round is in already: go on with the next round.
    pub is_committed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DutyName {
    /// Input: metrics of the pass. Output: a [`Decision`].
    Decide,
    /// Input: number of a committed snapshot. Output: anything, kept for the summary.
    Publish,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    Output { output: Value },
    Failure { words: String },
}

/// Output of a duty `decide`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The run ends after this pass.
    pub stop: bool,
    /// Given to all trainers with their leases of the next pass, as it is.
    pub schedule: Option<String>,
    /// Given to all servers at the start of the next pass, as it is.
    pub adjust: Option<String>,
}

/// What a trainer that comes has to take as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The data as it was cut when the run began.
    pub units: Vec<Unit>,
    pub passes: Vec<Pass>,
    /// Folder of the snapshots, where the coordinator has it.
    pub snapshots: String,
    /// How often the coordinator wants to hear of it.
    pub heartbeat_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    pub exit_code: i32,
    pub words: String,
    pub passes: Vec<PassSummary>,
    pub samples: u64,
    pub batches: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassSummary {
    pub pass: u32,
    pub samples: u64,
    pub batches: u64,
    /// From the first lease of the pass to its last batch.
    #[serde(default)]
    pub seconds: f64,
    pub train: Value,
    pub validation: Value,
    /// That were passed over in training.
    #[serde(default)]
    pub bad_lines: u64,
    /// Slots that have not occurred in any sample of the pass.
    #[serde(default)]
    pub absent: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainerStatistics {
    pub samples_per_s: f64,
    /// Trained by this process.
    #[serde(default)]
    pub samples: u64,
    #[serde(default)]
    pub batches: u64,
    #[serde(default)]
    pub bytes_sent: u64,
    #[serde(default)]
    pub bytes_received: u64,
    /// Share of its time by stage, for those who ask why it is slow.
    pub shares: std::collections::BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerStatistics {
    pub rows: u64,
    /// Of rows, their index and their copies for a snapshot.
    pub bytes: u64,
    /// The memory budget; 0: none.
    pub max_bytes: u64,
    /// Over the last minute; less than nothing where rows went.
    pub rows_growth_per_s: f64,
    pub bytes_growth_per_s: f64,
    /// Since the process was started.
    pub pulls: u64,
    pub pushes: u64,
    pub pulled_rows: u64,
    pub pushed_rows: u64,
    /// Over the last seconds.
    pub pulls_per_s: f64,
    pub pushes_per_s: f64,
    pub pulled_rows_per_s: f64,
    pub pushed_rows_per_s: f64,
    /// Updates between the reading of rows and the update made with them, on average over the last seconds.
    pub staleness_steps: f64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Of both, through shared memory.
    pub bytes_shared: u64,
    pub evicted_rows: u64,
    /// Parts of snapshots.
    pub snapshots_written: u64,
    pub snapshots_failed: u64,
    /// Updates of the run.
    pub step: u64,
    pub epoch: u64,
}

/// Room that a server has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relief {
    /// Rows evicted by the rules of their tables.
    pub by_rule: u64,
    /// Rows evicted for having the lowest score by shows and clicks.
    pub by_score: u64,
    /// Rows evicted for being the ones not updated for longest, where their table has no scores.
    pub by_age: u64,
    /// What is left.
    pub rows: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Be server `index` of `route` in `epoch`: drop everything, pushes that are held as well, read the rows of the own buckets and the own
    /// dense slice from `snapshot` (none: start empty), take `order`. Frames of other epochs are refused from now on.
    Load {
        job: Box<Job>,
        index: u32,
        epoch: u64,
        route: Vec<u16>,
        snapshot: Option<SnapshotFiles>,
        metrics: Option<String>,
        order: Order,
    },
    /// A stage begins, or (with a higher epoch) all leases are void: pushes that are held and rounds that are not
    /// complete are dropped. Parameters stay.
    Begin {
        epoch: u64,
        order: Order,
    },
    /// What is there of these incarnations? From now on their frames of this epoch are refused, commits as well:
    /// the answer must not change until `settle`.
    SettleQuery {
        incarnations: Vec<u64>,
    },
    /// Apply what is held with a number up to this, drop what lies beyond.
    Settle {
        up_to: Vec<UpTo>,
    },
    /// Keep what is there at this moment as snapshot `snapshot`; increments hold what has changed since `base` was
    /// frozen. Instant; nothing is written yet.
    Freeze {
        snapshot: u64,
        base: Option<u64>,
    },
    /// Write the frozen snapshot; answered when it is durable.
    Write {
        snapshot: u64,
    },
    /// These snapshots are needed. Files and frozen states of others may go, but only of those that are older than the
    /// last one here: a younger one is on its way to be committed.
    Retain {
        snapshots: Vec<u64>,
    },
    /// This snapshot has failed and will never be committed: what is frozen and written of it goes.
    Discard {
        snapshot: u64,
    },
    /// Evict rows by the policy of the tables. Once for each fence.
    Evict {
        fence: u64,
    },
    /// Evict rows until there is room in the memory budget, where there is none.
    Relieve {},
    /// The metrics of the stage that has ended. To server 0 only.
    Report {},
    /// Buckets are going to move: read those that `route` gives to `index` and that are not here yet from `snapshot`, beside
    /// what is served in `epoch`; a server that is in another one serves nothing.
    Prepare {
        job: Box<Job>,
        index: u32,
        epoch: u64,
        route: Vec<u16>,
        snapshot: SnapshotFiles,
    },
    /// Serve by this route: complete what was prepared with the layers of `snapshot` that came after it, drop the buckets
    /// that have gone, read the dense slice again.
    Move {
        index: u32,
        epoch: u64,
        route: Vec<u16>,
        snapshot: SnapshotFiles,
        order: Order,
    },
    Ping {},
    /// The run is over for this server.
    Stop {
        exit_code: i32,
        words: String,
    },
}

/// What servers need to know of the stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub pass: u32,
    pub is_validation: bool,
    /// The next round of `sync`, and the lanes that have data left.
    pub round: u64,
    pub lanes: Vec<u32>,
    /// The metrics start anew.
    pub is_new_stage: bool,
    pub adjust: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    Done {},
    /// What a server holds now that it has loaded or moved: its next heartbeat may be a second away.
    Holding {
        rows: u64,
        bytes: u64,
    },
    Settling {
        pushes: Vec<Push>,
    },
    Frozen {
        step: u64,
        /// Of server 0: the state of the metrics, as it wants to have it back in `load`.
        metrics: Option<String>,
    },
    Written {
        files: Vec<PartFile>,
    },
    Report {
        metrics: Value,
    },
    /// Rows were evicted to make room.
    Relieved {
        relief: Relief,
    },
    /// A file of the snapshot is not what was written: to ask again would change nothing.
    Damaged {
        words: String,
    },
}

/// The pushes of one incarnation on one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Push {
    pub incarnation: u64,
    /// The highest number such that it and all after `applied` are held; nothing: none is held. In `sync` a push
    /// counts as applied once its commit has come, though its round may be incomplete.
    pub held: Option<u64>,
    /// The last one that was applied; 0: none.
    pub applied: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpTo {
    pub incarnation: u64,
    pub sequence: u64,
}

/// All files of a committed snapshot: a full layer and the increments on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotFiles {
    pub snapshot: u64,
    pub layers: Vec<Layer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    pub snapshot: u64,
    pub is_full: bool,
    pub files: Vec<PartFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartFile {
    /// Index of the server that wrote it.
    pub server: u32,
    pub name: String,
    pub digest: String,
    pub bytes: u64,
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_tagged_by_its_kind() {
        let request = Request::Lease {
            incarnation: 7,
            epoch: 1,
            holding: vec![3],
        };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"lease","incarnation":7,"epoch":1,"holding":[3]}"#
        );
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
    }

    #[test]
    fn an_unknown_field_is_refused_even_where_there_are_none() {
        assert!(serde_json::from_str::<Request>(r#"{"kind":"status"}"#).is_ok());
        assert!(serde_json::from_str::<Request>(r#"{"kind":"status","x":1}"#).is_err());
        assert!(serde_json::from_str::<Request>(r#"{"kind":"leave","incarnation":1,"x":1}"#).is_err());
    }
}
