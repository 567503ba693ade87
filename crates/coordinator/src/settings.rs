//! How long the coordinator waits, and for how many servers.

use std::time::Duration;

/// Every wait has a deadline; these are they.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Servers that the cluster was started with.
    pub servers: u32,
    /// Folder of the snapshots, as trainers that read them are told.
    pub snapshots: String,
    /// A member that was not heard of for so long is dead.
    pub heartbeat_deadline: Duration,
    /// A member whose connection was closed and that is not back after so long is dead.
    pub closed_deadline: Duration,
    /// For the first trainer and all servers, at the start.
    pub start_deadline: Duration,
    /// For a lost server, and for any trainer when there is none. Then the run ends with an error.
    pub wait_deadline: Duration,
    /// For the expected number of trainers, or of servers where the run was scaled before; then those that are there begin.
    pub gather_deadline: Duration,
    /// A trainer that has not come to a fence after so long is dead.
    pub fence_deadline: Duration,
    /// A trainer that has brought no batch of its lease for so long is dead.
    pub lease_deadline: Duration,
    /// A trainer that has not done its duty after so long is dead.
    pub duty_deadline: Duration,
    /// A server that has not answered a command for so long is dead.
    pub call_deadline: Duration,
    /// The same for commands that read files.
    pub load_deadline: Duration,
    /// A snapshot whose files are not written after so long has failed.
    pub write_deadline: Duration,
    /// After a failure: the next attempt of a commit file at the start or of the last snapshot of a run.
    pub retry_interval: Duration,
    /// For members to go when the run has ended.
    pub end_deadline: Duration,
    /// An answer that must wait is `wait` after so long.
    pub poll_interval: Duration,
    /// How often a duty, or the last snapshot of a run, may fail.
    pub max_attempts: u32,
}

impl Settings {
    /// How often members say that they live: a beat or two may be late.
    pub fn heartbeat_interval(&self) -> Duration {
        (self.heartbeat_deadline / 4).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }
}

impl Default for Settings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            servers: 1,
            snapshots: String::new(),
            heartbeat_deadline: seconds(30),
            closed_deadline: seconds(5),
            start_deadline: seconds(1800),
            wait_deadline: seconds(300),
            gather_deadline: seconds(10),
            fence_deadline: seconds(600),
            lease_deadline: seconds(600),
            duty_deadline: seconds(3600),
            call_deadline: seconds(60),
            load_deadline: seconds(1800),
            write_deadline: seconds(1800),
            retry_interval: seconds(10),
            end_deadline: seconds(30),
            poll_interval: seconds(3),
            max_attempts: 3,
        }
    }
}
