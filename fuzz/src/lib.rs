//! What the fuzz targets share: a parser of each format whose slots use every kind of transform, the
//! checksums of table files, and payloads of frames. How to run them: `make fuzz`, see README.md beside this crate.

use std::sync::Arc;

use clickmill_samples::{FormatConfig, Parser, Rows};
use clickmill_types::Schema;
use serde_json::json;

mod tables;
mod wire;

pub use tables::{base_table, increment, mend, table_bytes};
pub use wire::{frame_seeds, framed, hello_seeds, rows_payload, rows_seeds, step_payload, step_seeds};

/// Lines beyond this are bad: short enough for the fuzzer to find it.
const MAX_LINE_BYTES: usize = 4096;

pub struct Target {
    parser: Parser,
}

impl Target {
    /// `columns` are those of label, number, text and sign.
    pub fn new(format: &FormatConfig, columns: [&str; 4]) -> Self {
        let [label, number, text, sign] = columns;
        let slots = json!([
            {"kind": "label", "name": "y", "column": label},
            {"kind": "label", "name": "z", "column": label, "transform": {"kind": "affine", "scale": 100.0, "shift": -1.0}},
            {"kind": "label", "name": "q", "column": label, "transform": {"kind": "threshold", "at": 2.0}},
            {"kind": "dense", "name": "n", "column": number, "transform": {"kind": "log1p"}},
            {"kind": "dense", "name": "m", "column": number, "transform": {"kind": "min_max", "min": [0.0], "max": [0.001]}},
            {"kind": "dense", "name": "w", "column": number, "width": 2, "separator": ","},
            {"kind": "sparse", "name": "s", "column": text, "separator": "|", "max_length": 3, "keep": "last", "tables": ["t"]},
            {"kind": "sparse", "name": "v", "column": sign, "sign": "value", "missing": "skip", "tables": ["t"]},
            {"kind": "sparse", "name": "b", "column": text, "separator": "", "max_length": 9, "tables": ["t"]},
            {"kind": "sparse", "name": "x", "cross": ["s", "b"], "max_length": 5, "tables": ["t"]},
            {"kind": "sparse", "name": "l", "column": number, "transform": {"kind": "log_square"}, "tables": ["t"]},
            {"kind": "sparse", "name": "k", "column": number, "transform": {"kind": "bucketise", "boundaries": [-1.0, 0.0, 7.5]}, "tables": ["t"]},
            {"kind": "sparse", "name": "h", "column": text, "hash_size": 7, "tables": ["t"]},
            {"kind": "weight", "name": "weight", "column": label},
            {"kind": "group", "name": "group", "column": text},
        ]);
        let schema = json!({"version": 1, "slots": slots, "tables": [{"name": "t", "dim": 1}]});
        let schema = Schema::from_json(&schema.to_string()).expect("the schema is valid");
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, content) in [
            ("header.csv", "y,n,s,v\n"),
            ("users.dat", "1::F::1::10::48067\n"),
            ("movies.dat", "1::Title::A|B\n"),
        ] {
            std::fs::write(folder.path().join(name), content).expect("the folder takes files");
        }
        let first_file = folder.path().join("header.csv");
        let parser = Parser::new(&Arc::new(schema), format, Some(&first_file)).expect("a parser");
        Self { parser }
    }

    /// Must not panic; every line is a row, bad, or blank; every number is finite; and the lines one by one
    /// are the same samples as the block.
    pub fn parse(&self, text: &[u8]) {
        let shape = self.parser.plan().shape();
        let mut scratch = self.parser.scratch();
        let mut rows = Rows::new(shape);
        let mut faults = Vec::new();
        let lines = self
            .parser
            .parse_block(text, MAX_LINE_BYTES, &mut scratch, &mut rows, &mut faults);
        assert!(rows.len() + faults.len() <= lines as usize);
        assert!(rows.is_finite());

        let mut single = Rows::new(shape);
        let mut num_bad = 0;
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let bare = line.strip_suffix(b"\n").unwrap_or(line);
            let bare = bare.strip_suffix(b"\r").unwrap_or(bare);
            if bare.is_empty() {
                continue;
            }
            // A line alone is not asked for its length, nor for NUL bytes.
            let is_refused = bare.contains(&0) || bare.len() > MAX_LINE_BYTES;
            let is_bad = is_refused || self.parser.parse_line(line, &mut scratch, &mut single).is_err();
            num_bad += usize::from(is_bad);
        }
        assert_eq!(num_bad, faults.len());
        assert!(single.has_same_samples(&rows));
    }
}
