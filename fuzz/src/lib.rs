//! What the fuzz targets share: a parser of each format whose slots use every kind of transform.
//!
//! `cargo +nightly fuzz run criteo`, and likewise for every file of `fuzz_targets`.

use std::sync::Arc;

use clickmill_samples::{FormatConfig, Parser, Rows};
use clickmill_types::Schema;
use serde_json::json;

pub struct Target {
    parser: Parser,
}

impl Target {
    /// `columns` are those of label, number, text and sign.
    pub fn new(format: &FormatConfig, columns: [&str; 4]) -> Self {
        let [label, number, text, sign] = columns;
        let slots = json!([
            {"kind": "label", "name": "y", "column": label},
            {"kind": "dense", "name": "n", "column": number, "transform": {"kind": "log1p"}},
            {"kind": "dense", "name": "w", "column": number, "width": 2, "separator": ","},
            {"kind": "sparse", "name": "s", "column": text, "separator": "|", "max_length": 3, "keep": "last", "tables": ["t"]},
            {"kind": "sparse", "name": "v", "column": sign, "sign": "value", "missing": "skip", "tables": ["t"]},
            {"kind": "sparse", "name": "b", "column": text, "separator": "", "max_length": 9, "tables": ["t"]},
            {"kind": "sparse", "name": "x", "cross": ["s", "b"], "max_length": 5, "tables": ["t"]},
            {"kind": "sparse", "name": "l", "column": number, "transform": {"kind": "log_square"}, "tables": ["t"]},
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

    /// Must not panic, and every line is a row, bad, or blank.
    pub fn parse(&self, text: &[u8]) {
        let mut scratch = self.parser.scratch();
        let mut rows = Rows::new(self.parser.plan().shape());
        let mut faults = Vec::new();
        let lines = self
            .parser
            .parse_block(text, 4096, &mut scratch, &mut rows, &mut faults);
        assert!(rows.len() + faults.len() <= lines as usize);
    }
}
