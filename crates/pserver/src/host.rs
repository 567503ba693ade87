//! What the coordinator tells a server to do.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use clickmill_coordinator::{
    Answer, Command, Job, MetricsStatus, NUM_BUCKETS, Order, Push, ServerStatistics, SnapshotFiles,
};
use clickmill_net::Traffic;
use clickmill_table::TableConfig;
use clickmill_types::sign::bucket;

use crate::Error;
use crate::desk::Desk;
use crate::engine::Engine;
use crate::job::{Contents, states_of, texts_of};
use crate::life::Life;
use crate::memory::size;
use crate::metrics::Metrics;
use crate::model::Model;
use crate::moving::Prepared;
use crate::rates::{Rates, Sample};
use crate::rounds::Rounds;
use crate::snapshot::{self, Frozen};

pub(crate) struct Host {
    pub engine: Engine,
    pub desk: Desk,
    /// Where snapshots lie.
    pub(crate) folder: PathBuf,
    /// Bytes of rows; none: as many as there are.
    pub(crate) memory_budget: Option<u64>,
    state: Mutex<HostState>,
    rates: Mutex<Rates>,
    /// The fence that the coordinator wanted when it was heard of last.
    pub(crate) told_fence: AtomicU64,
    /// That it holds; known without waiting for whoever moves them.
    pub(crate) num_buckets: AtomicU64,
}

#[derive(Default)]
pub(crate) struct HostState {
    pub contents: Option<Contents>,
    pub index: u32,
    pub route: Vec<u16>,
    pub frozen: BTreeMap<u64, Frozen>,
    /// Ids of the tables' saves of each snapshot that was written by this life.
    pub saves: BTreeMap<u64, Vec<String>>,
    /// Rows of buckets that are going to come here.
    pub prepared: Option<Prepared>,
    /// The last snapshot that has failed; it may be being written still.
    discarded: Option<u64>,
    /// Fences at which rows were evicted.
    evicted: Option<u64>,
    pub is_validation: bool,
}

/// The metrics as they are kept in a snapshot.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMetrics {
    is_validation: bool,
    states: BTreeMap<String, String>,
}

impl Host {
    pub(crate) fn new(folder: PathBuf, memory_budget: Option<u64>) -> Self {
        Self {
            engine: Engine::default(),
            desk: Desk::default(),
            folder,
            memory_budget,
            state: Mutex::default(),
            rates: Mutex::default(),
            told_fence: AtomicU64::new(0),
            num_buckets: AtomicU64::new(0),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how things are now, for those who ask how fast they change. Once a second, with the heartbeat.
    pub(crate) fn note(&self) {
        let (rows, bytes) = self.engine.with(|life| Ok(size(life))).unwrap_or_default();
        let sample = Sample {
            at: Instant::now(),
            counts: self.engine.counters.counts(),
            rows,
            bytes,
        };
        self.rates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .note(sample);
    }

    pub(crate) fn statistics(&self, traffic: &Traffic) -> ServerStatistics {
        let now = self
            .engine
            .with(|life| Ok((size(life), life.model.step, life.epoch)));
        let ((rows, bytes), step, epoch) = now.unwrap_or_default();
        let counts = self.engine.counters.counts();
        let speeds = self.rates.lock().unwrap_or_else(PoisonError::into_inner).speeds();
        ServerStatistics {
            rows,
            bytes,
            max_bytes: self.memory_budget.unwrap_or(0),
            rows_growth_per_s: speeds.rows,
            bytes_growth_per_s: speeds.bytes,
            pulls: counts.pulls,
            pushes: counts.pushes,
            pulled_rows: counts.pulled_rows,
            pushed_rows: counts.pushed_rows,
            pulls_per_s: speeds.pulls,
            pushes_per_s: speeds.pushes,
            pulled_rows_per_s: speeds.pulled_rows,
            pushed_rows_per_s: speeds.pushed_rows,
            staleness_steps: speeds.staleness,
            bytes_sent: traffic.sent.load(Ordering::Relaxed),
            bytes_received: traffic.received.load(Ordering::Relaxed),
            bytes_shared: traffic.shared.load(Ordering::Relaxed),
            evicted_rows: counts.evicted_rows,
            snapshots_written: counts.snapshots_written,
            snapshots_failed: counts.snapshots_failed,
            step,
            epoch,
        }
    }

    /// Obeys; the desk sees to it that a command is done once.
    pub(crate) fn obey(&self, command: Command) -> Result<Answer, Error> {
        match command {
            Command::Load {
                job,
                index,
                epoch,
                route,
                snapshot,
                metrics,
                order,
            } => {
                self.load(
                    &job,
                    index,
                    epoch,
                    route,
                    snapshot.as_ref(),
                    metrics.as_deref(),
                    &order,
                )?;
                return self.holding();
            }
            Command::Begin { epoch, order } => self.begin(epoch, &order)?,
            Command::SettleQuery { incarnations } => return self.settle_query(&incarnations),
            Command::Settle { up_to } => {
                for each in up_to {
                    self.engine.settle(each.incarnation, each.sequence)?;
                }
            }
            Command::Freeze { snapshot, base } => return self.freeze(snapshot, base),
            Command::Write { snapshot } => return self.write(snapshot),
            Command::Retain { snapshots } => self.retain(&snapshots),
            Command::Discard { snapshot } => self.discard(snapshot),
            Command::Evict { fence } => self.evict(fence)?,
            Command::Relieve {} => return self.relieve(),
            Command::Report {} => return self.report(),
            Command::Prepare {
                job,
                index,
                epoch,
                route,
                snapshot,
            } => self.prepare(&job, index, epoch, route, &snapshot)?,
            Command::Move {
                index,
                epoch,
                route,
                snapshot,
                order,
            } => {
                self.move_buckets(index, epoch, route, &snapshot, &order)?;
                return self.holding();
            }
            Command::Ping {} | Command::Stop { .. } => {}
        }
        Ok(Answer::Done {})
    }

    fn holding(&self) -> Result<Answer, Error> {
        let (rows, bytes) = self.engine.with(|life| Ok(size(life)))?;
        Ok(Answer::Holding { rows, bytes })
    }

    #[expect(clippy::too_many_arguments, reason = "these are the fields of one command")]
    fn load(
        &self,
        job: &Job,
        index: u32,
        epoch: u64,
        route: Vec<u16>,
        snapshot: Option<&SnapshotFiles>,
        metrics: Option<&str>,
        order: &Order,
    ) -> Result<(), Error> {
        let contents = Contents::of(job)?;
        let num_servers = check_route(&route, index)?;
        let bounds = bounds(contents.dense.size, num_servers);
        let (begin, end) = (bounds[index as usize], bounds[index as usize + 1]);
        let configs = contents.configs();
        let rule = contents.dense.rule;
        let model = match snapshot {
            None => contents.start(|sign| owner(&route, sign) == index, begin, end)?,
            Some(files) => {
                let loaded =
                    snapshot::load(&self.folder, files, &configs, |sign| owner(&route, sign) == index)?;
                let dense = loaded.dense.slice(rule, begin, end)?;
                Model::with_tables(loaded.tables, dense, loaded.dense.step)
            }
        };
        let stored: Option<StoredMetrics> = metrics
            .map(|text| {
                serde_json::from_str(text)
                    .map_err(|error| Error::protocol(format!("metrics of a snapshot: {error}")))
            })
            .transpose()?;
        let mut state = self.lock();
        let is_validation = order.is_validation;
        let states = match stored {
            Some(stored) if !order.is_new_stage && stored.is_validation == is_validation => stored.states,
            _ => contents.empty_metrics(is_validation),
        };
        let life = Life {
            epoch,
            model,
            together: contents.together,
            is_validation,
            rounds: Rounds::new(order.round, order.lanes.iter().copied(), 0),
            metrics: Metrics::from_states(&states_of(&states)?)?,
            dead: HashSet::new(),
        };
        self.engine.begin_life(life);
        self.count_buckets(&route, index);
        *state = HostState {
            contents: Some(contents),
            index,
            route,
            is_validation,
            ..HostState::default()
        };
        Ok(())
    }

    /// It serves by this route from now on.
    pub(crate) fn count_buckets(&self, route: &[u16], index: u32) {
        let own = route.iter().filter(|&&server| u32::from(server) == index).count();
        self.num_buckets.store(own as u64, Ordering::Relaxed);
    }

    fn begin(&self, epoch: u64, order: &Order) -> Result<(), Error> {
        let mut state = self.lock();
        let contents = state.contents.as_ref().ok_or_else(not_loaded)?;
        let fresh = order
            .is_new_stage
            .then(|| {
                Metrics::from_states(&states_of(&contents.empty_metrics(order.is_validation))?)
                    .map_err(Error::from)
            })
            .transpose()?;
        let restarting: Vec<usize> = if order.is_new_stage && !order.is_validation && order.pass > 0 {
            (0..contents.tables.len())
                .filter(|&number| contents.tables[number].restarts)
                .collect()
        } else {
            Vec::new()
        };
        self.engine.forget_sessions();
        self.engine.with(|life| {
            if epoch != life.epoch {
                // All leases are void: who was only asked what it holds may go on, who is dead knows no new epoch.
                life.close_round()?;
                life.dead.clear();
            }
            life.epoch = epoch;
            life.is_validation = order.is_validation;
            life.rounds = Rounds::new(order.round, order.lanes.iter().copied(), life.rounds.fence);
            if let Some(metrics) = fresh {
                life.metrics = metrics;
            }
            restarting
                .iter()
                .try_for_each(|&number| life.model.restart_table(number))
        })?;
        if !restarting.is_empty() {
            // A difference to a table that is gone would mean nothing.
            state.saves.clear();
        }
        state.is_validation = order.is_validation;
        self.engine.forget_sessions();
        Ok(())
    }

    fn settle_query(&self, incarnations: &[u64]) -> Result<Answer, Error> {
        let pushes = incarnations
            .iter()
            .map(|&incarnation| {
                let (held, applied) = self.engine.settle_query(incarnation)?;
                Ok(Push {
                    incarnation,
                    held,
                    applied,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Answer::Settling { pushes })
    }

    fn freeze(&self, snapshot: u64, base: Option<u64>) -> Result<Answer, Error> {
        let mut state = self.lock();
        let (index, is_validation) = (state.index, state.is_validation);
        let bases = base
            .map(|base| {
                let found = state.saves.get(&base);
                found
                    .cloned()
                    .ok_or_else(|| Error::protocol(format!("there is no snapshot {base} here to build on")))
            })
            .transpose()?;
        let is_known = state.frozen.contains_key(&snapshot);
        // One at a time: what is frozen of another was given up, and would keep tables from being frozen again.
        state.frozen.retain(|&number, _| number == snapshot);
        let (frozen, step, stored) = self.engine.with(|life| {
            let frozen = if is_known {
                None
            } else {
                Some(Frozen::new(
                    life,
                    &self.folder,
                    snapshot,
                    index,
                    bases.as_deref(),
                )?)
            };
            let stored = StoredMetrics {
                is_validation,
                states: texts_of(&life.metrics.states()),
            };
            Ok((frozen, life.model.step, stored))
        })?;
        if let Some(frozen) = frozen {
            state.frozen.insert(snapshot, frozen);
        }
        let metrics = serde_json::to_string(&stored).expect("metrics are texts");
        Ok(Answer::Frozen {
            step,
            metrics: (index == 0).then_some(metrics),
        })
    }

    fn write(&self, snapshot: u64) -> Result<Answer, Error> {
        let frozen = self.lock().frozen.remove(&snapshot);
        let frozen =
            frozen.ok_or_else(|| Error::protocol(format!("snapshot {snapshot} is not frozen here")))?;
        let index = frozen.index;
        let counters = &self.engine.counters;
        let (files, ids) = frozen.write(&self.engine, &self.folder).inspect_err(|_| {
            counters.snapshots_failed.fetch_add(1, Ordering::Relaxed);
            // Whoever has given it up meanwhile found files of this server, and left the folder.
            snapshot::remove(&self.folder, snapshot, Some(index));
        })?;
        counters.snapshots_written.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        if state.discarded == Some(snapshot) {
            snapshot::remove(&self.folder, snapshot, Some(index));
            return Err(Error::protocol(format!(
                "snapshot {snapshot} was given up while it was written"
            )));
        }
        state.saves.insert(snapshot, ids);
        Ok(Answer::Written { files })
    }

    /// The snapshot has failed, here or elsewhere. What is being written goes when it is written.
    fn discard(&self, snapshot: u64) {
        let mut state = self.lock();
        state.discarded = Some(snapshot);
        state.frozen.remove(&snapshot);
        state.saves.remove(&snapshot);
        snapshot::remove(&self.folder, snapshot, Some(state.index));
    }

    /// Files of snapshots that nobody needs go; every server removes its own. A younger one than all of these
    /// may be on its way.
    fn retain(&self, snapshots: &[u64]) {
        let last = snapshots.iter().max().copied().unwrap_or(0);
        let is_needed = |snapshot: u64| snapshot > last || snapshots.contains(&snapshot);
        let mut state = self.lock();
        state.frozen.retain(|&snapshot, _| is_needed(snapshot));
        state.saves.retain(|&snapshot, _| is_needed(snapshot));
        let index = state.index;
        drop(state);
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.strip_prefix("snapshot-")?.parse().ok());
            if let Some(number) = number.filter(|number| !is_needed(*number)) {
                // Servers that are gone remove nothing.
                snapshot::remove(&self.folder, number, (index > 0).then_some(index));
            }
        }
    }

    fn evict(&self, fence: u64) -> Result<(), Error> {
        let mut state = self.lock();
        if state.evicted == Some(fence) {
            return Ok(());
        }
        self.engine.forget_sessions();
        self.engine.with(|life| {
            let evicted = life.model.tables.iter_mut().try_fold(0, |sum, table| {
                let report = table.evict()?;
                Ok::<_, Error>(sum + report.rows_before - report.rows)
            })?;
            let counters = &self.engine.counters;
            counters.evicted_rows.fetch_add(evicted, Ordering::Relaxed);
            Ok(())
        })?;
        state.evicted = Some(fence);
        Ok(())
    }

    /// The metrics as they are now, and the updates so far.
    pub(crate) fn metrics(&self) -> Result<MetricsStatus, Error> {
        let is_validation = self.lock().is_validation;
        self.engine.with(|life| {
            Ok(MetricsStatus {
                step: life.model.step,
                is_validation,
                numbers: life.metrics.numbers(),
            })
        })
    }

    fn report(&self) -> Result<Answer, Error> {
        let numbers = self.engine.with(|life| Ok(life.metrics.numbers()))?;
        let metrics = serde_json::to_value(numbers).expect("they are finite");
        Ok(Answer::Report { metrics })
    }
}

impl Contents {
    pub(crate) fn configs(&self) -> Vec<TableConfig> {
        self.tables.iter().map(|table| table.config.clone()).collect()
    }

    pub(crate) fn empty_metrics(&self, is_validation: bool) -> BTreeMap<String, String> {
        let sets = &self.metrics;
        if is_validation {
            sets.validation.clone()
        } else {
            sets.train.clone()
        }
    }
}

/// Slices of the dense part by server; trainers cut it in the same way.
pub(crate) fn bounds(num_dense: usize, num_servers: usize) -> Vec<usize> {
    clickmill_wire::dense_bounds(num_dense, num_servers)
}

pub(crate) fn owner(route: &[u16], sign: u64) -> u32 {
    u32::from(route[bucket(sign, clickmill_wire::BUCKET_BITS)])
}

pub(crate) fn check_route(route: &[u16], index: u32) -> Result<usize, Error> {
    let num_servers = route.iter().max().map_or(0, |&last| usize::from(last) + 1);
    if route.len() == NUM_BUCKETS && (index as usize) < num_servers {
        return Ok(num_servers);
    }
    Err(Error::protocol(format!(
        "a route of {} buckets over {num_servers} servers has no place for server {index}",
        route.len()
    )))
}

pub(crate) fn not_loaded() -> Error {
    Error::NotReady {
        reason: "this server has not been told what to hold yet".to_owned(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use std::path::Path;

    use super::*;

    /// A server that holds nothing, with everything that goes with it.
    fn loaded(folder: &Path) -> Host {
        let job = serde_json::json!({
            "strategy": "async", "lanes": 1, "trainers": 1, "units": [], "passes": [], "tables": [],
            "dense": {"rule": {"kind": "sgd"}, "size": 0, "initial": ""}, "metrics": {"train": {}, "validation": {}},
            "evicts": false, "decides": false, "publishes": false, "snapshot_interval_ms": 0, "full_every": 1,
            "agreement": {}
        });
        let host = Host::new(folder.to_owned(), None);
        let load = Command::Load {
            job: Box::new(serde_json::from_value(job).unwrap()),
            index: 0,
            epoch: 1,
            route: vec![0; NUM_BUCKETS],
            snapshot: None,
            metrics: None,
            order: Order {
                pass: 0,
                is_validation: false,
                round: 0,
                lanes: Vec::new(),
                is_new_stage: true,
                adjust: None,
            },
        };
        host.obey(load).unwrap();
        host
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn what_was_frozen_or_written_goes_when_the_snapshot_has_failed() {
        let folder = tempfile::tempdir().unwrap();
        let host = loaded(folder.path());
        for is_written in [false, true] {
            host.obey(Command::Freeze {
                snapshot: 2,
                base: None,
            })
            .unwrap();
            if is_written {
                host.obey(Command::Write { snapshot: 2 }).unwrap();
            }
            assert_eq!(names(folder.path()), ["snapshot-00000002"]);
            host.obey(Command::Discard { snapshot: 2 }).unwrap();
            assert_eq!(names(folder.path()), [""; 0]);
            host.lock().discarded = None;
        }
        host.obey(Command::Freeze {
            snapshot: 3,
            base: None,
        })
        .unwrap();
        host.lock().discarded = Some(3);
        assert!(
            host.obey(Command::Write { snapshot: 3 }).is_err(),
            "given up meanwhile"
        );
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
