//! A simulated trainer: joins, asks for work, pushes in two steps, obeys fences, starts again when refused.

use std::collections::BTreeSet;

use clickmill_coordinator::{
    Decision, LaneGrant, LedgerEntry, Outcome, Place, Reply, Request, TrainerStatistics,
};

use crate::plan::{Plan, reading};
use crate::server::Part;

/// What a trainer does next; the world does it.
#[derive(Debug)]
pub(crate) enum Next {
    Ask(Request),
    /// Compute for a while, then push.
    Compute,
    /// Do a duty for a while, then say so.
    Work(Request),
    /// Nothing until something arrives.
    Rest,
    Exit,
}

/// A unit or a lane in the hands of a trainer.
#[derive(Clone, Debug)]
struct Hand {
    lease: u64,
    lane: u32,
    unit: u32,
    number: u64,
    is_last_unit: bool,
}

#[derive(Clone, Debug)]
enum Work {
    None,
    Train {
        pass: u32,
        round: u64,
        hands: Vec<Hand>,
        is_sync: bool,
        /// Before this round there is a fence by the number of batches.
        until: Option<u64>,
    },
    Validate {
        pass: u32,
        hand: Hand,
    },
}

/// A push on its way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) number: u64,
    pub(crate) parts: Vec<Part>,
    pub(crate) is_validation: bool,
    /// Indexes of servers that have not answered the present step.
    pub(crate) open: BTreeSet<u32>,
    pub(crate) is_committing: bool,
    fence: u64,
}

pub(crate) struct Trainer {
    pub(crate) name: String,
    pub(crate) incarnation: u64,
    pub(crate) place: Option<Place>,
    fence: u64,
    /// In `sync`: the fence that the answers to the last round named. All come to it behind the next round, since they
    /// have asked for its rows by then.
    heard: u64,
    /// In the answer before that.
    heard_before: u64,
    work: Work,
    pub(crate) flight: Option<Flight>,
    num_pushes: u64,
    /// The request that is open.
    pub(crate) asked: Option<Request>,
    /// A server has refused it: only the coordinator can say what comes now.
    pub(crate) is_stuck: bool,
    pub(crate) is_on_duty: bool,
    leaves: bool,
}

impl Trainer {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            incarnation: 0,
            place: None,
            fence: 0,
            heard: 0,
            heard_before: 0,
            work: Work::None,
            flight: None,
            num_pushes: 0,
            asked: None,
            is_stuck: false,
            is_on_duty: false,
            leaves: false,
        }
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.place.as_ref().map_or(0, |place| place.epoch)
    }

    pub(crate) fn leave_soon(&mut self) {
        self.leaves = true;
    }

    pub(crate) fn join(&mut self, plan: &Plan) -> Next {
        *self = Self {
            leaves: self.leaves,
            ..Self::new(self.name.clone())
        };
        Next::Ask(Request::Join {
            job: Box::new(plan.job.clone()),
            name: self.name.clone(),
        })
    }

    pub(crate) fn heartbeat(&self) -> Request {
        Request::Heartbeat {
            incarnation: self.incarnation,
            epoch: self.epoch(),
            statistics: TrainerStatistics::default(),
        }
    }

    fn lease(&mut self) -> Next {
        self.work = Work::None;
        if self.leaves {
            return Next::Ask(Request::Leave {
                incarnation: self.incarnation,
            });
        }
        Next::Ask(Request::Lease {
            incarnation: self.incarnation,
            epoch: self.epoch(),
            holding: Vec::new(),
        })
    }

    /// The answer to a heartbeat.
    pub(crate) fn beat(&mut self, reply: &Reply, plan: &Plan) -> Next {
        match reply {
            Reply::Refused { may_join: true, .. } => self.join(plan),
            Reply::End { .. } => Next::Exit,
            Reply::Beat { epoch, .. }
                if *epoch != self.epoch() && self.asked.is_none() && !self.is_on_duty =>
            {
                self.flight = None;
                self.is_stuck = false;
                self.lease()
            }
            _ => Next::Rest,
        }
    }

    /// The answer to the request that was open.
    pub(crate) fn take(&mut self, asked: Request, reply: Reply, plan: &Plan, fails: bool) -> Next {
        match reply {
            Reply::Welcome {
                incarnation,
                place,
                fence,
                ..
            } => {
                self.incarnation = incarnation;
                self.place = Some(place);
                self.fence = fence;
                self.lease()
            }
            Reply::Wait { for_whom, .. } => {
                assert!(for_whom.starts_with("waiting for "), "{for_whom}");
                Next::Ask(asked)
            }
            Reply::Refused { may_join, reason } => {
                assert!(may_join, "{reason}");
                self.join(plan)
            }
            Reply::Changed { place } => {
                self.place = Some(place);
                self.lease()
            }
            Reply::Train {
                lease,
                pass,
                unit,
                position,
                batches,
                ..
            } => {
                assert_eq!(position.map_or(0, |text| text.parse().unwrap()), batches);
                let hand = Hand {
                    lease,
                    lane: 0,
                    unit,
                    number: batches,
                    is_last_unit: false,
                };
                self.work = Work::Train {
                    pass,
                    round: 0,
                    hands: vec![hand],
                    is_sync: false,
                    until: None,
                };
                Next::Compute
            }
            Reply::Validate {
                lease,
                pass,
                unit,
                batches,
                ..
            } => {
                let hand = Hand {
                    lease,
                    lane: 0,
                    unit,
                    number: batches,
                    is_last_unit: false,
                };
                self.work = Work::Validate { pass, hand };
                Next::Compute
            }
            Reply::Lanes {
                pass,
                round,
                lanes,
                until,
                ..
            } => {
                assert!(until.is_none_or(|until| until > round), "a fence was passed by");
                let hand = |lane: LaneGrant| {
                    assert!(!lane.is_committed, "a trainer asks between rounds");
                    Hand {
                        lease: lane.lease,
                        lane: lane.lane,
                        unit: lane.unit,
                        number: lane.batches,
                        is_last_unit: lane.is_last_unit,
                    }
                };
                let hands = lanes.into_iter().map(hand).collect();
                self.work = Work::Train {
                    pass,
                    round,
                    hands,
                    is_sync: true,
                    until,
                };
                Next::Compute
            }
            Reply::Duty { duty, .. } => {
                let output = serde_json::to_value(Decision::default()).unwrap();
                let outcome = if fails {
                    Outcome::Failure {
                        words: "no space left".into(),
                    }
                } else {
                    Outcome::Output { output }
                };
                self.is_on_duty = true;
                Next::Work(Request::DutyDone {
                    incarnation: self.incarnation,
                    duty,
                    outcome,
                })
            }
            Reply::Released {
                number,
                keep,
                until: next,
                ..
            } => {
                self.fence = number;
                if let Work::Train { until, .. } = &mut self.work {
                    *until = next;
                }
                if keep && !self.leaves {
                    Next::Compute
                } else {
                    self.lease()
                }
            }
            Reply::Noted {} if matches!(asked, Request::Leave { .. }) => Next::Exit,
            Reply::Noted {} => self.lease(),
            Reply::End { .. } => Next::Exit,
            other => panic!("{other:?} to {asked:?}"),
        }
    }

    /// The computing is over: what is to be pushed.
    pub(crate) fn push(&mut self, plan: &Plan) {
        let (pass, round, hands, is_validation) = match &self.work {
            Work::None => return,
            Work::Train {
                pass, round, hands, ..
            } => (*pass, *round, hands.clone(), false),
            Work::Validate { pass, hand } => (*pass, 0, vec![hand.clone()], true),
        };
        let part = |hand: &Hand| {
            let is_last = hand.number + 1 == plan.pushes(hand.unit);
            Part {
                lease: hand.lease,
                round,
                lane: hand.lane,
                batch: (pass, hand.unit, hand.number),
                entry: LedgerEntry {
                    unit: hand.unit,
                    position: Some((hand.number + 1).to_string()),
                    samples: plan.samples(hand.unit, hand.number),
                    batches: u64::from(plan.batches[hand.unit as usize] > 0),
                    is_last,
                    reading: is_last.then(|| reading(hand.unit)),
                },
                ends_lane: is_last && hand.is_last_unit,
            }
        };
        self.num_pushes += 1;
        let num_servers = self.place.as_ref().map_or(0, |place| place.servers.len() as u32);
        self.flight = Some(Flight {
            number: self.num_pushes,
            parts: hands.iter().map(part).collect(),
            is_validation,
            open: (0..if is_validation { 1 } else { num_servers }).collect(),
            is_committing: is_validation,
            fence: 0,
        });
    }

    /// A server has answered the present step of the push. True: all have.
    pub(crate) fn answered(&mut self, server: u32, number: u64, is_commit: bool, fence: u64) -> bool {
        let Some(flight) = self.flight.as_mut() else {
            return false;
        };
        if flight.number != number || flight.is_committing != is_commit || !flight.open.remove(&server) {
            return false;
        }
        flight.fence = flight.fence.max(fence);
        flight.open.is_empty()
    }

    /// All servers hold the push: now they may apply it.
    pub(crate) fn commit(&mut self) {
        let num_servers = self.place.as_ref().map_or(0, |place| place.servers.len() as u32);
        if let Some(flight) = &mut self.flight {
            flight.is_committing = true;
            flight.open = (0..num_servers).collect();
        }
    }

    /// The push is applied everywhere: the batch boundary.
    pub(crate) fn boundary(&mut self) -> Next {
        let flight = self.flight.take().expect("a push has landed");
        let mut is_any_unit_over = false;
        let mut is_counted = false;
        match &mut self.work {
            Work::None => {}
            Work::Train {
                round, hands, until, ..
            } => {
                *round += 1;
                is_counted = *until == Some(*round);
                for (hand, part) in hands.iter_mut().zip(&flight.parts) {
                    hand.number += 1;
                    is_any_unit_over |= part.entry.is_last;
                }
            }
            Work::Validate { hand, .. } => {
                hand.number += 1;
                is_any_unit_over = flight.parts[0].entry.is_last;
            }
        }
        let is_sync = matches!(self.work, Work::Train { is_sync: true, .. });
        let has_work_left = !is_any_unit_over || is_sync;
        let heard = std::mem::replace(&mut self.heard, flight.fence);
        let heard_before = std::mem::replace(&mut self.heard_before, heard);
        // Without rounds, rows of the batch after the next were found when a fence was heard of; that one comes first.
        let fence = match (is_sync, is_counted) {
            (true, true) => flight.fence,
            (true, false) => heard,
            (false, _) => heard_before,
        };
        if fence > self.fence && has_work_left {
            return Next::Ask(Request::Fence {
                incarnation: self.incarnation,
                epoch: self.epoch(),
                number: fence,
                state: Some(format!("push {}", flight.number)),
            });
        }
        if is_any_unit_over || self.leaves {
            self.lease()
        } else {
            Next::Compute
        }
    }

    /// After a fence in `sync` a lane may stand at the start of its next unit.
    pub(crate) fn needs_lanes(&self, plan: &Plan) -> bool {
        match &self.work {
            Work::Train {
                hands, is_sync: true, ..
            } => hands.iter().any(|hand| hand.number >= plan.pushes(hand.unit)),
            Work::None | Work::Train { .. } | Work::Validate { .. } => false,
        }
    }
}
