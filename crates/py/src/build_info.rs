//! How this binary was built and what the processor under it can do, for `clickmill doctor`.

use std::collections::BTreeSet;

use pyo3::prelude::*;
use serde_json::json;

/// Features that our own code is compiled for, function by function, and takes where all of a function's are
/// there: finding delimiters (`samples/src/scan.rs`), updates of rows and of dense parameters (`table`).
const PATHS: [&[&str]; 2] = [&["avx2", "bmi1", "bmi2", "popcnt", "lzcnt"], &["avx2"]];

/// JSON: version, profile, platform, the processor features that matter here with whether they are there, and
/// those that this build has code for and uses on this machine.
#[pyfunction]
pub(crate) fn build_info() -> String {
    let found = cpu_features();
    let has = |name: &str| found.iter().any(|&(other, is_there)| other == name && is_there);
    let used: BTreeSet<&str> = PATHS
        .iter()
        .filter(|path| path.iter().all(|name| has(name)))
        .flat_map(|path| path.iter().copied())
        .collect();
    let features: serde_json::Map<String, serde_json::Value> = found
        .iter()
        .map(|&(name, is_there)| (name.to_owned(), json!(is_there)))
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
        "arch": std::env::consts::ARCH,
        "os": std::env::consts::OS,
        "cpu_features": features,
        "cpu_features_used": used,
    })
    .to_string()
}

#[cfg(target_arch = "x86_64")]
fn cpu_features() -> Vec<(&'static str, bool)> {
    use std::arch::is_x86_feature_detected as has;
    vec![
        ("sse4.2", has!("sse4.2")),
        ("avx2", has!("avx2")),
        ("bmi1", has!("bmi1")),
        ("bmi2", has!("bmi2")),
        ("popcnt", has!("popcnt")),
        ("lzcnt", has!("lzcnt")),
        ("fma", has!("fma")),
        ("f16c", has!("f16c")),
        ("avx512f", has!("avx512f")),
        ("avx512bw", has!("avx512bw")),
        ("avx512vnni", has!("avx512vnni")),
        ("avx512bf16", has!("avx512bf16")),
    ]
}

#[cfg(target_arch = "aarch64")]
fn cpu_features() -> Vec<(&'static str, bool)> {
    use std::arch::is_aarch64_feature_detected as has;
    vec![
        ("neon", has!("neon")),
        ("bf16", has!("bf16")),
        ("sve", has!("sve")),
    ]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn cpu_features() -> Vec<(&'static str, bool)> {
    Vec::new()
}
