//! Memory budgets of servers: told when they fill, relieved at a fence when they are full, and the end of the run
//! where nothing helps: rather that than a server that the kernel kills.

use crate::calls::Round;
use crate::coordinator::Coordinator;
use crate::event::Happening;
use crate::fence::Due;
use crate::message::{Answer, ServerStatistics};

/// Shares of the budget at which people are told.
const TOLD_SHARES: [f64; 2] = [0.80, 0.90];
/// Shares at which the coordinator has to hear of it at once.
pub const MEMORY_SHARES: [f64; 4] = [TOLD_SHARES[0], TOLD_SHARES[1], FULL_SHARE, LOST_SHARE];
/// Rows are evicted at the next fence.
pub const FULL_SHARE: f64 = 0.95;
/// What evictions leave.
pub const RELIEVED_SHARE: f64 = 0.85;
/// No fence has come in time: a snapshot takes long, or rows come faster than they can go.
const LOST_SHARE: f64 = 1.10;
/// Growth below this is no growth that fills anything.
const MIN_GROWTH: f64 = 1.0;

/// None where there is no budget.
pub fn memory_share(statistics: &ServerStatistics) -> Option<f64> {
    (statistics.max_bytes > 0).then(|| statistics.bytes as f64 / statistics.max_bytes as f64)
}

/// When the budget is full, at the growth of the last minute; none where it is not filling.
pub fn full_in_s(statistics: &ServerStatistics) -> Option<u64> {
    let left = statistics.max_bytes.checked_sub(statistics.bytes)?;
    let is_filling = statistics.max_bytes > 0 && statistics.bytes_growth_per_s >= MIN_GROWTH;
    is_filling.then(|| (left as f64 / statistics.bytes_growth_per_s) as u64)
}

/// What people are told when a server has taken more of its budget than `before`.
pub fn memory_happening(index: u32, before: &ServerStatistics, now: &ServerStatistics) -> Option<Happening> {
    let (share, share_before) = (memory_share(now)?, memory_share(before).unwrap_or(0.0));
    let is_told = |told: &f64| share_before < *told && share >= *told;
    TOLD_SHARES.iter().any(is_told).then(|| Happening::MemoryFills {
        index,
        percent: (100.0 * share) as u32,
        bytes: now.bytes,
        max_bytes: now.max_bytes,
        full_in_s: full_in_s(now),
    })
}

impl Coordinator {
    /// A server has said how it is; `before` is what it had said last.
    pub(crate) fn watch_memory(&mut self, index: u32, before: &ServerStatistics) {
        let Some(server) = self.members.servers().get(&index) else {
            return;
        };
        let statistics = server.statistics.clone();
        let Some(share) = memory_share(&statistics) else {
            return;
        };
        if let Some(happening) = memory_happening(index, before, &statistics) {
            self.tell(happening);
        }
        let is_active = self.is_running() && index < self.route.servers;
        if is_active && share >= LOST_SHARE {
            let whom = self.members.server_words(index, self.now);
            self.end_run(
                1,
                format!(
                    "{whom} takes {} bytes of its memory budget of {}, and rows could not be evicted in time; give it \
                     a larger `--memory-budget`, or scale to more servers",
                    statistics.bytes, statistics.max_bytes
                ),
            );
        } else if is_active && share >= FULL_SHARE {
            self.fence.dues.insert(Due::Relief);
        }
    }

    pub(crate) fn relieved(&mut self, round: &Round) {
        for (index, answer) in round.answers() {
            if let Answer::Relieved { relief } = answer {
                self.tell(Happening::MemoryRelieved {
                    index: *index,
                    evicted_by_rule: relief.by_rule,
                    evicted_by_score: relief.by_score,
                    evicted_by_age: relief.by_age,
                    rows: relief.rows,
                    bytes: relief.bytes,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(bytes: u64, growth: f64) -> ServerStatistics {
        ServerStatistics {
            bytes,
            max_bytes: 1000,
            bytes_growth_per_s: growth,
            ..ServerStatistics::default()
        }
    }

    #[test]
    fn a_budget_is_full_when_growth_has_taken_what_is_left() {
        assert_eq!(full_in_s(&statistics(400, 20.0)), Some(30));
        assert_eq!(full_in_s(&statistics(400, -20.0)), None);
        assert_eq!(full_in_s(&statistics(1200, 20.0)), None);
        let endless = ServerStatistics {
            max_bytes: 0,
            ..statistics(400, 20.0)
        };
        assert_eq!((full_in_s(&endless), memory_share(&endless)), (None, None));
    }
}
