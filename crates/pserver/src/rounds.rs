//! Rounds of lanes: an update waits until every lane that has data left has given its part.

use std::collections::{BTreeMap, BTreeSet};

use crate::Error;
use crate::push::Held;

pub(crate) struct Rounds {
    /// The round under way, counted over the run.
    pub number: u64,
    /// Lanes with data left.
    lanes: BTreeSet<u32>,
    committed: BTreeMap<u32, Held>,
    /// The fence that was wanted when the last round ended: the same for all, or some would park and others wait.
    pub fence: u64,
}

impl Rounds {
    pub(crate) fn new(number: u64, lanes: impl IntoIterator<Item = u32>, fence: u64) -> Self {
        Self {
            number,
            lanes: lanes.into_iter().collect(),
            committed: BTreeMap::new(),
            fence,
        }
    }

    /// Whether a lane may give its part of the round under way.
    pub(crate) fn check(&self, lane: u32) -> Result<(), Error> {
        if !self.lanes.contains(&lane) {
            return Err(Error::protocol(format!(
                "lane {lane} has no data left in this pass"
            )));
        }
        if self.committed.contains_key(&lane) {
            return Err(Error::protocol(format!(
                "lane {lane} has given its part of round {} before",
                self.number
            )));
        }
        Ok(())
    }

    /// Takes a lane's part of the round under way.
    pub(crate) fn commit(&mut self, held: Held) {
        self.committed.insert(held.lane, held);
    }

    /// All parts of the round, in the order of the lanes, once the last one is there; the next round begins.
    pub(crate) fn complete(&mut self, wanted_fence: u64) -> Option<Vec<Held>> {
        if self.committed.is_empty() || self.committed.len() < self.lanes.len() {
            return None;
        }
        let held = self.close();
        self.fence = wanted_fence;
        held
    }

    /// The parts that are there, in the order of the lanes; the next round begins.
    pub(crate) fn close(&mut self) -> Option<Vec<Held>> {
        let held: Vec<Held> = std::mem::take(&mut self.committed).into_values().collect();
        if held.is_empty() {
            return None;
        }
        for part in held.iter().filter(|part| part.is_last) {
            self.lanes.remove(&part.lane);
        }
        self.number += 1;
        Some(held)
    }

    /// Whom the round waits for, in words.
    pub(crate) fn missing(&self) -> String {
        let lanes: Vec<String> = self
            .lanes
            .iter()
            .filter(|lane| !self.committed.contains_key(lane))
            .map(u32::to_string)
            .collect();
        format!("round {} waits for lane {}", self.number, lanes.join(", "))
    }
}

/// Each part's share of the round: by samples.
pub(crate) fn shares(parts: &mut [Held]) -> Vec<(&mut Held, f32)> {
    let total: f64 = parts.iter().map(|part| f64::from(part.samples)).sum();
    let alone = parts.len() == 1;
    parts
        .iter_mut()
        .map(|part| {
            let share = f64::from(part.samples) / total.max(1.0);
            let share = if alone { 1.0 } else { share as f32 };
            (part, share)
        })
        .collect()
}
