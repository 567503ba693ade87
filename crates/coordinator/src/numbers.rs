//! With how many servers a new life of the coordinator goes on, where the run was scaled in the life before.
//!
//! Either the coordinator alone was started again, and those that the run was scaled to are still there; or all was ended and
//! is started as it was the first time. Nobody says which. So the larger of both numbers counts if so many servers come
//! within the time to gather, and else the smaller one.

use std::time::Duration;

use crate::coordinator::{Coordinator, Phase};
use crate::event::Happening;

impl Coordinator {
    /// Servers that the run needs, as far as is known.
    pub(crate) fn needed_servers(&self) -> u32 {
        let scaled = self.committed.route.servers;
        let Some(launched) = self.launched else {
            return scaled;
        };
        let (fewer, more) = (scaled.min(launched), scaled.max(launched));
        let is_early = self.gathering_until().is_some_and(|until| self.now < until);
        if is_early || (0..more).all(|index| self.members.is_live(index)) {
            more
        } else {
            fewer
        }
    }

    /// When the smaller number is enough; nothing where there is one number only.
    pub(crate) fn gathering_until(&self) -> Option<Duration> {
        let Phase::Gathering { since } = self.phase else {
            return None;
        };
        self.launched.map(|_| since + self.settings.gather_deadline)
    }

    /// All that are needed are there: from now on their number is that of the run.
    pub(crate) fn settle_number(&mut self) {
        let (servers, before) = (self.needed_servers(), self.committed.route.servers);
        self.launched = None;
        if servers == before {
            return;
        }
        // The commit file follows with the next snapshot: until then another life finds what this one has found.
        self.committed.route = self.committed.route.resized(servers);
        self.tell(Happening::GoesOn { servers, before });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::committed::Committed;
    use crate::event::Event;
    use crate::job::Strategy;
    use crate::job::tests::job;
    use crate::run::Run;
    use crate::settings::Settings;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A new life of a run that began with `launched` servers and was scaled; its first trainer has come.
    fn reborn(launched: u32, scaled: u32, servers: &[u32]) -> Coordinator {
        let mut committed = Committed::empty(launched);
        committed.route = committed.route.resized(scaled);
        committed.run = Some(Run::new(job(Strategy::Async, 2, 0, 1)).record());
        let settings = Settings {
            servers: launched,
            gather_deadline: at(10),
            ..Settings::default()
        };
        let mut coordinator = Coordinator::new(settings, Some(committed));
        coordinator.phase = Phase::Gathering {
            since: Duration::ZERO,
        };
        coordinator.has_agreed = true;
        for index in servers {
            come(&mut coordinator, *index);
        }
        coordinator
    }

    fn come(coordinator: &mut Coordinator, index: u32) {
        let (address, incarnation) = (format!("host:{index}"), 10 + u64::from(index));
        let (own, now) = (u64::from(index), coordinator.now);
        coordinator
            .members
            .register(Some(index), true, &address, incarnation, own, now);
    }

    /// How many servers load, if any do.
    fn loading(coordinator: &mut Coordinator, second: u64) -> Option<u32> {
        coordinator.handle(Event::Tick, at(second));
        matches!(coordinator.phase, Phase::Loading { .. }).then_some(coordinator.route.servers)
    }

    #[test]
    fn a_coordinator_alone_comes_back_to_the_number_that_was_scaled_to() {
        assert_eq!(loading(&mut reborn(2, 3, &[0, 1, 2]), 1), Some(3));
        let mut fewer = reborn(3, 2, &[0, 1]);
        assert_eq!(loading(&mut fewer, 9), None, "another one may come");
        assert_eq!(loading(&mut fewer, 10), Some(2));
    }

    #[test]
    fn a_run_that_is_started_anew_goes_on_with_the_servers_that_are_started() {
        let mut coordinator = reborn(2, 3, &[0, 1]);
        assert_eq!(loading(&mut coordinator, 4), None, "another one may come");
        let words = coordinator.waiting_words();
        assert!(
            words.starts_with(
                "waiting for pserver 2, which has not registered yet; goes on with 2 pservers in 6 s; "
            ),
            "{words}"
        );
        assert_eq!(loading(&mut coordinator, 10), Some(2));
        assert_eq!(coordinator.committed.route, coordinator.route);
        assert_eq!(loading(&mut reborn(3, 2, &[0, 1, 2]), 1), Some(3));
    }

    #[test]
    fn servers_that_are_late_are_waited_for_by_the_smaller_number() {
        let mut coordinator = reborn(2, 3, &[0]);
        assert_eq!(loading(&mut coordinator, 20), None);
        let words = coordinator.waiting_words();
        assert!(
            words.contains("pserver 1") && !words.contains("pserver 2"),
            "{words}"
        );
        come(&mut coordinator, 1);
        assert_eq!(loading(&mut coordinator, 21), Some(2));
    }
}
