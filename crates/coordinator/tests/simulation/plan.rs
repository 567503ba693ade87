//! The job of a simulated run, and what must have been trained when it is over.

use clickmill_coordinator::{Job, LedgerRecord, Pass, Stage, Strategy, Unit};
use serde_json::json;

use crate::random::Random;

/// A batch: pass, unit, number within the unit.
pub(crate) type Batch = (u32, u32, u64);

/// What a server has applied: round, lane and batch. Outside of `sync` round and lane are 0.
pub(crate) type Applied = (u64, u32, Batch);

pub(crate) struct Plan {
    pub(crate) job: Job,
    /// Batches of each unit. 0: the unit is empty and ends with a push of nothing.
    pub(crate) batches: Vec<u64>,
}

impl Plan {
    pub(crate) fn new(strategy: Strategy, random: &mut Random) -> Self {
        let (train, validation) = (random.between(1, 9) as u32, random.between(0, 2) as u32);
        let num_units = train + validation;
        let batches: Vec<u64> = (0..num_units)
            .map(|_| random.between(0, 8) * random.between(0, 6))
            .collect();
        let pass = |random: &mut Random| {
            let turn = random.between(0, u64::from(train) - 1) as u32;
            let units = (0..train).map(|unit| (unit + turn) % train);
            Pass {
                train: units.collect(),
                validation: (train..num_units).collect(),
            }
        };
        let num_passes = random.between(1, 3);
        let job = Job {
            strategy,
            lanes: random.between(1, 4) as u32,
            trainers: random.between(1, 3) as u32,
            units: (0..num_units)
                .map(|unit| Unit {
                    name: format!("part-{unit}"),
                    input: json!(unit),
                })
                .collect(),
            passes: (0..num_passes).map(|_| pass(random)).collect(),
            tables: json!([]),
            dense: json!(null),
            metrics: json!([]),
            evicts: random.chance(50),
            decides: random.chance(70),
            publishes: random.chance(70),
            snapshot_interval_ms: random.between(0, 8) * 1000,
            full_every: random.between(1, 4) as u32,
            agreement: json!(null),
        };
        Self { job, batches }
    }

    /// Samples of a batch: any number will do, as long as it depends on the batch alone.
    pub(crate) fn samples(&self, unit: u32, number: u64) -> u64 {
        if self.batches[unit as usize] == 0 {
            0
        } else {
            10 + u64::from(unit) + number
        }
    }

    /// The pushes of a unit: an empty one has one, of nothing.
    pub(crate) fn pushes(&self, unit: u32) -> u64 {
        self.batches[unit as usize].max(1)
    }

    fn all_of(&self, pass: u32, units: &[u32]) -> Vec<Batch> {
        units
            .iter()
            .flat_map(|unit| (0..self.pushes(*unit)).map(move |number| (pass, *unit, number)))
            .collect()
    }

    /// All that the run trains.
    pub(crate) fn everything(&self) -> Vec<Batch> {
        let passes = self.job.passes.iter().enumerate();
        sorted(
            passes
                .flat_map(|(pass, plan)| self.all_of(pass as u32, &plan.train))
                .collect(),
        )
    }

    pub(crate) fn validation(&self, pass: u32) -> Vec<Batch> {
        sorted(self.all_of(pass, &self.job.passes[pass as usize].validation))
    }

    pub(crate) fn samples_of(&self, batches: &[Batch]) -> u64 {
        batches
            .iter()
            .map(|(_, unit, number)| self.samples(*unit, *number))
            .sum()
    }

    /// What a ledger says has been trained.
    pub(crate) fn trained(&self, ledger: &LedgerRecord) -> Vec<Batch> {
        let mut trained = Vec::new();
        for (pass, plan) in self.job.passes.iter().enumerate().take(ledger.pass as usize + 1) {
            let pass = pass as u32;
            if pass < ledger.pass || ledger.stage != Stage::Train {
                trained.extend(self.all_of(pass, &plan.train));
            } else {
                for unit in &ledger.units {
                    trained.extend((0..unit.batches).map(|number| (pass, unit.unit, number)));
                }
            }
        }
        sorted(trained)
    }

    /// What `sync` applies, in its order, when nothing ever fails.
    pub(crate) fn undisturbed(&self) -> Vec<Applied> {
        let (mut applied, mut round) = (Vec::new(), 0);
        for (pass, plan) in self.job.passes.iter().enumerate() {
            let lane = |lane: u32| {
                let own = plan
                    .train
                    .iter()
                    .skip(lane as usize)
                    .step_by(self.job.lanes as usize);
                self.all_of(pass as u32, &own.copied().collect::<Vec<_>>())
            };
            let lanes: Vec<Vec<Batch>> = (0..self.job.lanes).map(lane).collect();
            for place in 0..lanes.iter().map(Vec::len).max().unwrap_or(0) {
                let brought = lanes
                    .iter()
                    .enumerate()
                    .filter_map(|(lane, own)| Some((lane, *own.get(place)?)));
                applied.extend(brought.map(|(lane, batch)| (round, lane as u32, batch)));
                round += 1;
            }
        }
        applied
    }
}

pub(crate) fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list
}

pub(crate) fn batches_of(applied: &[Applied]) -> Vec<Batch> {
    sorted(applied.iter().map(|(_, _, batch)| *batch).collect())
}
