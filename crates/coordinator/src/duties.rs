//! Duties: what only a trainer can do between batches (decide by metrics, write the user's checkpoint).
//!
//! A duty is given to one trainer at a time; when that one dies or fails, to another. It may be done twice (by a
//! trainer that was declared dead on its way to tell, or again after going back), so it must not matter.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{DutyName, Reply};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DutyRecord {
    pub name: DutyName,
    pub pass: u32,
    pub input: Value,
    /// Snapshots whose files it reads.
    pub snapshots: Vec<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Duty {
    pub(crate) number: u64,
    pub(crate) record: DutyRecord,
    pub(crate) owner: Option<u64>,
    pub(crate) since: Duration,
    num_failures: u32,
}

impl Duty {
    pub(crate) fn name(&self) -> String {
        let name = match self.record.name {
            DutyName::Decide => "decide",
            DutyName::Publish => "publish",
        };
        format!("{name} of pass {}", self.record.pass)
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Duties {
    open: Vec<Duty>,
    num_made: u64,
    /// Names of those that were given up, and why.
    pub(crate) given_up: Vec<String>,
}

impl Duties {
    pub(crate) fn restore(records: Vec<DutyRecord>) -> Self {
        let mut own = Self::default();
        for record in records {
            own.add(record);
        }
        own
    }

    /// Goes on with the numbers of `before`.
    pub(crate) fn count_on(&mut self, before: &Self) {
        self.open
            .iter_mut()
            .for_each(|duty| duty.number += before.num_made);
        self.num_made += before.num_made;
    }

    pub(crate) fn add(&mut self, record: DutyRecord) {
        self.num_made += 1;
        let number = self.num_made;
        self.open.push(Duty {
            number,
            record,
            owner: None,
            since: Duration::ZERO,
            num_failures: 0,
        });
    }

    pub(crate) fn record(&self) -> Vec<DutyRecord> {
        self.open.iter().map(|duty| duty.record.clone()).collect()
    }

    pub(crate) fn open(&self) -> &[Duty] {
        &self.open
    }

    pub(crate) fn has_free(&self) -> bool {
        self.open.iter().any(|duty| duty.owner.is_none())
    }

    pub(crate) fn is_on_duty(&self, incarnation: u64) -> bool {
        self.open.iter().any(|duty| duty.owner == Some(incarnation))
    }

    /// Gives a duty to a trainer; the one that it has already, when the answer was lost.
    pub(crate) fn give(&mut self, incarnation: u64, now: Duration) -> Option<Reply> {
        let own = self.open.iter().position(|duty| duty.owner == Some(incarnation));
        let place = own.or_else(|| self.open.iter().position(|duty| duty.owner.is_none()))?;
        let duty = &mut self.open[place];
        duty.owner = Some(incarnation);
        if own.is_none() {
            duty.since = now;
        }
        Some(Reply::Duty {
            duty: duty.number,
            name: duty.record.name,
            pass: duty.record.pass,
            input: duty.record.input.clone(),
        })
    }

    /// Takes a duty that is done out. Nothing: it is not this trainer's (any more).
    pub(crate) fn finish(&mut self, number: u64, incarnation: u64) -> Option<Duty> {
        let is_it = |duty: &Duty| duty.number == number && duty.owner == Some(incarnation);
        let place = self.open.iter().position(is_it)?;
        Some(self.open.remove(place))
    }

    /// Puts a duty back that failed. False: it has failed too often and is given up.
    pub(crate) fn fail(&mut self, mut duty: Duty, max_attempts: u32, reason: &str) -> bool {
        duty.num_failures += 1;
        duty.owner = None;
        if duty.num_failures < max_attempts {
            self.open.push(duty);
            return true;
        }
        self.given_up.push(format!("{} ({reason})", duty.name()));
        false
    }

    pub(crate) fn free(&mut self, incarnation: u64) {
        let own = self
            .open
            .iter_mut()
            .filter(|duty| duty.owner == Some(incarnation));
        own.for_each(|duty| duty.owner = None);
    }

    /// A trainer past the deadline of its duty, with words.
    pub(crate) fn overdue(&self, limit: Duration, now: Duration) -> Option<(u64, String)> {
        let late = self
            .open
            .iter()
            .find(|duty| duty.owner.is_some() && now >= duty.since + limit)?;
        Some((
            late.owner?,
            format!("did not finish `{}` within {} s", late.name(), limit.as_secs()),
        ))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use super::*;

    fn duties() -> Duties {
        let record = |name| DutyRecord {
            name,
            pass: 0,
            input: Value::Null,
            snapshots: Vec::new(),
        };
        Duties::restore(vec![record(DutyName::Decide), record(DutyName::Publish)])
    }

    fn number(reply: Option<Reply>) -> Option<u64> {
        let Reply::Duty { duty, .. } = reply? else {
            panic!("a duty was expected");
        };
        Some(duty)
    }

    #[test]
    fn a_duty_is_given_to_one_trainer_and_again_to_the_same() {
        let mut duties = duties();
        assert_eq!(number(duties.give(7, Duration::ZERO)), Some(1));
        assert_eq!(number(duties.give(7, Duration::ZERO)), Some(1));
        assert_eq!(number(duties.give(8, Duration::ZERO)), Some(2));
        assert_eq!(number(duties.give(9, Duration::ZERO)), None);
        assert!(duties.finish(1, 8).is_none());
        assert!(duties.finish(1, 7).is_some());
        assert!(duties.finish(1, 7).is_none());
    }

    #[test]
    fn the_duty_of_a_dead_trainer_goes_to_another() {
        let mut duties = duties();
        duties.give(7, Duration::ZERO);
        duties.free(7);
        assert_eq!(number(duties.give(8, Duration::ZERO)), Some(1));
        assert!(duties.finish(1, 7).is_none(), "the dead one comes too late");
    }

    #[test]
    fn a_duty_that_fails_too_often_is_given_up() {
        let mut duties = duties();
        for attempt in 1..=3 {
            let number = number(duties.give(7, Duration::ZERO)).unwrap();
            let duty = duties.finish(number, 7).unwrap();
            if duty.record.name == DutyName::Decide {
                assert_eq!(duties.fail(duty, 2, "no disk"), attempt < 2);
            }
        }
        assert_eq!(duties.given_up, ["decide of pass 0 (no disk)"]);
    }

    #[test]
    fn a_duty_without_end_is_overdue() {
        let mut duties = duties();
        duties.give(7, Duration::from_secs(1));
        assert_eq!(
            duties.overdue(Duration::from_secs(5), Duration::from_secs(5)),
            None
        );
        let (late, _) = duties
            .overdue(Duration::from_secs(5), Duration::from_secs(6))
            .unwrap();
        assert_eq!(late, 7);
    }
}
