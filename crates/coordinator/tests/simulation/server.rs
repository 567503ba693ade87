//! A simulated server: it holds pushes, applies them, freezes and writes what it has applied.

use std::collections::{BTreeMap, BTreeSet};

use clickmill_coordinator::{Answer, CallId, Command, LedgerEntry, Order, Push};

use crate::disk::Disk;
use crate::plan::{Applied, Batch, EVICTED};

/// One batch of a push.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) lease: u64,
    pub(crate) round: u64,
    pub(crate) lane: u32,
    pub(crate) batch: Batch,
    pub(crate) entry: LedgerEntry,
    /// Nothing of this lane comes after it.
    pub(crate) ends_lane: bool,
}

#[derive(Default)]
pub(crate) struct Server {
    pub(crate) incarnation: u64,
    pub(crate) wanted_index: Option<u32>,
    pub(crate) index: Option<u32>,
    /// Which it had as the incarnation before.
    pub(crate) last_index: Option<u32>,
    pub(crate) is_registered: bool,
    pub(crate) epoch: u64,
    pub(crate) order: Option<Order>,
    pub(crate) applied: Vec<Applied>,
    /// By incarnation: number and parts.
    pub(crate) held: BTreeMap<u64, (u64, Vec<Part>)>,
    pub(crate) last: BTreeMap<u64, u64>,
    pub(crate) closed: BTreeSet<u64>,
    /// Batches of the round that is not complete, by lane.
    pub(crate) pending: BTreeMap<u32, Part>,
    /// Pushes that wait for the round: process and number.
    pub(crate) waiting: Vec<(u64, u64)>,
    pub(crate) frozen: BTreeMap<u64, (usize, usize, Option<String>)>,
    pub(crate) prepared: Option<Vec<Applied>>,
    /// Calls that were done.
    pub(crate) done: BTreeMap<CallId, Result<Answer, String>>,
    pub(crate) scores: Vec<Batch>,
    pub(crate) scored: BTreeMap<u64, u64>,
}

impl Server {
    fn begin(&mut self, epoch: u64, order: &Order) {
        self.held.clear();
        self.pending.clear();
        self.waiting.clear();
        if epoch != self.epoch {
            self.closed.clear();
            self.last.clear();
            self.scored.clear();
        }
        if order.is_new_stage {
            self.scores.clear();
        }
        self.epoch = epoch;
        self.order = Some(order.clone());
    }

    /// Does what needs neither the coordinator nor other processes. `settle` is done by the world.
    pub(crate) fn obey(&mut self, command: &Command, disk: &mut Disk) -> Result<Answer, String> {
        match command {
            Command::Load {
                index,
                epoch,
                snapshot,
                metrics,
                order,
                ..
            } => {
                // The answer that gives a spare the place of a lost one may be on its way still.
                self.index = Some(*index);
                self.applied = match snapshot {
                    Some(snapshot) => disk.read(snapshot, *index)?,
                    None => Vec::new(),
                };
                self.frozen.clear();
                self.prepared = None;
                self.begin(*epoch, order);
                self.scores = metrics
                    .as_ref()
                    .map_or_else(Vec::new, |text| serde_json::from_str(text).unwrap());
                return Ok(self.holding());
            }
            Command::Begin { epoch, order } => self.begin(*epoch, order),
            Command::SettleQuery { incarnations } => {
                self.closed.extend(incarnations);
                let pushes = incarnations.iter().map(|incarnation| Push {
                    incarnation: *incarnation,
                    held: self.held.get(incarnation).map(|(number, _)| *number),
                    applied: self.last.get(incarnation).copied().unwrap_or(0),
                });
                return Ok(Answer::Settling {
                    pushes: pushes.collect(),
                });
            }
            Command::Freeze { snapshot, base } => {
                let start = match base {
                    Some(base) => {
                        self.frozen
                            .get(base)
                            .ok_or("an increment on something unknown")?
                            .1
                    }
                    None => 0,
                };
                assert!(self.pending.is_empty(), "a fence lies between rounds");
                let metrics = serde_json::to_string(&self.scores).unwrap();
                let frozen = (
                    start,
                    self.applied.len(),
                    (self.index == Some(0)).then_some(metrics),
                );
                assert!(
                    self.frozen.insert(*snapshot, frozen.clone()).is_none(),
                    "frozen once"
                );
                let (_, step, metrics) = frozen;
                return Ok(Answer::Frozen {
                    step: step as u64,
                    metrics,
                });
            }
            Command::Write { snapshot } => {
                let (start, end, _) = self.frozen.get(snapshot).ok_or("not frozen")?;
                let index = self.index.expect("it has registered");
                let file = disk.write(*snapshot, index, self.applied[*start..*end].to_vec())?;
                return Ok(Answer::Written { files: vec![file] });
            }
            Command::Retain { snapshots } => {
                if let Some(index) = self.index {
                    disk.retain(index, snapshots);
                }
                let last = snapshots.iter().max().copied().unwrap_or(0);
                self.frozen
                    .retain(|snapshot, _| *snapshot > last || snapshots.contains(snapshot));
            }
            Command::Discard { snapshot } => {
                if let Some(index) = self.index {
                    disk.discard(index, *snapshot);
                }
                self.frozen.remove(snapshot);
            }
            Command::Report {} => {
                return Ok(Answer::Report {
                    metrics: serde_json::to_value(&self.scores).unwrap(),
                });
            }
            Command::Prepare { index, snapshot, .. } => {
                assert_eq!(self.index, Some(*index));
                self.prepared = Some(disk.read(snapshot, *index)?);
            }
            Command::Move {
                index,
                epoch,
                snapshot,
                order,
                ..
            } => {
                assert_eq!(self.index, Some(*index));
                let there = disk.read(snapshot, *index)?;
                if let Some(prepared) = self.prepared.take() {
                    assert_eq!(
                        prepared,
                        there[..prepared.len()],
                        "an increment completes what was prepared"
                    );
                }
                // Who has frozen it is at that point anyway.
                if !self.frozen.contains_key(&snapshot.snapshot) {
                    self.applied = there;
                }
                self.frozen.clear();
                self.begin(*epoch, order);
                return Ok(self.holding());
            }
            Command::Evict { .. } => {
                let order = self.order.as_ref().expect("a stage is under way");
                assert!(self.pending.is_empty(), "a fence lies between rounds");
                self.applied
                    .push((order.round, EVICTED, (order.pass, EVICTED, 0)));
            }
            Command::Relieve {} | Command::Ping {} | Command::Stop { .. } | Command::Settle { .. } => {}
        }
        Ok(Answer::Done {})
    }

    fn holding(&self) -> Answer {
        Answer::Holding {
            rows: self.applied.len() as u64,
            bytes: 0,
        }
    }

    /// Applies a part that is committed. True: it was the last one of its round, which is applied now.
    pub(crate) fn apply(&mut self, part: Part, is_sync: bool) -> bool {
        if !is_sync {
            self.applied.push((0, 0, part.batch));
            return true;
        }
        let order = self.order.as_mut().expect("a server that applies has an order");
        assert_eq!(part.round, order.round, "a batch of another round");
        assert!(order.lanes.contains(&part.lane));
        assert!(
            self.pending.insert(part.lane, part).is_none(),
            "a lane brings one batch a round"
        );
        if self.pending.len() < order.lanes.len() {
            return false;
        }
        for (lane, part) in std::mem::take(&mut self.pending) {
            self.applied.push((part.round, lane, part.batch));
            if part.ends_lane {
                order.lanes.retain(|own| *own != lane);
            }
        }
        order.round += 1;
        true
    }
}
