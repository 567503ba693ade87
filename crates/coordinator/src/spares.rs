//! Spares: servers that hold no buckets, and take the place of one that is lost.

use crate::coordinator::{Coordinator, Phase};
use crate::event::Happening;

impl Coordinator {
    /// Servers that must be there before the run can go on, and are not.
    pub(crate) fn missing_servers(&self) -> Vec<u32> {
        // A run that is over needs none.
        let needed = if self.committed.is_over {
            0
        } else {
            self.needed_servers()
        };
        (0..needed)
            .filter(|index| !self.members.is_live(*index))
            .collect()
    }

    /// The server at `own` was heard of. A spare takes the place of one that the run waits for; gives the index that it has.
    ///
    /// Only now, for the answer tells it so. A wish for more servers does not keep it: first the run has to go on.
    pub(crate) fn fill_place(&mut self, own: u32) -> u32 {
        let is_waiting = matches!(self.phase, Phase::Gathering { .. });
        // A commit file on its way may hold a route to other servers.
        if !is_waiting || self.snapshots.is_storing() || own < self.needed_servers() {
            return own;
        }
        let Some(spare) = self.members.servers().get(&own).filter(|server| !server.is_fixed) else {
            return own;
        };
        let address = spare.address.clone();
        // The first one is where the coordinator is.
        let Some(index) = self.missing_servers().into_iter().find(|index| *index != 0) else {
            return own;
        };
        self.members.give_place(own, index);
        self.tell(Happening::SpareTaken {
            index,
            spare: own,
            address,
        });
        index
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::committed::Committed;
    use crate::event::{Action, Event};
    use crate::job::Strategy;
    use crate::job::tests::job;
    use crate::message::{Command, Reply, Request, RequestId, ServerStatistics};
    use crate::run::Run;
    use crate::settings::Settings;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A cluster of `servers` that trains, and as many spares; a server's incarnation is 10 more than its index.
    fn running(servers: u32, spares: u32) -> Coordinator {
        let settings = Settings {
            servers,
            ..Settings::default()
        };
        let mut coordinator = Coordinator::new(settings, Some(Committed::empty(servers)));
        let run = Run::new(job(Strategy::Async, 2, 0, 1));
        coordinator.committed.run = Some(run.record());
        coordinator.run = Some(run);
        coordinator.has_agreed = true;
        coordinator.num_epochs = 1;
        coordinator.phase = Phase::Running {
            since: Duration::ZERO,
        };
        for index in 0..servers + spares {
            let wanted = Some(index).filter(|index| *index < servers);
            register(&mut coordinator, wanted, 10 + u64::from(index), 0);
        }
        coordinator
    }

    fn ask(coordinator: &mut Coordinator, request: Request, connection: u64, second: u64) -> Vec<Action> {
        let from = RequestId {
            connection,
            number: 1,
        };
        coordinator.handle(Event::Request { from, request }, at(second))
    }

    fn given(actions: &[Action]) -> Option<u32> {
        actions.iter().find_map(|action| {
            let Action::Reply { reply, .. } = action else {
                return None;
            };
            if let Reply::Registered { index, .. } = reply {
                Some(*index)
            } else {
                None
            }
        })
    }

    fn register(
        coordinator: &mut Coordinator,
        index: Option<u32>,
        incarnation: u64,
        second: u64,
    ) -> Option<u32> {
        let request = Request::Register {
            index,
            is_fixed: index.is_some(),
            address: format!("host:{incarnation}"),
            incarnation,
        };
        given(&ask(coordinator, request, incarnation, second))
    }

    fn beat(coordinator: &mut Coordinator, index: u32, incarnation: u64, second: u64) -> Vec<Action> {
        let request = Request::ServerHeartbeat {
            index,
            incarnation,
            statistics: ServerStatistics::default(),
        };
        ask(coordinator, request, incarnation, second)
    }

    /// All commands to load, by server.
    fn loads(actions: &[Action]) -> Vec<u32> {
        let load = |action: &Action| {
            let Action::Call { server, command, .. } = action else {
                return None;
            };
            let Command::Load { index, .. } = command else {
                return None;
            };
            assert_eq!(server, index);
            Some(*server)
        };
        actions.iter().filter_map(load).collect()
    }

    #[test]
    fn a_spare_takes_the_place_of_a_server_that_is_lost() {
        let mut coordinator = running(2, 1);
        assert_eq!(given(&beat(&mut coordinator, 2, 12, 1)), None, "nobody is lost");
        coordinator.lose_server(1, "it was killed");
        let actions = beat(&mut coordinator, 2, 12, 2);
        assert_eq!(given(&actions), Some(1));
        assert_eq!(loads(&actions), [0, 1], "recovery goes on at once");
        assert_eq!(coordinator.members.servers()[&1].address, "host:12");
        assert!(!coordinator.members.servers().contains_key(&2));
        // It may not have heard the answer.
        assert_eq!(given(&beat(&mut coordinator, 2, 12, 3)), Some(1));
        assert_eq!(given(&beat(&mut coordinator, 1, 12, 4)), None);
    }

    #[test]
    fn a_replacement_that_came_before_the_loss_was_known_takes_the_place() {
        let mut coordinator = running(2, 0);
        coordinator.handle(Event::Closed { from: 11 }, at(1));
        assert_eq!(register(&mut coordinator, None, 12, 2), Some(2));
        beat(&mut coordinator, 0, 10, 6);
        assert!(!coordinator.is_running(), "it was not back in time");
        assert_eq!(given(&beat(&mut coordinator, 2, 12, 6)), Some(1));
    }

    #[test]
    fn a_lost_server_that_turns_up_finds_its_place_taken_and_is_a_spare() {
        let mut coordinator = running(2, 1);
        coordinator.lose_server(1, "it was not heard of");
        beat(&mut coordinator, 2, 12, 1);
        let actions = beat(&mut coordinator, 1, 11, 2);
        let is_refused = |action: &Action| {
            matches!(
                action,
                Action::Reply {
                    reply: Reply::Refused { may_join: true, .. },
                    ..
                }
            )
        };
        assert!(actions.iter().any(is_refused), "dead is final");
        assert_eq!(register(&mut coordinator, Some(1), 21, 3), Some(2));
        coordinator.lose_server(1, "the spare is killed, too");
        assert_eq!(given(&beat(&mut coordinator, 2, 21, 4)), Some(1));
    }

    #[test]
    fn two_spares_take_the_places_of_two_lost_servers() {
        let mut coordinator = running(3, 2);
        coordinator.lose_server(2, "it was killed");
        coordinator.lose_server(1, "it was killed");
        assert_eq!(given(&beat(&mut coordinator, 4, 14, 1)), Some(1));
        let actions = beat(&mut coordinator, 3, 13, 1);
        assert_eq!((given(&actions), loads(&actions)), (Some(2), vec![0, 1, 2]));
    }

    #[test]
    fn a_spare_that_dies_in_its_new_place_is_followed_by_another() {
        let mut coordinator = running(2, 2);
        coordinator.lose_server(1, "it was killed");
        assert_eq!(given(&beat(&mut coordinator, 2, 12, 1)), Some(1));
        coordinator.lose_server(1, "it was killed, too");
        assert_eq!(given(&beat(&mut coordinator, 3, 13, 2)), Some(1));
    }

    #[test]
    fn a_server_that_was_given_its_index_keeps_it() {
        let mut coordinator = running(2, 0);
        register(&mut coordinator, Some(2), 12, 1);
        coordinator.lose_server(1, "it was killed");
        assert_eq!(given(&beat(&mut coordinator, 2, 12, 2)), None);
        let words = coordinator.waiting_words();
        assert!(
            words.contains("`clickmill pserver --coordinator host:10` starts one"),
            "{words}"
        );
    }

    #[test]
    fn no_spare_takes_the_place_of_the_coordinator() {
        let mut coordinator = running(2, 1);
        coordinator.lose_server(0, "its connection was closed");
        assert_eq!(given(&beat(&mut coordinator, 2, 12, 1)), None);
        assert_eq!(register(&mut coordinator, None, 13, 2), Some(3));
    }

    #[test]
    fn a_wish_that_counted_on_the_spare_waits_for_another_server() {
        let mut coordinator = running(2, 1);
        let words = ask(&mut coordinator, Request::Scale { pservers: 4 }, 1, 1);
        assert!(
            format!("{words:?}").contains("waiting for pserver 3;"),
            "{words:?}"
        );
        coordinator.lose_server(1, "it was killed");
        assert_eq!(given(&beat(&mut coordinator, 2, 12, 2)), Some(1));
        let status = coordinator.status();
        assert_eq!(
            (status.scaling_to, status.scaling_waits_for),
            (Some(4), vec![2, 3])
        );
        assert_eq!(status.scaling_failure, None);
    }
}
