//! What `clickmill ps status` shows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::coordinator::{Coordinator, Phase};
use crate::duties::Duty;
use crate::job::Strategy;
use crate::ledger::Stage;
use crate::members::{Server, Trainer};
use crate::memory::{full_in_s, memory_share};
use crate::message::{ServerStatistics, TrainerStatistics};
use crate::waits::WaitStatus;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// `starting`, `gathering`, `loading`, `running`, `ending` or `stopped`.
    pub phase: String,
    pub epoch: u64,
    /// Whom all wait for, since when and for how long still; empty when nobody waits.
    pub waiting: Vec<WaitStatus>,
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
    /// Servers that have to come before buckets move; empty when these move already.
    pub scaling_waits_for: Vec<u32>,
    /// Why the last attempt to scale failed; nothing when it did not.
    pub scaling_failure: Option<String>,
    /// Servers that hold buckets.
    pub num_servers: u32,
    pub strategy: Option<Strategy>,
    pub servers: Vec<ServerStatus>,
    pub trainers: Vec<TrainerStatus>,
    pub duties: Vec<String>,
    /// Put in by the process that counts them; nothing before there is a job.
    #[serde(default)]
    pub metrics: Option<MetricsStatus>,
}

/// The global metrics of the stage under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsStatus {
    /// Updates so far, over the run.
    pub step: u64,
    pub is_validation: bool,
    /// Those that are finite, by name.
    pub numbers: BTreeMap<String, f64>,
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
    /// Of the memory budget; none where there is no budget.
    pub memory_share: Option<f64>,
    /// When the budget is full, at the growth of the last minute; none where it is not filling.
    pub full_in_s: Option<u64>,
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

impl Coordinator {
    pub fn status(&self) -> Status {
        let run = self.run.as_ref();
        let (samples, batches) = run.map_or((0, 0), |run| run.ledger.trained());
        Status {
            phase: self.phase_name().to_owned(),
            epoch: self.epoch,
            waiting: self.waits().iter().map(|wait| wait.status(self.now)).collect(),
            pass: run.map_or(0, |run| run.ledger.pass()),
            num_passes: run.map_or(0, |run| run.job.passes.len() as u32),
            stage: run.map(|run| run.ledger.stage()),
            units_done: run.map_or(0, |run| run.ledger.num_done() as u64),
            units: run.map_or(0, |run| run.ledger.record().units.len() as u64),
            samples,
            batches,
            fence: self.fence.passed(),
            wanted_fence: (!self.fence.is_open()).then_some(self.fence.number),
            snapshot: self.snapshot_status(),
            scaling_to: self.scaling.as_ref().map(|scaling| scaling.next.servers),
            scaling_waits_for: self.awaited_for_scaling(),
            scaling_failure: self.scaling_failure.clone(),
            num_servers: self.route.servers,
            strategy: run.map(|run| run.job.strategy),
            servers: self.server_statuses(),
            trainers: self.trainer_statuses(),
            duties: run.map_or_else(Vec::new, |run| run.duties.open().iter().map(Duty::name).collect()),
            metrics: None,
        }
    }

    fn phase_name(&self) -> &'static str {
        match &self.phase {
            Phase::Starting { .. } => "starting",
            Phase::Gathering { .. } => "gathering",
            Phase::Loading { .. } => "loading",
            Phase::Running { .. } => "running",
            Phase::Ending(_) => "ending",
            Phase::Stopped => "stopped",
        }
    }

    fn snapshot_status(&self) -> SnapshotStatus {
        let files = self.committed.snapshot.as_ref();
        let layers = files.iter().flat_map(|files| &files.layers);
        SnapshotStatus {
            committed: files.map(|files| files.snapshot),
            bytes: layers.flat_map(|layer| &layer.files).map(|file| file.bytes).sum(),
            age_s: self
                .snapshots
                .committed_at
                .map(|at| self.now.saturating_sub(at).as_secs()),
            in_progress: self.snapshots.current.as_ref().map(|current| current.number),
            failure: self.snapshots.failure.clone(),
        }
    }

    fn server_statuses(&self) -> Vec<ServerStatus> {
        let servers = self.members.servers().iter();
        let status = |(index, server): (&u32, &Server)| ServerStatus {
            index: *index,
            address: server.address.clone(),
            is_live: server.lost.is_none(),
            heard_s_ago: self.now.saturating_sub(server.presence.heard).as_secs(),
            buckets: self.route.count(*index) as u64,
            memory_share: memory_share(&server.statistics),
            full_in_s: full_in_s(&server.statistics),
            statistics: server.statistics.clone(),
        };
        servers.map(status).collect()
    }

    fn trainer_statuses(&self) -> Vec<TrainerStatus> {
        let leased = self.run.as_ref().map_or_else(Vec::new, |run| run.ledger.leased());
        let name = |unit: u32| {
            self.run
                .as_ref()
                .map(|run| run.job.units[unit as usize].name.clone())
        };
        let units = |own: u64| {
            leased
                .iter()
                .filter(move |(_, owner)| *owner == own)
                .map(|(unit, _)| *unit)
        };
        let status = |(incarnation, trainer): (&u64, &Trainer)| TrainerStatus {
            trainer: trainer.number,
            name: trainer.name.clone(),
            incarnation: *incarnation,
            heard_s_ago: self.now.saturating_sub(trainer.presence.heard).as_secs(),
            is_parked: trainer.parked.is_some(),
            units: units(*incarnation).filter_map(name).collect(),
            statistics: trainer.statistics.clone(),
        };
        self.members.trainers().iter().map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::calls::Overdue;
    use crate::event::{Action, Event};
    use crate::message::{Answer, Command, Request, RequestId};
    use crate::settings::Settings;

    fn beat(coordinator: &mut Coordinator, epoch: u64, rows: u64) -> (u64, u64) {
        let from = RequestId {
            connection: 1,
            number: 1,
        };
        let statistics = ServerStatistics {
            rows,
            bytes: 100 * rows,
            epoch,
            ..ServerStatistics::default()
        };
        let request = Request::ServerHeartbeat {
            index: 0,
            incarnation: 5,
            statistics,
        };
        coordinator.handle(Event::Request { from, request }, Duration::ZERO);
        shown(coordinator)
    }

    fn shown(coordinator: &Coordinator) -> (u64, u64) {
        let statistics = &coordinator.status().servers[0].statistics;
        (statistics.rows, statistics.bytes)
    }

    #[test]
    fn what_a_server_holds_is_known_as_soon_as_buckets_have_moved() {
        let mut coordinator = Coordinator::new(Settings::default(), None);
        coordinator
            .members
            .register(Some(0), true, "a:1", 5, 1, Duration::ZERO);
        assert_eq!(beat(&mut coordinator, 7, 30), (30, 3000));
        coordinator.epoch = 8;
        let limit = Duration::from_secs(9);
        coordinator.ask_within(&[0], "", limit, Overdue::Failure, |_| Command::Ping {});
        let Some(Action::Call { server, call, .. }) = coordinator.out.pop() else {
            unreachable!("it was just asked")
        };
        let answer = Ok(Answer::Holding {
            rows: 10,
            bytes: 1000,
        });
        coordinator.handle(Event::ServerAnswer { server, call, answer }, Duration::ZERO);
        assert_eq!(shown(&coordinator), (10, 1000));
        let late = beat(&mut coordinator, 7, 30);
        assert_eq!(late, (10, 1000), "it was on its way while buckets moved");
        assert_eq!(beat(&mut coordinator, 8, 12), (12, 1200));
        assert_eq!(beat(&mut coordinator, 0, 0), (0, 0), "it holds nothing any more");
    }
}
