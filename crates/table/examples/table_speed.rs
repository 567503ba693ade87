//! Keys per second and bytes per key of a table on one core.
//!
//! `cargo run --release -p clickmill-table --example table_speed [rows] [dim] [bucket_bits]`
//! (16,000,000, 16 and 6 unless told otherwise; row-wise Adagrad) prints one JSON object. Keys are uniform over all rows, the hardest
//! case for a cache.

use std::hint::black_box;

use clickmill_table::{Buffers, Lookup, Rate, Table, TableConfig};
use clickmill_types::schema::TableSpec;

const BATCH: usize = 26_000;
const ROUNDS: usize = 400;

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|text| text.parse::<u64>().expect("a number"));
    let num_rows = arguments.next().unwrap_or(16_000_000);
    let dim = u32::try_from(arguments.next().unwrap_or(16)).expect("a dim");
    let before = resident_bytes();
    let mut config = TableConfig::new(TableSpec {
        name: "speed".to_owned(),
        dim,
        seed: 1,
        init: clickmill_types::schema::Init::default(),
    });
    if let Some(bits) = arguments.next() {
        config.bucket_bits = u32::try_from(bits).expect("a number of bits");
    }
    let mut table = Table::new(config).expect("a valid configuration");
    let sign = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);

    let mut signs = vec![0; BATCH];
    let mut values = vec![0.0_f32; BATCH * dim as usize];
    let start = cpu_seconds();
    for first in (0..num_rows).step_by(BATCH) {
        let count = BATCH.min((num_rows - first) as usize);
        for (at, slot) in signs[..count].iter_mut().enumerate() {
            *slot = sign(first + at as u64);
        }
        table
            .pull(&signs[..count], &mut values[..count * dim as usize])
            .expect("memory");
    }
    let create_seconds = cpu_seconds() - start;
    let resident = resident_bytes() - before;

    let buffers = Buffers::default();
    let gradients: Vec<f32> = (0..BATCH * dim as usize)
        .map(|at| (at % 17) as f32 * 1e-3 - 8e-3)
        .collect();
    let mut state = 88_172_645_463_325_252_u64;
    let mut batches = vec![vec![0_u64; BATCH]; ROUNDS];
    for slot in batches.iter_mut().flatten() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *slot = sign(state % num_rows);
    }
    let [mut read_seconds, mut pull_seconds, mut update_seconds] =
        [(); 3].map(|()| Vec::with_capacity(ROUNDS));
    for (round, batch) in batches.iter().enumerate() {
        table.begin_step(round as u64 + 1).expect("steps ascend");
        let start = cpu_seconds();
        black_box(Lookup::read(&table, &batches[ROUNDS - 1 - round], &buffers).expect("signs"));
        read_seconds.push(cpu_seconds() - start);
        let start = cpu_seconds();
        let lookup = Lookup::train(&mut table, batch, &buffers).expect("signs");
        pull_seconds.push(cpu_seconds() - start);
        black_box(lookup.values());
        lookup.add_gradients(&gradients).expect("shapes");
        // Between pull and update of a batch lies a model; another batch's rows stand for its cache traffic.
        black_box(Lookup::read(&table, &batches[(round + ROUNDS / 2) % ROUNDS], &buffers).expect("signs"));
        let start = cpu_seconds();
        table
            .apply(
                &lookup,
                Rate {
                    learning_rate: 0.01,
                    scale: 1.0,
                },
            )
            .expect("a fresh lookup");
        update_seconds.push(cpu_seconds() - start);
    }
    let report = serde_json::json!({
        "rows": table.len(),
        "dim": dim,
        "keys_per_batch": BATCH,
        "create_million_keys_per_second": million(create_seconds, num_rows as f64),
        "read_million_keys_per_second": Speed::of(read_seconds),
        "pull_million_keys_per_second": Speed::of(pull_seconds),
        "update_million_keys_per_second": Speed::of(update_seconds),
        "bytes_per_key": table.bytes() as f64 / table.len() as f64,
        "resident_bytes_per_key": resident as f64 / table.len() as f64,
    });
    write(&report);
}

/// Over the batches of a run, in million keys per second.
#[derive(serde::Serialize)]
struct Speed {
    mean: f64,
    median: f64,
    best: f64,
}

impl Speed {
    fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let keys = BATCH as f64;
        Self {
            mean: million(seconds.iter().sum(), keys * seconds.len() as f64),
            median: million(seconds[seconds.len() / 2], keys),
            best: million(seconds[0], keys),
        }
    }
}

fn million(seconds: f64, keys: f64) -> f64 {
    (keys / seconds / 1e4).round() / 100.0
}

fn write(report: &serde_json::Value) {
    use std::io::Write;
    writeln!(std::io::stdout(), "{report:#}").expect("stdout");
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    pages * 4096
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
