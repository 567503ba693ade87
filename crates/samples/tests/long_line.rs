//! A line of 100 MB costs no memory. Alone in its process: it looks at the process's peak.
#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::sync::Arc;

use clickmill_samples::{Reader, ReaderConfig};
use clickmill_types::Schema;
use serde_json::json;

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has status");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("a peak");
    line.split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .expect("a number of KiB")
}

#[test]
fn a_line_of_100_megabytes_is_skipped_without_being_held() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("data.gz");
    let file = std::fs::File::create(&path).expect("a file");
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    encoder.write_all(b"1 2\n").expect("the file takes bytes");
    for _ in 0..100 {
        encoder
            .write_all(&vec![b'x'; 1_000_000])
            .expect("the file takes bytes");
    }
    encoder.write_all(b"\n3 4\n").expect("the file takes bytes");
    encoder.finish().expect("the file takes bytes");
    let slots = json!([{"kind": "dense", "name": "a"}]);
    let schema = json!({"version": 1, "slots": slots, "tables": []}).to_string();
    let config = json!({
        "files": [path],
        "format": {"kind": "delimited", "delimiter": " ", "columns": ["a", "b"]},
        "batch_size": 10,
        "max_bad_lines": 1,
        "max_line_bytes": 1 << 20,
    });
    let config = ReaderConfig::from_json(&config.to_string()).expect("a configuration");
    let before = peak_kib();
    let schema = Arc::new(Schema::from_json(&schema).expect("a schema"));
    let mut reader = Reader::open(&schema, &config, None).expect("opens");
    let batch = reader.next().expect("tolerated").expect("a batch");
    assert_eq!(batch.dense, [1.0, 3.0]);
    let bad = &reader.bad_lines().first()[0];
    assert_eq!((bad.line, bad.column), (2, Some(1)));
    assert!(bad.reason.starts_with("line of 100000000 bytes"), "{bad}");
    let grown = peak_kib() - before;
    assert!(grown < 32 << 10, "the peak grew by {grown} KiB");
}
