//! How fast a server works and fills, from what it has counted.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::counters::Counts;

/// Pulls and pushes are told of the last seconds, growth of a longer time: rows come in waves.
const SPEED_WINDOW: Duration = Duration::from_secs(10);
const GROWTH_WINDOW: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub at: Instant,
    pub counts: Counts,
    pub rows: u64,
    pub bytes: u64,
}

/// A second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Speeds {
    pub pulls: f64,
    pub pushes: f64,
    pub pulled_rows: f64,
    pub pushed_rows: f64,
    /// Steps, not a speed: of the pushes of the window.
    pub staleness: f64,
    /// Less than nothing where rows went.
    pub rows: f64,
    pub bytes: f64,
}

#[derive(Debug, Default)]
pub(crate) struct Rates {
    samples: VecDeque<Sample>,
}

impl Rates {
    pub(crate) fn note(&mut self, sample: Sample) {
        let is_long = |second: &Sample| sample.at - second.at >= GROWTH_WINDOW;
        while self.samples.get(1).is_some_and(is_long) {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    pub(crate) fn speeds(&self) -> Speeds {
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else {
            return Speeds::default();
        };
        let is_recent = |sample: &&Sample| last.at - sample.at <= SPEED_WINDOW;
        let recent = self.samples.iter().find(is_recent).unwrap_or(last);
        let per_s = |from: u64, to: u64, since: Instant| {
            let seconds = (last.at - since).as_secs_f64();
            let change = if to >= from {
                (to - from) as f64
            } else {
                -((from - to) as f64)
            };
            if seconds > 0.0 { change / seconds } else { 0.0 }
        };
        let (now, then) = (&last.counts, &recent.counts);
        let stale_pushes = now.stale_pushes - then.stale_pushes;
        Speeds {
            pulls: per_s(then.pulls, now.pulls, recent.at),
            pushes: per_s(then.pushes, now.pushes, recent.at),
            pulled_rows: per_s(then.pulled_rows, now.pulled_rows, recent.at),
            pushed_rows: per_s(then.pushed_rows, now.pushed_rows, recent.at),
            staleness: (now.stale_steps - then.stale_steps) as f64 / stale_pushes.max(1) as f64,
            rows: per_s(first.rows, last.rows, first.at),
            bytes: per_s(first.bytes, last.bytes, first.at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(start: Instant, second: u64, pushes: u64, rows: u64) -> Sample {
        Sample {
            at: start + Duration::from_secs(second),
            counts: Counts {
                pushes,
                stale_steps: 3 * pushes,
                stale_pushes: pushes,
                ..Counts::default()
            },
            rows,
            bytes: 100 * rows,
        }
    }

    #[test]
    fn speed_is_of_the_last_seconds_and_growth_of_the_last_minute() {
        let (start, mut rates) = (Instant::now(), Rates::default());
        // Idle for 200 seconds, then 5 pushes and 10 rows a second for 40.
        for second in 0..=240 {
            let busy = second.max(200) - 200;
            rates.note(sample(start, second, 5 * busy, 10 * busy));
        }
        let speeds = rates.speeds();
        assert!((speeds.pushes - 5.0).abs() < 1e-9);
        assert!((speeds.staleness - 3.0).abs() < 1e-9);
        assert!((speeds.rows - 400.0 / 60.0).abs() < 1e-9);
        assert!((speeds.bytes - 40_000.0 / 60.0).abs() < 1e-6);
    }

    #[test]
    fn rows_that_went_make_growth_negative() {
        let (start, mut rates) = (Instant::now(), Rates::default());
        rates.note(sample(start, 0, 0, 100));
        rates.note(sample(start, 10, 0, 40));
        assert!((rates.speeds().rows + 6.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_told_of_a_single_moment() {
        let mut rates = Rates::default();
        assert_eq!(rates.speeds(), Speeds::default());
        rates.note(sample(Instant::now(), 0, 9, 9));
        assert_eq!(rates.speeds(), Speeds::default());
    }
}
