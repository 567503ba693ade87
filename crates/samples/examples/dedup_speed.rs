//! Occurrences that one core deduplicates per second.
//!
//! `cargo run --release -p clickmill-samples --example dedup_speed` prints one JSON object. Batches are like
//! those of a click log: 1,000 samples with 26 slots each, few values of a slot seen often and many seldom;
//! and, as the worst case, batches in which no sign occurs twice.

use std::hint::black_box;

use clickmill_samples::Dedup;
use clickmill_types::sign::mix;

const SAMPLES: u64 = 1_000;
const SLOTS: u64 = 26;
const VALUES: f64 = 1_000_000.0;
const ROUNDS: usize = 2_000;
/// Batches that take turns, so that the branch predictor cannot learn one by heart.
const BATCHES: usize = 64;

fn main() {
    let skewed: Vec<Vec<u64>> = (0..BATCHES as u64).map(skewed_batch).collect();
    let distinct: Vec<Vec<u64>> = (0..BATCHES as u64)
        .map(|batch| (0..SAMPLES * SLOTS).map(|at| mix(batch << 32 | at)).collect())
        .collect();
    let (log_speed, log_unique) = measure(&skewed);
    let (distinct_speed, _) = measure(&distinct);
    let report = serde_json::json!({
        "click_log_million_keys_per_second": log_speed,
        "click_log_unique_percent": log_unique,
        "all_distinct_million_keys_per_second": distinct_speed,
    });
    write(&report);
}

fn skewed_batch(batch: u64) -> Vec<u64> {
    (0..SAMPLES * SLOTS)
        .map(|at| {
            let unit = (mix(batch << 32 | at) >> 11) as f64 / (1_u64 << 53) as f64;
            let value = (VALUES * unit.powi(24)) as u64;
            mix((at % SLOTS) << 40 | value)
        })
        .collect()
}

/// Million occurrences per second of CPU time, and unique signs per hundred occurrences.
fn measure(batches: &[Vec<u64>]) -> (f64, f64) {
    let mut dedup = Dedup::new();
    let (mut unique, mut inverse) = (Vec::new(), Vec::new());
    let (mut occurrences, mut signs) = (0, 0);
    let start = cpu_seconds();
    for batch in batches.iter().cycle().take(ROUNDS) {
        dedup.start();
        unique.clear();
        inverse.clear();
        dedup.push(batch, &mut unique, &mut inverse);
        black_box((&unique, &inverse));
        occurrences += batch.len();
        signs += unique.len();
    }
    let seconds = cpu_seconds() - start;
    let rounded = |value: f64| (value * 100.0).round() / 100.0;
    (
        rounded(occurrences as f64 / seconds / 1e6),
        rounded(100.0 * signs as f64 / occurrences as f64),
    )
}

fn write(report: &serde_json::Value) {
    use std::io::Write;
    writeln!(std::io::stdout(), "{report:#}").expect("stdout");
}

/// CPU time of this thread: what other processes take away must not count.
#[expect(unsafe_code, reason = "the clock is a system call")]
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
