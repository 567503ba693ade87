//! What a server has done since it started, counted as it happens.

use std::sync::atomic::{AtomicU64, Ordering};

use clickmill_wire::step::Step;

use crate::push::Held;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pulls: AtomicU64,
    pub pushes: AtomicU64,
    pulled_rows: AtomicU64,
    pushed_rows: AtomicU64,
    /// Updates between the reading of rows and the push made with them, over all pushes that say so.
    stale_steps: AtomicU64,
    stale_pushes: AtomicU64,
    pub evicted_rows: AtomicU64,
    pub snapshots_written: AtomicU64,
    pub snapshots_failed: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub pulls: u64,
    pub pushes: u64,
    pub pulled_rows: u64,
    pub pushed_rows: u64,
    pub stale_steps: u64,
    pub stale_pushes: u64,
    pub evicted_rows: u64,
    pub snapshots_written: u64,
    pub snapshots_failed: u64,
}

impl Counters {
    pub(crate) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            pulls: read(&self.pulls),
            pushes: read(&self.pushes),
            pulled_rows: read(&self.pulled_rows),
            pushed_rows: read(&self.pushed_rows),
            stale_steps: read(&self.stale_steps),
            stale_pushes: read(&self.stale_pushes),
            evicted_rows: read(&self.evicted_rows),
            snapshots_written: read(&self.snapshots_written),
            snapshots_failed: read(&self.snapshots_failed),
        }
    }

    pub(crate) fn count_pulled(&self, feeds: usize, rows: u64) {
        if feeds > 0 {
            self.pulls.fetch_add(1, Ordering::Relaxed);
        }
        self.pulled_rows.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn count_pushed(&self, step: &Step<'_>) {
        let parts = step.pushes.iter().flat_map(|push| &push.parts);
        let rows = parts.map(|part| u64::from(part.rows)).sum();
        self.pushed_rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// To be called when `push` is about to become the update after `step`.
    pub(crate) fn count_staleness(&self, push: &Held, step: u64) {
        if let Some(read) = push.read_step {
            self.stale_steps
                .fetch_add(step.saturating_sub(read), Ordering::Relaxed);
            self.stale_pushes.fetch_add(1, Ordering::Relaxed);
        }
    }
}
