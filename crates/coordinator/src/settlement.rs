//! Settlement: a push of a dead trainer is applied on all servers, or on none.
//!
//! A trainer says commit when all servers hold its push. So when it is dead, a push that all servers hold or have applied is
//! applied everywhere, and any other has been applied nowhere and is dropped everywhere. Servers take nothing
//! more from the trainer once they were asked, or the answers would age.
//!
//! In `sync` the others may be in the middle of the round that now lacks a lane. So all trainers are settled, the round counts if
//! it is complete by that and is dropped if not, and all begin a new epoch with the parameters that are there.

use std::collections::BTreeMap;

use crate::calls::Round;
use crate::coordinator::Coordinator;
use crate::event::Happening;
use crate::message::{Answer, Command, UpTo};

#[derive(Clone, Debug)]
pub(crate) struct Settlement {
    incarnations: Vec<u64>,
    /// A new epoch follows.
    pub(crate) is_turn: bool,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
    Due,
    Query(Round),
    Settle(Round),
    Begin(Round),
}

impl Settlement {
    pub(crate) fn round_mut(&mut self) -> Option<&mut Round> {
        match &mut self.step {
            Step::Due => None,
            Step::Query(round) | Step::Settle(round) | Step::Begin(round) => Some(round),
        }
    }

    pub(crate) fn round(&self) -> Option<&Round> {
        match &self.step {
            Step::Due => None,
            Step::Query(round) | Step::Settle(round) | Step::Begin(round) => Some(round),
        }
    }
}

/// Up to which number the pushes of each incarnation are applied: what every server holds or has applied.
fn decide<'a>(answers: impl Iterator<Item = &'a Answer>) -> Vec<UpTo> {
    let mut up_to: BTreeMap<u64, u64> = BTreeMap::new();
    for answer in answers {
        let Answer::Settling { pushes } = answer else {
            continue;
        };
        for push in pushes {
            let there = push.held.map_or(push.applied, |held| held.max(push.applied));
            let least = up_to.entry(push.incarnation).or_insert(there);
            *least = there.min(*least);
        }
    }
    up_to
        .into_iter()
        .map(|(incarnation, sequence)| UpTo {
            incarnation,
            sequence,
        })
        .collect()
}

impl Coordinator {
    /// A trainer that was given work in this epoch is no more.
    pub(crate) fn settle_later(&mut self, incarnation: u64, granted: u64) {
        let Some(run) = &self.run else { return };
        let has_lanes = run.ledger.has_lanes();
        let is_waited_for = has_lanes && run.ledger.owners().contains(&incarnation);
        if granted != self.epoch && !is_waited_for {
            return;
        }
        if !has_lanes {
            let incarnations = vec![incarnation];
            self.settlements.push(Settlement {
                incarnations,
                is_turn: false,
                step: Step::Due,
            });
        } else if !self.is_turning() {
            self.settlements.push(Settlement {
                incarnations: Vec::new(),
                is_turn: true,
                step: Step::Due,
            });
            self.settling.push(incarnation);
        } else {
            self.settling.push(incarnation);
        }
    }

    pub(crate) fn is_turning(&self) -> bool {
        self.settlements.iter().any(|settlement| settlement.is_turn)
    }

    pub(crate) fn step_settlements(&mut self) -> bool {
        // A held fence comes first: all are parked, so there is nothing that could go wrong meanwhile.
        if self.fence.is_held() {
            return false;
        }
        for place in 0..self.settlements.len() {
            if self.step_settlement(place) {
                return true;
            }
        }
        false
    }

    fn step_settlement(&mut self, place: usize) -> bool {
        let mut settlement = self.settlements[place].clone();
        if settlement.round().is_some_and(|round| !round.is_complete()) {
            return false;
        }
        if let Some(words) = settlement.round().and_then(Round::failure).map(ToOwned::to_owned) {
            self.end_run(1, words);
            return true;
        }
        let all = self.active_servers();
        settlement.step = match settlement.step {
            Step::Due => {
                if settlement.is_turn {
                    settlement.incarnations = self.all_granted();
                }
                let incarnations = settlement.incarnations.clone();
                let what = "to say what they hold of a dead trainer";
                let command = |_| Command::SettleQuery {
                    incarnations: incarnations.clone(),
                };
                Step::Query(self.ask(&all, what, command))
            }
            Step::Query(round) => {
                let up_to = decide(round.answers().values());
                let what = "to settle the pushes of a dead trainer";
                Step::Settle(self.ask(&all, what, |_| Command::Settle { up_to: up_to.clone() }))
            }
            Step::Settle(_) if settlement.is_turn => {
                self.settled(&settlement.incarnations);
                let order = self.new_turn();
                let epoch = self.epoch;
                let what = "to begin a new epoch";
                Step::Begin(self.ask(&all, what, |_| Command::Begin {
                    epoch,
                    order: order.clone(),
                }))
            }
            Step::Settle(_) | Step::Begin(_) => {
                if settlement.is_turn {
                    self.tell(Happening::EpochBegun {
                        epoch: self.epoch,
                        snapshot: None,
                    });
                } else {
                    self.settled(&settlement.incarnations);
                }
                self.settlements.remove(place);
                return true;
            }
        };
        self.settlements[place] = settlement;
        true
    }

    /// Everyone of whom servers may have pushes of this epoch.
    fn all_granted(&mut self) -> Vec<u64> {
        let live = self
            .members
            .trainers()
            .iter()
            .filter(|(_, trainer)| trainer.granted == self.epoch);
        let mut all: Vec<u64> = live.map(|(incarnation, _)| *incarnation).collect();
        all.append(&mut self.settling);
        all.sort_unstable();
        all.dedup();
        all
    }

    fn settled(&mut self, incarnations: &[u64]) {
        for incarnation in incarnations {
            if self.members.trainers().contains_key(incarnation) {
                continue;
            }
            if let Some(run) = &mut self.run {
                run.ledger.free(*incarnation);
            }
            self.tell(Happening::TrainerSettled {
                incarnation: *incarnation,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Push;

    fn up_to(pushes: &[(Option<u64>, u64)]) -> u64 {
        let answer = |(held, applied): &(Option<u64>, u64)| Answer::Settling {
            pushes: vec![Push {
                incarnation: 7,
                held: *held,
                applied: *applied,
            }],
        };
        let answers: Vec<Answer> = pushes.iter().map(answer).collect();
        decide(answers.iter())[0].sequence
    }

    #[test]
    fn a_push_that_all_servers_hold_is_applied() {
        assert_eq!(up_to(&[(Some(5), 4), (Some(5), 4)]), 5);
    }

    #[test]
    fn a_push_that_one_server_has_applied_is_applied_by_those_that_hold_it() {
        assert_eq!(up_to(&[(None, 5), (Some(5), 4), (Some(5), 4)]), 5);
    }

    #[test]
    fn a_push_that_one_server_has_never_seen_is_dropped() {
        assert_eq!(up_to(&[(Some(5), 4), (None, 4)]), 4);
        assert_eq!(up_to(&[(Some(1), 0), (None, 0)]), 0);
    }

    #[test]
    fn every_incarnation_is_settled_by_itself() {
        let push = |incarnation, held, applied| Push {
            incarnation,
            held,
            applied,
        };
        let answers = [
            Answer::Settling {
                pushes: vec![push(1, Some(3), 2), push(2, None, 8)],
            },
            Answer::Settling {
                pushes: vec![push(1, None, 2), push(2, Some(8), 7)],
            },
        ];
        let decided: Vec<u64> = decide(answers.iter())
            .iter()
            .map(|up_to| up_to.sequence)
            .collect();
        assert_eq!(decided, [2, 8]);
    }
}
