//! CPU-seconds of the hot path: a Criteo file into signed, deduplicated batches, and deduplication alone.
//!
//! `cargo run --release -p clickmill-samples --example parse_speed -- FILE [THREADS]`
#![expect(clippy::print_stdout, reason = "a measurement is printed")]

use std::sync::Arc;
use std::time::Instant;

use clickmill_samples::{Dedup, Reader, ReaderConfig};
use clickmill_types::Schema;
use serde_json::json;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("usage: parse_speed FILE [THREADS]");
    let threads: usize = arguments
        .next()
        .map_or(1, |text| text.parse().expect("THREADS is a number"));
    read(&path, threads);
    dedup();
}

/// Label, 13 numbers, 26 signs: what a training run of the Criteo demo reads.
fn schema() -> Arc<Schema> {
    let mut slots = vec![json!({"kind": "label", "name": "label"})];
    slots.extend((1..=13).map(|i| json!({"kind": "dense", "name": format!("I{i}")})));
    slots.extend((1..=26).map(|i| json!({"kind": "sparse", "name": format!("C{i}"), "tables": ["t"]})));
    let text = json!({"version": 1, "slots": slots, "tables": [{"name": "t", "dim": 8}]}).to_string();
    Arc::new(Schema::from_json(&text).expect("the schema is valid"))
}

fn read(path: &str, threads: usize) {
    const REPEATS: usize = 5;
    let config =
        json!({"files": [path], "format": {"kind": "criteo"}, "batch_size": 1000, "threads": threads});
    let config = ReaderConfig::from_json(&config.to_string()).expect("the configuration is valid");
    for _ in 0..REPEATS {
        let (wall, before) = (Instant::now(), cpu_seconds());
        let mut reader = Reader::open(&schema(), &config, None).expect("the file opens");
        let (mut rows, mut occurrences, mut unique) = (0, 0, 0);
        while let Some(batch) = reader.next().expect("the file is good") {
            rows += batch.num_rows;
            occurrences += batch.groups[0].inverse.len();
            unique += batch.groups[0].unique.len();
        }
        let (wall, after) = (wall.elapsed().as_secs_f64(), cpu_seconds());
        let (user, system) = (after.0 - before.0, after.1 - before.1);
        let megabytes = reader.progress().1 as f64 / 1e6;
        println!(
            "read: {rows} rows, {megabytes:.0} MB, {:.2} unique per occurrence; wall {wall:.3} s, user {user:.3} s, \
             system {system:.3} s; per user second {:.0} MB, {:.0} rows; per CPU-second {:.0} MB",
            unique as f64 / occurrences as f64,
            megabytes / user,
            rows as f64 / user,
            megabytes / (user + system),
        );
    }
}

/// Batches of 26,000 occurrences, skewed as those of a click log are.
fn dedup() {
    const OCCURRENCES: usize = 26_000;
    const BATCHES: usize = 400;
    let mut state = 1u64;
    let signs: Vec<u64> = (0..OCCURRENCES * 4)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let uniform = (state >> 11) as f64 / (1u64 << 53) as f64;
            clickmill_types::sign::mix((1e6f64.powf(uniform)) as u64)
        })
        .collect();
    let mut dedup = Dedup::new();
    let (mut unique, mut inverse) = (Vec::new(), Vec::new());
    let cpu = cpu_seconds().0;
    let mut num_unique = 0;
    for batch in 0..BATCHES {
        let start = batch % 4 * OCCURRENCES;
        unique.clear();
        inverse.clear();
        dedup.start();
        dedup.push(&signs[start..start + OCCURRENCES], &mut unique, &mut inverse);
        num_unique += unique.len();
    }
    let cpu = cpu_seconds().0 - cpu;
    println!(
        "dedup: {:.2} unique per occurrence; {:.0} M signs per CPU-second",
        num_unique as f64 / (OCCURRENCES * BATCHES) as f64,
        (OCCURRENCES * BATCHES) as f64 / cpu / 1e6,
    );
}

/// User and system time of this process.
#[expect(unsafe_code, reason = "the standard library does not tell CPU time")]
fn cpu_seconds() -> (f64, f64) {
    // SAFETY: `rusage` is plain numbers, and `getrusage` fills the one that it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}
