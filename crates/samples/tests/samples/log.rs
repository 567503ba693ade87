//! A log of three columns, as most tests of readers take it: label, number, value.

use clickmill_samples::Error;
use serde_json::{Value, json};

use crate::support::{config, read, rows, schema, write};

pub(crate) fn lines(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|row| format!("{} {row} v{}\n", row % 2, row % 7).into_bytes())
        .collect()
}

pub(crate) fn format() -> Value {
    json!({"kind": "delimited", "delimiter": " ", "columns": ["click", "n", "c"]})
}

pub(crate) fn slots() -> Vec<Value> {
    vec![
        json!({"kind": "label", "name": "click"}),
        json!({"kind": "dense", "name": "n"}),
        json!({"kind": "sparse", "name": "c"}),
    ]
}

/// The rows of a file with these bytes, or the first error.
pub(crate) fn outcome(bytes: &[u8], name: &str, changes: &Value) -> Result<Vec<String>, Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), name, bytes);
    read(&schema(&slots()), &config(&[path], &format(), changes), None).map(|batches| rows(&batches))
}

pub(crate) fn refusal(bytes: &[u8], name: &str, changes: &Value) -> String {
    outcome(bytes, name, changes)
        .expect_err("must be refused")
        .to_string()
}
