//! The end of a wait.

use std::time::{Duration, Instant};

/// A moment after which nobody waits any longer.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    began: Instant,
    length: Duration,
}

impl Deadline {
    pub fn after(length: Duration) -> Self {
        Self {
            began: Instant::now(),
            length,
        }
    }

    /// None when it has passed.
    pub fn left(&self) -> Option<Duration> {
        self.length
            .checked_sub(self.began.elapsed())
            .filter(|left| !left.is_zero())
    }

    pub fn waited(&self) -> Duration {
        self.began.elapsed()
    }
}
