//! A server's memory budget: how much of it rows take, and making room when there is none.

use std::sync::atomic::{AtomicUsize, Ordering};

use clickmill_coordinator::{Answer, FULL_SHARE, MEMORY_SHARES, RELIEVED_SHARE, Relief};
use clickmill_table::Table;

use crate::Error;
use crate::host::Host;
use crate::life::Life;

/// Memory is given back in pages: it may take more than one round of evictions.
const MAX_ROUNDS: u32 = 4;

/// Rows of all tables, and the bytes that they take.
pub(crate) fn size(life: &Life) -> (u64, u64) {
    let tables = &life.model.tables;
    (
        tables.iter().map(Table::len).sum(),
        tables.iter().map(Table::bytes).sum(),
    )
}

/// Looks at the budget with every batch that may make rows: a second is long where rows come fast.
pub(crate) struct Guard {
    budget: u64,
    /// How many of the shares at which somebody must hear of it have been reached.
    level: AtomicUsize,
    alarm: Box<dyn Fn() + Send + Sync>,
}

impl Guard {
    /// `alarm` is called when a share is reached at which the coordinator has to be told.
    pub(crate) fn new(budget: u64, alarm: Box<dyn Fn() + Send + Sync>) -> Self {
        Self {
            budget,
            level: AtomicUsize::new(0),
            alarm,
        }
    }

    pub(crate) fn look(&self, life: &Life) {
        let share = size(life).1 as f64 / self.budget.max(1) as f64;
        let level = MEMORY_SHARES.iter().filter(|reached| share >= **reached).count();
        if self.level.swap(level, Ordering::Relaxed) < level {
            (self.alarm)();
        }
    }
}

impl Host {
    /// Evicts rows until there is room again; none where there is enough. An error: there is not, whatever goes.
    pub(crate) fn relieve(&self) -> Result<Answer, Error> {
        let Some(budget) = self.memory_budget else {
            return Ok(Answer::Done {});
        };
        let is_full = |bytes: u64| bytes as f64 >= FULL_SHARE * budget as f64;
        let (rows_before, before) = self.engine.with(|life| Ok(size(life)))?;
        if !is_full(before) {
            return Ok(Answer::Done {});
        }
        self.engine.forget_sessions();
        let relief = self
            .engine
            .with(|life| evict(life, RELIEVED_SHARE * budget as f64))?;
        let evicted = rows_before - relief.rows;
        self.engine
            .counters
            .evicted_rows
            .fetch_add(evicted, Ordering::Relaxed);
        if is_full(relief.bytes) {
            return Err(Error::NotReady {
                reason: format!(
                    "its memory budget of {budget} bytes is full: {} bytes are taken though {evicted} of {rows_before} \
                     rows were evicted; give it a larger `--memory-budget`, or scale to more servers",
                    relief.bytes
                ),
            });
        }
        Ok(Answer::Relieved { relief })
    }
}

/// Every table gives its part, until all together take no more than `wanted` bytes.
fn evict(life: &mut Life, wanted: f64) -> Result<Relief, Error> {
    let mut relief = Relief::default();
    for _ in 0..MAX_ROUNDS {
        let (_, bytes) = size(life);
        let share = wanted / bytes.max(1) as f64;
        if share >= 1.0 {
            break;
        }
        for table in &mut life.model.tables {
            let has_scores = table.config().eviction.show_click.is_some();
            let (by_rule, by_worth) = table.evict_to((table.len() as f64 * share) as u64)?;
            relief.by_rule += by_rule;
            if has_scores {
                relief.by_score += by_worth;
            } else {
                relief.by_age += by_worth;
            }
        }
    }
    (relief.rows, relief.bytes) = size(life);
    Ok(relief)
}
