//! Readers over small files, for the tests of this crate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clickmill_samples::{Batch, Error, Position, Reader, ReaderConfig};
use clickmill_types::Schema;
use serde_json::{Value, json};

/// A schema of label, dense and sparse columns, all in one table.
pub(crate) fn schema(slots: &[Value]) -> Arc<Schema> {
    let slots: Vec<Value> = slots
        .iter()
        .map(|slot| {
            let mut slot = slot.clone();
            if slot["kind"] == "sparse" && slot.get("tables").is_none() {
                slot["tables"] = json!(["t"]);
            }
            slot
        })
        .collect();
    let text =
        json!({"version": 1, "slots": slots, "tables": [{"name": "t", "dim": 4}, {"name": "u", "dim": 2}]});
    Arc::new(Schema::from_json(&text.to_string()).expect("the test's schema is valid"))
}

pub(crate) fn config(files: &[PathBuf], format: &Value, changes: &Value) -> ReaderConfig {
    let mut text = json!({"files": files, "format": format, "batch_size": 3});
    for (key, value) in changes.as_object().expect("changes are an object") {
        text[key] = value.clone();
    }
    ReaderConfig::from_json(&text.to_string()).expect("the test's configuration is valid")
}

/// All batches from a position on, or the first error.
pub(crate) fn read(
    schema: &Arc<Schema>,
    config: &ReaderConfig,
    position: Option<&Position>,
) -> Result<Vec<Batch>, Error> {
    let mut reader = Reader::open(schema, config, position)?;
    let mut batches = Vec::new();
    while let Some(batch) = reader.next()? {
        batches.push(batch);
    }
    Ok(batches)
}

pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a temporary folder takes files");
    path
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes bytes");
    encoder.finish().expect("memory takes bytes")
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory takes bytes")
}

/// One row as text, whatever its batch: dense values, labels and the signs of every slot.
pub(crate) fn rows(batches: &[Batch]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows {
            let dense = &batch.dense[row * batch.num_dense..(row + 1) * batch.num_dense];
            let labels = &batch.labels[row * batch.num_labels..(row + 1) * batch.num_labels];
            let signs: Vec<Vec<u64>> = batch
                .groups
                .iter()
                .flat_map(|group| (0..group.num_slots).map(move |slot| group.signs_of(row, slot).collect()))
                .collect();
            rows.push(format!("{dense:?} {labels:?} {signs:?}"));
        }
    }
    rows
}
