//! Files that come while others are read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use clickmill_samples::{Arrivals, Batch, Error, Position, Reader, ReaderConfig};
use serde_json::{Value, json};

use crate::log::{format, lines, slots};
use crate::support::{config, gzip, read, rows, schema, write};

/// A folder with files, and an empty one to which they shall come.
struct Place {
    _folder: tempfile::TempDir,
    origins: Vec<PathBuf>,
    targets: Vec<PathBuf>,
}

impl Place {
    fn new(contents: &[(&str, Vec<u8>)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["far", "near"] {
            fs::create_dir(folder.path().join(name)).expect("a temporary folder takes folders");
        }
        let origins = contents
            .iter()
            .map(|(name, bytes)| write(&folder.path().join("far"), name, bytes))
            .collect();
        let targets = contents
            .iter()
            .map(|(name, _)| folder.path().join("near").join(name))
            .collect();
        Self {
            _folder: folder,
            origins,
            targets,
        }
    }

    fn plain() -> Self {
        let text = lines(3000);
        Self::new(&[
            ("a", text[..20_000].to_vec()),
            ("b.gz", gzip(&text)),
            ("c", Vec::new()),
            ("d", text.clone()),
        ])
    }

    fn here(&self, changes: &Value) -> ReaderConfig {
        config(&self.origins, &format(), changes)
    }

    fn arriving(&self, changes: &Value) -> ReaderConfig {
        let files: Vec<Value> = self
            .origins
            .iter()
            .zip(&self.targets)
            .map(|(origin, target)| {
                let bytes = fs::read(origin).expect("it is there");
                let head = &bytes[..bytes.len().min(4)];
                json!({"path": target, "facts": {"bytes": bytes.len(), "head": head}})
            })
            .collect();
        let mut config = self.here(changes);
        let text = json!({"files": files, "format": format(), "batch_size": 1});
        config.files = ReaderConfig::from_json(&text.to_string()).expect("valid").files;
        config
    }

    fn bring(&self, file: usize) {
        copy(&self.origins[file], &self.targets[file]);
    }
}

fn copy(origin: &Path, target: &Path) {
    fs::copy(origin, target).expect("a temporary folder takes files");
}

/// Batches of a reader whose files are brought when they are wanted and removed when they are finished; also the
/// files that were brought.
fn read_arriving(
    place: &Place,
    config: &ReaderConfig,
    position: Option<&Position>,
) -> Result<(Vec<Batch>, Vec<usize>), Error> {
    let arrivals = Arc::new(Arrivals::new(place.targets.len()));
    thread::scope(|scope| {
        let helper = scope.spawn(|| {
            let mut brought = Vec::new();
            while let Some(file) = arrivals.take(1) {
                place.bring(file);
                arrivals.arrive(file);
                brought.push(file);
                for file in arrivals.take_finished() {
                    fs::remove_file(&place.targets[file]).expect("it was here");
                }
            }
            brought
        });
        let mut batches = Vec::new();
        let mut read = || -> Result<(), Error> {
            let mut reader = Reader::open_arriving(&schema(&slots()), config, position, Some(&arrivals))?;
            while let Some(batch) = reader.next()? {
                batches.push(batch);
            }
            Ok(())
        };
        let outcome = read();
        arrivals.close();
        let brought = helper.join().expect("it ends");
        outcome.map(|()| (batches, brought))
    })
}

#[test]
fn files_that_come_later_give_the_same_batches() {
    for shuffle in [
        json!({"kind": "none"}),
        json!({"kind": "buffer", "rows": 500, "seed": 3}),
        json!({"kind": "block", "block_bytes": 4096, "rows": 100, "seed": 3}),
    ] {
        let changes = json!({"shuffle": shuffle, "batch_size": 700, "threads": 2});
        let place = Place::plain();
        let expected = read(&schema(&slots()), &place.here(&changes), None).expect("local files");
        let (found, mut brought) =
            read_arriving(&place, &place.arriving(&changes), None).expect("arriving files");
        assert_eq!(rows(&found), rows(&expected));
        let positions = |batches: &[Batch]| -> Vec<Position> {
            batches.iter().map(|batch| batch.position.clone()).collect()
        };
        assert_eq!(positions(&found), positions(&expected));
        brought.sort_unstable();
        assert_eq!(brought, [0, 1, 2, 3]);
    }
}

#[test]
fn a_resumed_reader_asks_for_no_file_before_its_position() {
    let changes = json!({"batch_size": 700});
    let place = Place::plain();
    let expected = read(&schema(&slots()), &place.here(&changes), None).expect("local files");
    let last = expected.len() - 2;
    let (found, brought) = read_arriving(
        &place,
        &place.arriving(&changes),
        Some(&expected[last - 1].position),
    )
    .expect("arriving files");
    assert_eq!(rows(&found), rows(&expected[last..]));
    assert_eq!(brought, [3]);
}

#[test]
fn a_file_that_cannot_be_had_is_an_error_behind_what_lies_before() {
    let place = Place::plain();
    let arrivals = Arc::new(Arrivals::new(4));
    place.bring(0);
    arrivals.arrive(0);
    arrivals.fail(1, "the store is gone".to_owned());
    let config = place.arriving(&json!({"batch_size": 10}));
    let mut reader = Reader::open_arriving(&schema(&slots()), &config, None, Some(&arrivals)).expect("opens");
    assert!(reader.next().expect("the first file is there").is_some());
    let error = loop {
        match reader.next() {
            Ok(batch) => assert!(batch.is_some(), "the pass has ended"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("b.gz: the store is gone"), "{error}");
}

#[test]
fn a_reader_that_is_dropped_while_it_waits_ends_all_waits() {
    let place = Place::plain();
    let arrivals = Arc::new(Arrivals::new(4));
    let config = place.arriving(&json!({}));
    let reader = Reader::open_arriving(&schema(&slots()), &config, None, Some(&arrivals)).expect("opens");
    assert_eq!(arrivals.take(0), Some(0));
    drop(reader);
    assert_eq!(arrivals.take(3), None);
}
