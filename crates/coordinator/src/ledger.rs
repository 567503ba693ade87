//! The ledger: which samples of the pass have been trained. It is what "exactly once" means here.
//!
//! Every unit of the stage is free, leased or done. A lease belongs to one incarnation; only entries that come
//! under it move the unit forward, so that of two trainers that believe to have a unit one is refused. Leases
//! are not part of the record of a snapshot: after a restore everything that is not done is free, at its position.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::job::Job;
use crate::lanes::Lanes;
use crate::message::{LaneGrant, Order};
use crate::reading::Reading;

/// What the cluster is doing with the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Train,
    Validate,
    Decide,
    /// All passes are over.
    Ended,
}

/// What server 0 enters when a push is committed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerEntry {
    pub unit: u32,
    /// Of the reader, after this batch.
    pub position: Option<String>,
    pub samples: u64,
    /// More than one where a push stands for several batches (`geo`).
    pub batches: u64,
    /// The unit has ended. An empty unit ends with an entry of no samples.
    pub is_last: bool,
    /// With the last entry of a unit: what its reader has seen of it.
    #[serde(default)]
    pub reading: Option<Reading>,
}

/// What an entry has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// `sync`: this entry has completed the round, which is applied now.
    pub applied_round: Option<u64>,
    /// The fence that trainers have to obey. In `sync` all answers of a round must carry the number that came
    /// with the entry that completed it.
    pub fence: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    Unit {
        lease: u64,
        unit: u32,
        position: Option<String>,
        samples: u64,
        batches: u64,
    },
    Lanes {
        round: u64,
        lanes: Vec<LaneGrant>,
    },
}

/// How far a unit has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitRecord {
    pub unit: u32,
    pub position: Option<String>,
    pub samples: u64,
    pub batches: u64,
    pub is_done: bool,
    #[serde(default)]
    pub reading: Option<Reading>,
}

impl UnitRecord {
    fn take(&mut self, entry: LedgerEntry) {
        self.position = entry.position;
        self.samples += entry.samples;
        self.batches += entry.batches;
        self.is_done = entry.is_last;
        self.reading = entry.reading;
    }
}

/// The ledger as it stands in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerRecord {
    pub pass: u32,
    pub stage: Stage,
    pub round: u64,
    pub units: Vec<UnitRecord>,
    /// Of all training stages that are over.
    pub past_samples: u64,
    pub past_batches: u64,
    /// Rounds of the stage in which there was a batch.
    #[serde(default)]
    pub rounds: u64,
    /// [`Ledger::steps`] of the stage when rows were evicted last.
    #[serde(default)]
    pub evicted: u64,
    /// The same of the last checkpoint within the pass.
    #[serde(default)]
    pub published: u64,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    incarnation: u64,
    place: usize,
    since: Duration,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    record: LedgerRecord,
    lanes: Option<Lanes>,
    leases: BTreeMap<u64, Lease>,
    next_lease: u64,
    /// Of a pass; 0: as many as there are.
    max_batches: u64,
}

impl Ledger {
    pub(crate) fn new(job: &Job) -> Self {
        let record = LedgerRecord {
            pass: 0,
            stage: Stage::Train,
            round: 0,
            units: units_of(job, 0, Stage::Train),
            past_samples: 0,
            past_batches: 0,
            rounds: 0,
            evicted: 0,
            published: 0,
        };
        Self::restore(job, record)
    }

    /// The ledger of a snapshot; nothing is leased.
    pub(crate) fn restore(job: &Job, record: LedgerRecord) -> Self {
        let lanes = lanes_of(job, &record);
        Self {
            record,
            lanes,
            leases: BTreeMap::new(),
            next_lease: 1,
            max_batches: job.max_batches,
        }
    }

    /// Goes on with the numbers of leases of `before`.
    pub(crate) fn count_on(&mut self, before: &Self) {
        self.next_lease = before.next_lease;
    }

    pub(crate) fn record(&self) -> &LedgerRecord {
        &self.record
    }

    pub(crate) fn pass(&self) -> u32 {
        self.record.pass
    }

    pub(crate) fn stage(&self) -> Stage {
        self.record.stage
    }

    /// Begins another stage.
    pub(crate) fn open(&mut self, job: &Job, pass: u32, stage: Stage) {
        if self.record.stage == Stage::Train {
            let (samples, batches) = self.counted();
            self.record.past_samples += samples;
            self.record.past_batches += batches;
        }
        self.record.pass = pass;
        self.record.stage = stage;
        self.record.units = units_of(job, pass, stage);
        (self.record.rounds, self.record.evicted, self.record.published) = (0, 0, 0);
        self.lanes = lanes_of(job, &self.record);
        self.leases.clear();
    }

    /// Samples and batches of the stage.
    pub(crate) fn counted(&self) -> (u64, u64) {
        let units = self.record.units.iter();
        units.fold((0, 0), |(samples, batches), unit| {
            (samples + unit.samples, batches + unit.batches)
        })
    }

    /// Samples and batches trained, over the run.
    pub(crate) fn trained(&self) -> (u64, u64) {
        let now = if self.record.stage == Stage::Train {
            self.counted()
        } else {
            (0, 0)
        };
        (self.record.past_samples + now.0, self.record.past_batches + now.1)
    }

    /// Batches of the stage, as the run counts them: rounds where there are lanes.
    pub(crate) fn steps(&self) -> u64 {
        if self.has_lanes() {
            self.record.rounds
        } else {
            self.counted().1
        }
    }

    /// Rows are evicted at this point.
    pub(crate) fn mark_evicted(&mut self) {
        self.record.evicted = self.steps();
    }

    /// The parameters of this point are published.
    pub(crate) fn mark_published(&mut self) {
        self.record.published = self.steps();
    }

    /// All units of the stage are done, or as many batches as a pass may have.
    pub(crate) fn is_over(&self) -> bool {
        let is_training = self.record.stage == Stage::Train;
        let has_enough = is_training && self.max_batches > 0 && self.steps() >= self.max_batches;
        has_enough || self.record.units.iter().all(|unit| unit.is_done)
    }

    /// What readers have seen of the units that are done.
    pub(crate) fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.record.units.iter().filter_map(|unit| unit.reading.as_ref())
    }

    pub(crate) fn num_done(&self) -> usize {
        self.record.units.iter().filter(|unit| unit.is_done).count()
    }

    /// What servers have to know of the stage.
    pub(crate) fn order(&self, is_new_stage: bool, adjust: Option<String>) -> Order {
        Order {
            pass: self.record.pass,
            is_validation: self.record.stage == Stage::Validate,
            round: self.record.round,
            lanes: self.lanes.as_ref().map_or_else(Vec::new, Lanes::active),
            is_new_stage,
            adjust,
        }
    }

    pub(crate) fn has_lanes(&self) -> bool {
        self.lanes.is_some()
    }

    /// Gives all lanes to `trainers`; what was granted before is void. Only when no trainer is at work.
    pub(crate) fn deal(&mut self, trainers: &[u64], now: Duration) {
        self.void();
        if let Some(lanes) = &mut self.lanes {
            lanes.deal(trainers, now);
        }
    }

    /// Lanes that have data left; 0 where there are none.
    pub(crate) fn num_lanes(&self) -> usize {
        self.lanes.as_ref().map_or(0, |lanes| lanes.active().len())
    }

    /// Work for a trainer. `holding`: leases that it knows of; another one that it has is given again.
    pub(crate) fn grant(&mut self, incarnation: u64, holding: &[u64], now: Duration) -> Option<Grant> {
        if let Some(lanes) = &mut self.lanes {
            let granted = lanes.grant(incarnation, &self.record, &mut self.next_lease);
            return (!granted.is_empty()).then_some(Grant::Lanes {
                round: self.record.round,
                lanes: granted,
            });
        }
        let lost = self
            .leases
            .iter()
            .find(|(number, lease)| lease.incarnation == incarnation && !holding.contains(number));
        let (lease, place) = match lost {
            Some((number, lease)) => (*number, lease.place),
            None => self.lease_first_free(incarnation, now)?,
        };
        let unit = &self.record.units[place];
        Some(Grant::Unit {
            lease,
            unit: unit.unit,
            position: unit.position.clone(),
            samples: unit.samples,
            batches: unit.batches,
        })
    }

    fn lease_first_free(&mut self, incarnation: u64, now: Duration) -> Option<(u64, usize)> {
        let mut is_leased = vec![false; self.record.units.len()];
        self.leases
            .values()
            .for_each(|lease| is_leased[lease.place] = true);
        let free = |place: &usize| !self.record.units[*place].is_done && !is_leased[*place];
        let place = (0..is_leased.len()).find(free)?;
        let number = self.next_lease;
        self.next_lease += 1;
        self.leases.insert(
            number,
            Lease {
                incarnation,
                place,
                since: now,
            },
        );
        Some((number, place))
    }

    /// Enters a committed batch. Gives the round that it has completed.
    pub(crate) fn advance(
        &mut self,
        incarnation: u64,
        lease: u64,
        entry: LedgerEntry,
        now: Duration,
    ) -> Result<Option<u64>, Error> {
        if let Some(lanes) = &mut self.lanes {
            return lanes.advance(incarnation, lease, entry, &mut self.record, now);
        }
        let not_held = Error::NotHeld { lease, incarnation };
        let held = self.leases.get_mut(&lease).ok_or(not_held.clone())?;
        if held.incarnation != incarnation {
            return Err(not_held);
        }
        let unit = &mut self.record.units[held.place];
        if unit.unit != entry.unit {
            return Err(Error::OtherUnit {
                lease,
                expected: unit.unit,
                found: entry.unit,
            });
        }
        unit.take(entry);
        held.since = now;
        if unit.is_done {
            self.leases.remove(&lease);
        }
        Ok(None)
    }

    /// Incarnations that were given work that is not done, each once.
    pub(crate) fn owners(&self) -> Vec<u64> {
        let mut owners = match &self.lanes {
            Some(lanes) => lanes.owners(),
            None => self.leases.values().map(|lease| lease.incarnation).collect(),
        };
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// Takes all leases of one trainer back; in `sync` its lanes have no owner then.
    pub(crate) fn free(&mut self, incarnation: u64) {
        self.leases.retain(|_, lease| lease.incarnation != incarnation);
        if let Some(lanes) = &mut self.lanes {
            lanes.free(incarnation);
        }
    }

    /// Takes all leases back, and drops the round that is not complete.
    pub(crate) fn void(&mut self) {
        self.leases.clear();
        if let Some(lanes) = &mut self.lanes {
            lanes.void();
        }
    }

    /// Counts the round that is not complete as it is: what `hybrid` has trained of it is in the rows.
    pub(crate) fn close_round(&mut self, now: Duration) {
        if let Some(lanes) = &mut self.lanes {
            lanes.close_round(&mut self.record, now);
        }
    }

    /// Nothing moves for reasons that are not the trainers': their time begins anew.
    pub(crate) fn touch(&mut self, now: Duration) {
        self.leases.values_mut().for_each(|lease| lease.since = now);
        if let Some(lanes) = &mut self.lanes {
            lanes.touch(now);
        }
    }

    /// The trainer that has let its work lie the longest, and since when.
    pub(crate) fn slowest(&self) -> Option<(u64, Duration)> {
        if let Some(lanes) = &self.lanes {
            return lanes.slowest();
        }
        let oldest = self.leases.values().min_by_key(|lease| lease.since)?;
        Some((oldest.incarnation, oldest.since))
    }

    /// Units that are in hand: name of the unit by place in the job, incarnation.
    pub(crate) fn leased(&self) -> Vec<(u32, u64)> {
        if let Some(lanes) = &self.lanes {
            return lanes.leased(&self.record);
        }
        let leases = self.leases.values();
        leases
            .map(|lease| (self.record.units[lease.place].unit, lease.incarnation))
            .collect()
    }
}

fn units_of(job: &Job, pass: u32, stage: Stage) -> Vec<UnitRecord> {
    let plan = &job.passes[pass as usize];
    let units: &[u32] = match stage {
        Stage::Train => &plan.train,
        Stage::Validate => &plan.validation,
        Stage::Decide | Stage::Ended => &[],
    };
    units
        .iter()
        .map(|unit| UnitRecord {
            unit: *unit,
            ..UnitRecord::default()
        })
        .collect()
}

fn lanes_of(job: &Job, record: &LedgerRecord) -> Option<Lanes> {
    let is_dealt = job.has_lanes() && record.stage == Stage::Train;
    is_dealt.then(|| Lanes::new(job.lanes, record))
}

pub(crate) fn take(record: &mut LedgerRecord, place: usize, entry: LedgerEntry) {
    record.units[place].take(entry);
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use super::*;
    use crate::job::Strategy;
    use crate::job::tests::job;

    const NOW: Duration = Duration::ZERO;

    fn entry(unit: u32, samples: u64, is_last: bool) -> LedgerEntry {
        LedgerEntry {
            unit,
            position: Some(format!("{samples}")),
            samples,
            batches: 1,
            is_last,
            reading: None,
        }
    }

    fn unit(grant: Option<Grant>) -> (u64, u32, u64) {
        match grant.unwrap() {
            Grant::Unit {
                lease, unit, samples, ..
            } => (lease, unit, samples),
            Grant::Lanes { .. } => panic!("lanes where a unit was expected"),
        }
    }

    #[test]
    fn units_are_leased_once_and_in_order() {
        let mut ledger = Ledger::new(&job(Strategy::Async, 2, 0, 1));
        assert_eq!(unit(ledger.grant(1, &[], NOW)), (1, 0, 0));
        assert_eq!(unit(ledger.grant(2, &[], NOW)), (2, 1, 0));
        assert_eq!(ledger.grant(3, &[], NOW), None);
    }

    #[test]
    fn a_lease_whose_answer_was_lost_is_given_again() {
        let mut ledger = Ledger::new(&job(Strategy::Async, 2, 0, 1));
        assert_eq!(unit(ledger.grant(1, &[], NOW)), (1, 0, 0));
        assert_eq!(unit(ledger.grant(1, &[], NOW)), (1, 0, 0));
        assert_eq!(unit(ledger.grant(1, &[1], NOW)), (2, 1, 0));
    }

    #[test]
    fn another_trainer_goes_on_at_the_position_of_the_last_entry() {
        let mut ledger = Ledger::new(&job(Strategy::Async, 1, 0, 1));
        let (lease, ..) = unit(ledger.grant(1, &[], NOW));
        ledger.advance(1, lease, entry(0, 10, false), NOW).unwrap();
        ledger.free(1);
        let late = ledger.advance(1, lease, entry(0, 10, false), NOW);
        assert_eq!(
            late,
            Err(Error::NotHeld {
                lease,
                incarnation: 1
            })
        );
        let (second, _, samples) = unit(ledger.grant(2, &[], NOW));
        assert_eq!(samples, 10);
        assert!(ledger.advance(1, second, entry(0, 10, false), NOW).is_err());
        ledger.advance(2, second, entry(0, 4, true), NOW).unwrap();
        assert!(ledger.is_over());
        assert_eq!(ledger.counted(), (14, 2));
        assert!(ledger.owners().is_empty());
    }

    #[test]
    fn samples_of_past_passes_are_kept_and_validation_is_not_training() {
        let job = job(Strategy::Async, 1, 1, 2);
        let mut ledger = Ledger::new(&job);
        let (lease, ..) = unit(ledger.grant(1, &[], NOW));
        ledger.advance(1, lease, entry(0, 10, true), NOW).unwrap();
        ledger.open(&job, 0, Stage::Validate);
        let (lease, number, _) = unit(ledger.grant(1, &[], NOW));
        assert_eq!(number, 1);
        ledger.advance(1, lease, entry(1, 7, true), NOW).unwrap();
        ledger.open(&job, 1, Stage::Train);
        assert_eq!(ledger.trained(), (10, 1));
    }

    #[test]
    fn a_restored_ledger_knows_positions_and_no_leases() {
        let job = job(Strategy::Async, 2, 0, 1);
        let mut ledger = Ledger::new(&job);
        let (lease, ..) = unit(ledger.grant(1, &[], NOW));
        ledger.advance(1, lease, entry(0, 10, false), NOW).unwrap();
        let record = ledger.record().clone();
        ledger.advance(1, lease, entry(0, 10, true), NOW).unwrap();
        let before = std::mem::replace(&mut ledger, Ledger::restore(&job, record));
        ledger.count_on(&before);
        assert!(ledger.owners().is_empty());
        let (again, number, samples) = unit(ledger.grant(2, &[], NOW));
        assert_eq!((number, samples), (0, 10));
        assert_ne!(
            again, lease,
            "an entry of the old lease must not be taken for one of the new"
        );
    }

    #[test]
    fn an_entry_of_another_unit_is_refused() {
        let mut ledger = Ledger::new(&job(Strategy::Async, 2, 0, 1));
        let (lease, ..) = unit(ledger.grant(1, &[], NOW));
        let refused = ledger.advance(1, lease, entry(1, 10, false), NOW);
        assert_eq!(
            refused,
            Err(Error::OtherUnit {
                lease,
                expected: 0,
                found: 1
            })
        );
    }
}
