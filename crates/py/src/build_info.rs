//! How this binary was built and what the processor under it can do, for `clickmill doctor`.

use pyo3::prelude::*;
use serde_json::json;

/// JSON: version, profile, platform, and the processor features that matter here with whether they are there.
#[pyfunction]
pub(crate) fn build_info() -> String {
    let features: serde_json::Map<String, serde_json::Value> = cpu_features()
        .into_iter()
        .map(|(name, is_there)| (name.to_owned(), json!(is_there)))
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
        "arch": std::env::consts::ARCH,
        "os": std::env::consts::OS,
        "cpu_features": features,
    })
    .to_string()
}

#[cfg(target_arch = "x86_64")]
fn cpu_features() -> Vec<(&'static str, bool)> {
    use std::arch::is_x86_feature_detected as has;
    vec![
        ("sse4.2", has!("sse4.2")),
        ("avx2", has!("avx2")),
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
