//! Where the time of a step went: to the servers, on the way back, or to waiting for other trainers.

use std::ops::{Add, AddAssign};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clickmill_wire::Timing;

/// What a trainer has waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Until the servers had what was sent to them and had applied it.
    pub push: Duration,
    /// Until what they answered was here.
    pub pull: Duration,
    /// For trainers that had not brought their part of a round.
    pub wait: Duration,
}

impl Spent {
    pub(crate) fn total(&self) -> Duration {
        self.push + self.pull + self.wait
    }

    /// For a step that brings nothing: the way to the servers is part of the reading.
    pub(crate) fn of_reading(self) -> Self {
        Self {
            push: Duration::ZERO,
            pull: self.push + self.pull,
            wait: self.wait,
        }
    }
}

impl Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            push: self.push + other.push,
            pull: self.pull + other.pull,
            wait: self.wait + other.wait,
        }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// One request and its answer.
pub(crate) struct Exchange {
    began: Instant,
    sent_us: u64,
}

impl Exchange {
    pub(crate) fn begin() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            began: Instant::now(),
            sent_us: since.map_or(0, |since| since.as_micros() as u64),
        }
    }

    /// The answer was that others are waited for.
    pub(crate) fn waited(&self) -> Spent {
        Spent {
            wait: self.began.elapsed(),
            ..Spent::default()
        }
    }

    pub(crate) fn end(&self, timing: Timing) -> Spent {
        divide(self.began.elapsed(), self.sent_us, timing)
    }
}

/// Shares out the time of an exchange. Where the clocks of two hosts disagree by more than it took, the time on
/// the way counts half in each direction.
fn divide(total: Duration, sent_us: u64, timing: Timing) -> Spent {
    let wait = Duration::from_micros(timing.waiting_us.into()).min(total);
    let left = total.saturating_sub(wait);
    let pushing = Duration::from_micros(timing.pushing_us.into()).min(left);
    let left = left.saturating_sub(pushing);
    let there = timing
        .received_us
        .checked_sub(sent_us)
        .map(Duration::from_micros)
        .filter(|there| *there <= left)
        .unwrap_or(left / 2);
    Spent {
        push: there + pushing,
        pull: left.saturating_sub(there),
        wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn timing(received_us: u64) -> Timing {
        Timing {
            received_us,
            pushing_us: 10_000,
            waiting_us: 20_000,
        }
    }

    #[test]
    fn the_way_there_is_push_and_the_way_back_is_pull() {
        let spent = divide(ms(100), 1_000_000, timing(1_050_000));
        assert_eq!((spent.push, spent.pull, spent.wait), (ms(60), ms(20), ms(20)));
        let spent = divide(ms(100), 1_000_000, timing(1_000_000));
        assert_eq!((spent.push, spent.pull, spent.wait), (ms(10), ms(70), ms(20)));
    }

    #[test]
    fn clocks_that_disagree_share_the_way() {
        for received in [0, 9_000_000] {
            let spent = divide(ms(100), 1_000_000, timing(received));
            assert_eq!((spent.push, spent.pull, spent.wait), (ms(45), ms(35), ms(20)));
        }
    }

    #[test]
    fn no_more_is_shared_out_than_was_spent() {
        let timing = Timing {
            received_us: 1,
            pushing_us: u32::MAX,
            waiting_us: u32::MAX,
        };
        let spent = divide(ms(5), 1, timing);
        assert_eq!(spent.total(), ms(5));
    }
}
