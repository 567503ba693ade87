//! What readers have seen of the data: bad lines, and slots that never occurred.
//!
//! A unit is a small part of a pass. How many bad lines are too many, whether there is no sample at all, and whether
//! a slot is missing, can only be said of all its units together; so readers report what they have seen, and it is
//! judged here.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ledger::Stage;
use crate::run::Run;

/// Exit code of a run whose samples cannot be trained on.
pub(crate) const WRONG_DATA: i32 = 3;

/// Of one unit, from its first line to its last, whoever has read which part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    pub bad_lines: u64,
    /// The first of them in words: file, line, column, reason.
    pub first_bad: Option<String>,
    /// Slots that are required and have not occurred.
    pub absent: Vec<String>,
}

/// Bad lines that may be passed over; none: any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub train: Option<u64>,
    pub validation: Option<u64>,
}

impl Run {
    /// Of the units of the stage that are done.
    pub(crate) fn bad_lines(&self) -> u64 {
        self.ledger.readings().map(|reading| reading.bad_lines).sum()
    }

    pub(crate) fn too_many_bad_lines(&self) -> Option<String> {
        let limits = self.job.max_bad_lines;
        let limit = match self.ledger.stage() {
            Stage::Train => limits.train,
            Stage::Validate => limits.validation,
            Stage::Decide | Stage::Ended => None,
        }?;
        let count = self.bad_lines();
        if count <= limit {
            return None;
        }
        Some(format!(
            "{count} bad lines in pass {}, max_bad_lines is {limit}; the first: {}",
            self.ledger.pass(),
            self.first_bad_line(),
        ))
    }

    fn first_bad_line(&self) -> &str {
        let mut all = self
            .ledger
            .readings()
            .filter_map(|reading| reading.first_bad.as_deref());
        all.next().unwrap_or("not told")
    }

    /// What is said of a pass that is trained to its end, and had nothing to train on.
    pub(crate) fn no_sample(&self) -> Option<String> {
        let is_trained = self.ledger.stage() == Stage::Train && self.ledger.is_over();
        if !is_trained || self.ledger.counted().0 > 0 {
            return None;
        }
        let pass = self.ledger.pass();
        let words = format!("pass {pass} has found no sample in any file of the data");
        Some(match self.bad_lines() {
            0 => {
                format!("{words}; look at what `data_path` of the data set names, and whether it was written")
            }
            count => format!(
                "{words}; {count} lines were bad, the first: {}",
                self.first_bad_line()
            ),
        })
    }

    /// Slots that have occurred in no unit of the stage; none where a unit is not done, or nothing was read.
    pub(crate) fn absent_slots(&self) -> Vec<String> {
        let units = &self.ledger.record().units;
        if units.is_empty() || units.iter().any(|unit| !unit.is_done || unit.reading.is_none()) {
            return Vec::new();
        }
        let mut readings = self.ledger.readings();
        let Some(first) = readings.next() else {
            return Vec::new();
        };
        let absent: BTreeSet<&String> = readings.fold(first.absent.iter().collect(), |left, reading| {
            left.into_iter()
                .filter(|slot| reading.absent.contains(slot))
                .collect()
        });
        absent.into_iter().cloned().collect()
    }

    /// What is said of slots that the last pass has not found.
    pub(crate) fn missed_slots(&self) -> Option<String> {
        let summary = self.history.last().filter(|summary| !summary.absent.is_empty())?;
        let slots: Vec<String> = summary
            .absent
            .iter()
            .map(|slot| format!("slot `{slot}`"))
            .collect();
        Some(format!(
            "{} never occurred in the data of pass {}, which was saved; name the slots that the data has, or set \
             `require_slots: false`, and start a new run, from this one's checkpoint with `init_model_path`",
            slots.join(", "),
            summary.pass
        ))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::Strategy;
    use crate::job::tests::job;
    use crate::ledger::{Grant, LedgerEntry};

    fn run(limit: Option<u64>) -> Run {
        let mut own = job(Strategy::Async, 2, 0, 1);
        own.max_bad_lines.train = limit;
        Run::new(own)
    }

    fn read(run: &mut Run, bad_lines: u64, absent: &[&str]) {
        read_samples(run, 5, bad_lines, absent);
    }

    fn read_samples(run: &mut Run, samples: u64, bad_lines: u64, absent: &[&str]) {
        let Grant::Unit { lease, unit, .. } = run.ledger.grant(1, &[], Duration::ZERO).unwrap() else {
            panic!("a unit was expected");
        };
        let entry = LedgerEntry {
            unit,
            samples,
            batches: samples.min(1),
            is_last: true,
            reading: Some(Reading {
                bad_lines,
                first_bad: (bad_lines > 0).then(|| format!("part-{unit}:3:1: not a number")),
                absent: absent.iter().map(|&slot| slot.to_owned()).collect(),
            }),
            ..LedgerEntry::default()
        };
        run.ledger.advance(1, lease, entry, Duration::ZERO).unwrap();
    }

    #[test]
    fn bad_lines_of_all_units_count_together() {
        let mut run = run(Some(5));
        read(&mut run, 3, &[]);
        assert_eq!(run.too_many_bad_lines(), None);
        read(&mut run, 3, &[]);
        let words = run.too_many_bad_lines().unwrap();
        assert!(
            words.contains("6 bad lines") && words.contains("part-0:3:1"),
            "{words}"
        );
    }

    #[test]
    fn any_number_of_bad_lines_is_allowed_where_there_is_no_limit() {
        let mut run = run(None);
        read(&mut run, 1_000_000, &[]);
        assert_eq!((run.too_many_bad_lines(), run.bad_lines()), (None, 1_000_000));
    }

    #[test]
    fn a_pass_without_a_sample_is_told_of_when_all_its_units_are_read() {
        let mut run = run(None);
        read_samples(&mut run, 0, 0, &[]);
        assert_eq!(run.no_sample(), None, "the rest of the data may have some");
        read_samples(&mut run, 0, 0, &[]);
        let words = run.no_sample().unwrap();
        assert!(
            words.contains("pass 0 has found no sample") && words.contains("`data_path`"),
            "{words}"
        );
    }

    #[test]
    fn a_pass_without_a_sample_has_its_bad_lines_named() {
        let mut run = run(None);
        read_samples(&mut run, 0, 3, &[]);
        read_samples(&mut run, 0, 4, &[]);
        let words = run.no_sample().unwrap();
        assert!(
            words.contains("7 lines were bad") && words.contains("part-0:3:1"),
            "{words}"
        );
    }

    #[test]
    fn a_pass_with_samples_in_one_unit_has_samples() {
        let mut run = run(None);
        read_samples(&mut run, 0, 3, &[]);
        read_samples(&mut run, 5, 0, &[]);
        assert_eq!(run.no_sample(), None);
    }

    #[test]
    fn a_slot_is_missing_when_no_unit_has_it() {
        let mut run = run(None);
        read(&mut run, 0, &["rare", "ghost"]);
        assert!(run.absent_slots().is_empty(), "the rest of the data may have it");
        read(&mut run, 0, &["ghost", "other"]);
        assert_eq!(run.absent_slots(), ["ghost"]);
    }
}
