//! The job of a simulated run, and what must have been trained when it is over.

use std::collections::{BTreeMap, BTreeSet};

use clickmill_coordinator::{
    Job, LedgerRecord, Limits, Pass, PassSummary, Reading, Stage, Strategy, Unit, UnitRecord,
};
use serde_json::json;

use crate::random::Random;

/// A batch: pass, unit, number within the unit.
pub(crate) type Batch = (u32, u32, u64);

/// What a server has applied: round, lane and batch. Outside of `sync` round and lane are 0.
pub(crate) type Applied = (u64, u32, Batch);

/// In the place of lane and unit: no batch, but rows were evicted, before the round that is named.
pub(crate) const EVICTED: u32 = u32::MAX;

/// What the reader of a unit sees: another number of bad lines in each.
pub(crate) fn reading(unit: u32) -> Reading {
    Reading {
        bad_lines: u64::from(unit) + 1,
        ..Reading::default()
    }
}

pub(crate) struct Plan {
    pub(crate) job: Job,
    /// Batches of each unit. 0: the unit is empty and ends with a push of nothing.
    pub(crate) batches: Vec<u64>,
}

impl Plan {
    pub(crate) fn new(strategy: Strategy, random: &mut Random) -> Self {
        let (train, validation) = (random.between(1, 9) as u32, random.between(0, 2) as u32);
        let num_units = train + validation;
        let mut batches: Vec<u64> = (0..num_units)
            .map(|_| random.between(0, 8) * random.between(0, 6))
            .collect();
        if batches[..train as usize].iter().all(|count| *count == 0) {
            // A pass without any sample ends the run: there would be nothing to play.
            batches[0] = 1;
        }
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
                    source: String::new(),
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
            evict_every: random.between(1, 12) * u64::from(random.chance(40)),
            publish_every: random.between(1, 12) * u64::from(random.chance(40)),
            max_batches: random.between(1, 40) * u64::from(random.chance(30)),
            max_bad_lines: Limits::default(),
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

    pub(crate) fn validation(&self, pass: u32) -> Vec<Batch> {
        sorted(self.all_of(pass, &self.job.passes[pass as usize].validation))
    }

    pub(crate) fn samples_of(&self, batches: &[Batch]) -> u64 {
        batches
            .iter()
            .map(|(_, unit, number)| self.samples(*unit, *number))
            .sum()
    }

    fn is_empty(&self, unit: u32) -> bool {
        self.batches[unit as usize] == 0
    }

    /// Batches of a list, as passes count them; those of `pass` alone.
    pub(crate) fn count(&self, batches: &[Batch], pass: u32) -> u64 {
        let own = batches.iter().filter(|(own, ..)| *own == pass);
        own.filter(|(_, unit, _)| !self.is_empty(*unit)).count() as u64
    }

    /// The batches of a pass when no number of them ends it; none: it may end before its data.
    fn whole(&self, pass: u32) -> Option<Vec<Batch>> {
        let all = self.all_of(pass, &self.job.passes[pass as usize].train);
        let max = self.job.max_batches;
        (max == 0 || self.count(&all, pass) < max).then_some(all)
    }

    /// What was trained is what the ledger says, and nothing twice.
    pub(crate) fn check_trained(&self, ledger: &LedgerRecord, trained: &[Batch]) {
        for pass in 0..self.job.passes.len() as u32 {
            let own: Vec<Batch> = trained.iter().filter(|batch| batch.0 == pass).copied().collect();
            let is_open = pass == ledger.pass && ledger.stage == Stage::Train;
            let expected = if pass > ledger.pass {
                Some(Vec::new())
            } else if is_open {
                let of_unit = |unit: &UnitRecord| {
                    let pushes = if unit.is_done {
                        self.pushes(unit.unit)
                    } else {
                        unit.batches
                    };
                    let unit = unit.unit;
                    (0..pushes).map(move |number| (pass, unit, number))
                };
                Some(ledger.units.iter().flat_map(of_unit).collect())
            } else if self.job.strategy == Strategy::Sync {
                let all = batches_of(&self.undisturbed());
                Some(all.into_iter().filter(|batch| batch.0 == pass).collect())
            } else {
                self.whole(pass)
            };
            match expected {
                Some(expected) => assert_eq!(own, sorted(expected), "pass {pass} by the ledger"),
                None => self.check_cut(pass, &own),
            }
        }
        let units: u64 = ledger.units.iter().map(|unit| unit.samples).sum();
        let open = if ledger.stage == Stage::Train { units } else { 0 };
        assert_eq!(
            ledger.past_samples + open,
            self.samples_of(trained),
            "samples add up"
        );
    }

    /// Bad lines of a pass are those of its units, each counted once.
    pub(crate) fn check_bad_lines(&self, summary: &PassSummary) {
        let units = &self.job.passes[summary.pass as usize].train;
        let all: u64 = units.iter().map(|unit| reading(*unit).bad_lines).sum();
        if self.job.max_batches == 0 {
            assert_eq!(summary.bad_lines, all, "bad lines of pass {}", summary.pass);
        }
        assert!(summary.bad_lines <= all, "bad lines of pass {}", summary.pass);
    }

    /// A pass that was ended by the number of its batches: of each unit the first ones, and enough.
    fn check_cut(&self, pass: u32, own: &[Batch]) {
        let mut next = BTreeMap::new();
        for (_, unit, number) in own {
            let expected = next.entry(*unit).or_insert(0);
            assert_eq!(
                number, expected,
                "unit {unit} of pass {pass} in its order, and once"
            );
            *expected += 1;
        }
        assert!(
            self.count(own, pass) >= self.job.max_batches,
            "pass {pass} has its batches"
        );
    }

    /// What `sync` does, in its order, when nothing ever fails.
    pub(crate) fn undisturbed(&self) -> Vec<Applied> {
        let (mut applied, mut round) = (Vec::new(), 0);
        let Job {
            lanes,
            evict_every,
            max_batches,
            ..
        } = &self.job;
        for (pass, plan) in self.job.passes.iter().enumerate() {
            let pass = pass as u32;
            let lane = |lane: u32| {
                let own = plan.train.iter().skip(lane as usize).step_by(*lanes as usize);
                self.all_of(pass, &own.copied().collect::<Vec<_>>())
            };
            let lanes: Vec<Vec<Batch>> = (0..*lanes).map(lane).collect();
            let mut count = 0;
            for place in 0..lanes.iter().map(Vec::len).max().unwrap_or(0) {
                if *max_batches > 0 && count >= *max_batches {
                    break;
                }
                let brought: Vec<(u32, Batch)> = lanes
                    .iter()
                    .enumerate()
                    .filter_map(|(lane, own)| Some((lane as u32, *own.get(place)?)))
                    .collect();
                let is_batch = brought.iter().any(|(_, (_, unit, _))| !self.is_empty(*unit));
                applied.extend(brought.into_iter().map(|(lane, batch)| (round, lane, batch)));
                round += 1;
                count += u64::from(is_batch);
                if is_batch && *evict_every > 0 && count % *evict_every == 0 {
                    applied.push((round, EVICTED, (pass, EVICTED, 0)));
                }
            }
            if self.job.evicts {
                applied.push((round, EVICTED, (pass, EVICTED, 0)));
            }
        }
        applied
    }

    /// Rounds of a pass in which there was a batch.
    pub(crate) fn count_rounds(&self, applied: &[Applied], pass: u32) -> u64 {
        let own = applied
            .iter()
            .filter(|(_, lane, (own, unit, _))| *lane != EVICTED && *own == pass && !self.is_empty(*unit));
        own.map(|(round, ..)| *round).collect::<BTreeSet<u64>>().len() as u64
    }
}

pub(crate) fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list
}

pub(crate) fn batches_of(applied: &[Applied]) -> Vec<Batch> {
    let trained = applied.iter().filter(|(_, lane, _)| *lane != EVICTED);
    sorted(trained.map(|(_, _, batch)| *batch).collect())
}
