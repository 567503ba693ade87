//! Lanes: how `sync` and `hybrid` deal the units of a pass.
//!
//! Unit `i` of the pass goes to lane `i mod W`; a round is one batch of each lane that has data left. What is trained
//! in a round depends on W alone, never on who owns which lane. A batch that was committed is pending until its
//! round is complete; then all of the round count, in the order of the lanes, or (when the leases become void before) none.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Error;
use crate::ledger::{LedgerEntry, LedgerRecord, take};
use crate::message::LaneGrant;

#[derive(Clone, Debug, Default)]
struct Lane {
    /// Places in the units of the record.
    places: Vec<usize>,
    owner: Option<u64>,
    lease: Option<u64>,
    pending: Option<LedgerEntry>,
    since: Duration,
}

impl Lane {
    /// The unit that is being read; nothing when the lane has ended.
    fn place(&self, record: &LedgerRecord) -> Option<usize> {
        self.places
            .iter()
            .copied()
            .find(|place| !record.units[*place].is_done)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// Lanes that have data left; changes only when a round is applied.
    active: Vec<u32>,
}

impl Lanes {
    pub(crate) fn new(num_lanes: u32, record: &LedgerRecord) -> Self {
        let mut lanes = vec![Lane::default(); num_lanes as usize];
        for place in 0..record.units.len() {
            lanes[place % num_lanes as usize].places.push(place);
        }
        let mut own = Self {
            lanes,
            active: Vec::new(),
        };
        own.find_active(record);
        own
    }

    fn find_active(&mut self, record: &LedgerRecord) {
        let lanes = self.lanes.iter().enumerate();
        let left = lanes.filter(|(_, lane)| lane.place(record).is_some());
        self.active = left.map(|(number, _)| number as u32).collect();
    }

    pub(crate) fn active(&self) -> Vec<u32> {
        self.active.clone()
    }

    fn of_active(&self) -> impl Iterator<Item = &Lane> {
        self.active.iter().map(|lane| &self.lanes[*lane as usize])
    }

    /// Every lane that has data left gets an owner, evenly; as few as possible change hands.
    pub(crate) fn deal(&mut self, trainers: &[u64], now: Duration) {
        if trainers.is_empty() {
            self.lanes.iter_mut().for_each(|lane| lane.owner = None);
            return;
        }
        let mut counts: BTreeMap<u64, usize> = trainers.iter().map(|trainer| (*trainer, 0)).collect();
        let share = self.active.len() / counts.len();
        let mut larger = self.active.len() % counts.len();
        let mut homeless = Vec::new();
        for number in &self.active {
            let owner = self.lanes[*number as usize].owner;
            match owner.and_then(|owner| counts.get_mut(&owner)) {
                Some(count) if *count < share => *count += 1,
                Some(count) if *count == share && larger > 0 => {
                    *count += 1;
                    larger -= 1;
                }
                _ => homeless.push(*number),
            }
        }
        for number in homeless {
            let least = counts
                .iter_mut()
                .min_by_key(|(_, count)| **count)
                .expect("there is a trainer");
            *least.1 += 1;
            self.lanes[number as usize].owner = Some(*least.0);
        }
        self.touch(now);
    }

    pub(crate) fn grant(
        &mut self,
        incarnation: u64,
        record: &LedgerRecord,
        next_lease: &mut u64,
    ) -> Vec<LaneGrant> {
        let mut granted = Vec::new();
        for number in &self.active {
            let lane = &mut self.lanes[*number as usize];
            let Some(place) = lane.place(record).filter(|_| lane.owner == Some(incarnation)) else {
                continue;
            };
            let lease = *lane.lease.get_or_insert_with(|| {
                *next_lease += 1;
                *next_lease - 1
            });
            let unit = &record.units[place];
            granted.push(LaneGrant {
                lease,
                lane: *number,
                unit: unit.unit,
                position: unit.position.clone(),
                samples: unit.samples,
                batches: unit.batches,
                is_last_unit: lane.places.last() == Some(&place),
                is_committed: lane.pending.is_some(),
            });
        }
        granted
    }

    pub(crate) fn advance(
        &mut self,
        incarnation: u64,
        lease: u64,
        entry: LedgerEntry,
        record: &mut LedgerRecord,
        now: Duration,
    ) -> Result<Option<u64>, Error> {
        let is_held = |lane: &Lane| lane.lease == Some(lease) && lane.owner == Some(incarnation);
        let found = self.lanes.iter_mut().enumerate().find(|(_, lane)| is_held(lane));
        let (number, lane) = found.ok_or(Error::NotHeld { lease, incarnation })?;
        if lane.pending.is_some() {
            return Err(Error::LaneIsAhead {
                lane: number as u32,
                round: record.round,
            });
        }
        let place = lane.place(record).ok_or(Error::NotHeld { lease, incarnation })?;
        let expected = record.units[place].unit;
        if expected != entry.unit {
            return Err(Error::OtherUnit {
                lease,
                expected,
                found: entry.unit,
            });
        }
        lane.pending = Some(entry);
        if self.of_active().any(|lane| lane.pending.is_none()) {
            return Ok(None);
        }
        Ok(Some(self.apply(record, now)))
    }

    /// Ends the round with the batches that are there, if there are any.
    pub(crate) fn close_round(&mut self, record: &mut LedgerRecord, now: Duration) {
        if self.of_active().any(|lane| lane.pending.is_some()) {
            self.apply(record, now);
        }
    }

    fn apply(&mut self, record: &mut LedgerRecord, now: Duration) -> u64 {
        let mut has_batch = false;
        for number in &self.active {
            let lane = &mut self.lanes[*number as usize];
            if let (Some(place), Some(entry)) = (lane.place(record), lane.pending.take()) {
                has_batch |= entry.batches > 0;
                take(record, place, entry);
            }
        }
        record.rounds += u64::from(has_batch);
        self.find_active(record);
        self.touch(now);
        record.round += 1;
        record.round - 1
    }

    pub(crate) fn owners(&self) -> Vec<u64> {
        self.of_active().filter_map(|lane| lane.owner).collect()
    }

    pub(crate) fn free(&mut self, incarnation: u64) {
        for lane in self
            .lanes
            .iter_mut()
            .filter(|lane| lane.owner == Some(incarnation))
        {
            lane.owner = None;
            lane.lease = None;
        }
    }

    pub(crate) fn void(&mut self) {
        for lane in &mut self.lanes {
            lane.lease = None;
            lane.pending = None;
        }
    }

    pub(crate) fn touch(&mut self, now: Duration) {
        self.lanes.iter_mut().for_each(|lane| lane.since = now);
    }

    /// The owner of a lane for which the round waits. One whose batch is in waits itself.
    pub(crate) fn slowest(&self) -> Option<(u64, Duration)> {
        let late = self.of_active().filter(|lane| lane.pending.is_none());
        late.filter_map(|lane| lane.owner.map(|owner| (owner, lane.since)))
            .min_by_key(|(_, since)| *since)
    }

    pub(crate) fn leased(&self, record: &LedgerRecord) -> Vec<(u32, u64)> {
        let lanes = self.of_active();
        lanes
            .filter_map(|lane| Some((record.units[lane.place(record)?].unit, lane.owner?)))
            .collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use super::*;
    use crate::job::Strategy;
    use crate::job::tests::job;
    use crate::ledger::{Grant, Ledger};

    const NOW: Duration = Duration::ZERO;

    fn lanes(ledger: &mut Ledger, incarnation: u64) -> Vec<LaneGrant> {
        match ledger.grant(incarnation, &[], NOW) {
            Some(Grant::Lanes { lanes, .. }) => lanes,
            Some(Grant::Unit { .. }) => panic!("a unit where lanes were expected"),
            None => Vec::new(),
        }
    }

    fn entry(unit: u32, is_last: bool) -> LedgerEntry {
        LedgerEntry {
            unit,
            position: None,
            samples: 5,
            batches: 1,
            is_last,
            reading: None,
        }
    }

    /// Three lanes, four units: lane 0 has units 0 and 3.
    fn dealt(trainers: &[u64]) -> Ledger {
        let mut ledger = Ledger::new(&job(Strategy::Sync, 4, 0, 1));
        ledger.deal(trainers, NOW);
        ledger
    }

    #[test]
    fn all_lanes_are_owned_and_evenly() {
        let mut ledger = dealt(&[7, 8]);
        let numbers = |grants: Vec<LaneGrant>| grants.iter().map(|lane| lane.lane).collect::<Vec<_>>();
        assert_eq!(numbers(lanes(&mut ledger, 7)), [0, 2]);
        assert_eq!(numbers(lanes(&mut ledger, 8)), [1]);
        assert!(!lanes(&mut ledger, 7)[0].is_last_unit);
        assert!(lanes(&mut ledger, 7)[1].is_last_unit);
    }

    #[test]
    fn a_round_counts_when_every_lane_has_brought_its_batch() {
        let mut ledger = dealt(&[7, 8]);
        let (own, other) = (lanes(&mut ledger, 7), lanes(&mut ledger, 8));
        assert_eq!(ledger.advance(7, own[0].lease, entry(0, true), NOW), Ok(None));
        let ahead = ledger.advance(7, own[0].lease, entry(0, true), NOW);
        assert_eq!(ahead, Err(Error::LaneIsAhead { lane: 0, round: 0 }));
        assert_eq!(ledger.advance(7, own[1].lease, entry(2, false), NOW), Ok(None));
        assert_eq!(ledger.counted(), (0, 0));
        assert_eq!(ledger.slowest().unwrap().0, 8);
        assert_eq!(
            ledger.advance(8, other[0].lease, entry(1, false), NOW),
            Ok(Some(0))
        );
        assert_eq!(ledger.counted(), (15, 3));
        assert_eq!(
            lanes(&mut ledger, 7)[0].unit,
            3,
            "the lane goes on with its next unit"
        );
    }

    #[test]
    fn void_leases_drop_the_round_and_keep_the_rounds_before() {
        let mut ledger = dealt(&[7]);
        let own = lanes(&mut ledger, 7);
        for lane in &own {
            ledger
                .advance(7, lane.lease, entry(lane.unit, false), NOW)
                .unwrap();
        }
        ledger.advance(7, own[0].lease, entry(0, false), NOW).unwrap();
        ledger.void();
        assert!(ledger.advance(7, own[1].lease, entry(1, false), NOW).is_err());
        assert_eq!(ledger.counted(), (15, 3));
        ledger.deal(&[9], NOW);
        assert!(
            lanes(&mut ledger, 9)
                .iter()
                .all(|lane| lane.batches == 1 && !lane.is_committed)
        );
    }

    #[test]
    fn a_round_that_is_closed_counts_for_the_lanes_that_were_in_it() {
        let mut ledger = dealt(&[7]);
        let own = lanes(&mut ledger, 7);
        ledger.advance(7, own[1].lease, entry(1, true), NOW).unwrap();
        ledger.close_round(NOW);
        ledger.close_round(NOW);
        assert_eq!(ledger.counted(), (5, 1));
        let order = ledger.order(false, None);
        assert_eq!((order.round, order.lanes), (1, vec![0, 2]));
    }

    #[test]
    fn lanes_that_have_ended_are_not_waited_for() {
        let mut ledger = dealt(&[7]);
        let own = lanes(&mut ledger, 7);
        for lane in &own {
            ledger
                .advance(7, lane.lease, entry(lane.unit, true), NOW)
                .unwrap();
        }
        let last = lanes(&mut ledger, 7);
        assert_eq!(last.len(), 1);
        assert_eq!(ledger.order(false, None).lanes, [0]);
        assert_eq!(ledger.advance(7, last[0].lease, entry(3, true), NOW), Ok(Some(1)));
        assert!(ledger.is_over());
    }

    #[test]
    fn every_trainer_gets_a_lane_while_there_are_enough() {
        let mut own = job(Strategy::Sync, 5, 0, 1);
        own.lanes = 5;
        let mut ledger = Ledger::new(&own);
        ledger.deal(&[1, 2], NOW);
        ledger.deal(&[1, 2, 3, 4], NOW);
        assert_eq!(ledger.owners(), [1, 2, 3, 4]);
    }

    #[test]
    fn dealing_anew_moves_as_few_lanes_as_possible() {
        let mut ledger = dealt(&[7]);
        ledger.deal(&[7, 8], NOW);
        assert_eq!(lanes(&mut ledger, 8).len(), 1);
        ledger.deal(&[7, 8, 9], NOW);
        assert_eq!(lanes(&mut ledger, 9).len(), 1);
        assert_eq!(lanes(&mut ledger, 7).len(), 1);
    }
}
