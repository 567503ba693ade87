//! What a reader does with files: order, shards, damage, and how it ends.

use std::collections::BTreeSet;

use crate::log::{format, lines, outcome, refusal, slots};
use crate::support::{config, gzip, read, rows, schema, write, zstd};
use clickmill_samples::Reader;
use serde_json::{Value, json};

#[test]
fn compressed_files_give_the_rows_of_plain_ones() {
    let plain = outcome(&lines(5000), "data", &json!({})).expect("plain");
    assert_eq!(plain.len(), 5000);
    assert_eq!(
        outcome(&gzip(&lines(5000)), "data.gz", &json!({})).expect("gzip"),
        plain
    );
    assert_eq!(
        outcome(&zstd(&lines(5000)), "data", &json!({})).expect("zstd by magic"),
        plain
    );
    let text = lines(5000);
    let (first, second) = text.split_at(12_345);
    let members = [gzip(first), gzip(second)].concat();
    assert_eq!(outcome(&members, "data", &json!({})).expect("two members"), plain);
    let frames = [zstd(first), zstd(second)].concat();
    assert_eq!(outcome(&frames, "data", &json!({})).expect("two frames"), plain);
}

#[test]
fn truncated_or_damaged_compression_is_an_error_with_its_place() {
    for (name, whole) in [("data.gz", gzip(&lines(5000))), ("data.zst", zstd(&lines(5000)))] {
        for cut in [whole.len() / 2, whole.len() - 3] {
            let message = refusal(&whole[..cut], name, &json!({}));
            assert!(
                message.contains(name) && message.contains("damaged at byte"),
                "{message}"
            );
        }
    }
    let two = [gzip(&lines(10)), gzip(&lines(10))].concat();
    let cut = gzip(&lines(10)).len() + 4;
    let message = refusal(&two[..cut], "data.gz", &json!({}));
    assert!(message.contains("damaged at byte"), "{message}");
    let message = refusal(&lines(3), "data.gz", &json!({}));
    assert!(message.contains("its name says compressed"), "{message}");
}

#[test]
fn an_empty_file_is_fine_beside_one_with_samples_and_an_error_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = [
        write(folder.path(), "a", b""),
        write(folder.path(), "b", &lines(4)),
        write(folder.path(), "c", b"\n"),
    ];
    let schema = schema(&slots());
    let all = read(&schema, &config(&files, &format(), &json!({})), None).expect("some samples");
    assert_eq!(rows(&all).len(), 4);
    let error = read(&schema, &config(&files[..1], &format(), &json!({})), None).expect_err("none");
    assert!(error.to_string().contains("no sample in 1 files"), "{error}");
}

#[test]
fn line_ends_may_have_a_carriage_return_and_the_last_may_be_missing() {
    let expected = outcome(b"1 2 a\n0 3 b\n", "data", &json!({})).expect("plain");
    assert_eq!(
        outcome(b"1 2 a\r\n0 3 b\r\n", "data", &json!({})).expect("CRLF"),
        expected
    );
    assert_eq!(
        outcome(b"1 2 a\n0 3 b", "data", &json!({})).expect("no end"),
        expected
    );
    assert_eq!(
        outcome(b"\n1 2 a\n\r\n0 3 b\n\n", "data", &json!({})).expect("blank"),
        expected
    );
}

#[test]
fn values_that_are_no_utf8_are_just_bytes() {
    assert_eq!(
        outcome(b"1 2 \xff\xfe\n", "data", &json!({}))
            .expect("bytes")
            .len(),
        1
    );
}

#[test]
fn shards_divide_the_rows_without_loss_or_repetition() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = [
        write(folder.path(), "a", &lines(1000)),
        write(folder.path(), "b.gz", &gzip(&lines(10))),
        write(folder.path(), "c", b"1 5000 only"),
        write(folder.path(), "d.gz", &gzip(b"1 6000 x\n")),
    ];
    let schema = schema(&slots());
    let mut all = rows(&read(&schema, &config(&files, &format(), &json!({})), None).expect("whole"));
    all.sort();
    for by in ["files", "ranges"] {
        for count in [1, 2, 3] {
            let mut parts = Vec::new();
            for index in 0..count {
                let changes = json!({"shard": {"index": index, "count": count, "by": by}});
                parts.extend(rows(
                    &read(&schema, &config(&files, &format(), &changes), None).expect("a shard"),
                ));
            }
            parts.sort();
            assert_eq!(parts, all, "{count} shards by {by}");
        }
    }
    let changes = json!({"shard": {"index": 4, "count": 5, "by": "files"}});
    let error = read(&schema, &config(&files, &format(), &changes), None).expect_err("no file left");
    assert!(error.to_string().contains("shard 4 of 5"), "{error}");
}

#[test]
fn every_cut_of_a_file_into_ranges_gives_each_line_once() {
    let text = b"1 10 a\n0 2 bb\r\n1 3 c\n\n1 4 d";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "data", text);
    let schema = schema(&slots());
    let whole = rows(
        &read(
            &schema,
            &config(std::slice::from_ref(&path), &format(), &json!({})),
            None,
        )
        .expect("whole"),
    );
    for cut in 0..=text.len() {
        let files = json!([{"path": path, "start": 0, "end": cut}, {"path": path, "start": cut}]);
        let config = config(&[], &format(), &json!({"files": files}));
        assert_eq!(
            rows(&read(&schema, &config, None).expect("two ranges")),
            whole,
            "cut at {cut}"
        );
    }
}

#[test]
fn shuffles_permute_rows_by_seed_and_pass() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = [
        write(folder.path(), "a", &lines(9000)),
        write(folder.path(), "b", &lines(500)),
    ];
    let schema = schema(&slots());
    let shuffled =
        |changes: Value| rows(&read(&schema, &config(&files, &format(), &changes), None).expect("shuffled"));
    let plain = shuffled(json!({}));
    let buffer = |seed: u64, pass: u64| {
        shuffled(json!({"shuffle": {"kind": "buffer", "rows": 1000, "seed": seed}, "pass": pass}))
    };
    let block = |seed: u64, pass: u64| {
        shuffled(
            json!({"shuffle": {"kind": "block", "block_bytes": 4096, "rows": 100, "seed": seed}, "pass": pass}),
        )
    };
    let sorted = |mut rows: Vec<String>| {
        rows.sort();
        rows
    };
    for kind in [&buffer as &dyn Fn(u64, u64) -> Vec<String>, &block] {
        assert_eq!(kind(1, 0), kind(1, 0));
        assert_ne!(kind(1, 0), kind(2, 0));
        assert_ne!(kind(1, 0), kind(1, 1));
        assert_eq!(sorted(kind(1, 0)), sorted(plain.clone()));
    }
    // A window keeps its rows; a block shuffle mixes over the whole file.
    let window: BTreeSet<String> = buffer(1, 0)[..1000].iter().cloned().collect();
    assert_eq!(window, plain[..1000].iter().cloned().collect());
}

#[test]
fn a_slot_that_never_occurs_is_an_error_that_names_what_does() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(
        folder.path(),
        "data",
        b"click:1 dense_feature:3 1:4\nclick:0 dense_feature:3\n",
    );
    let schema = schema(&[
        json!({"kind": "label", "name": "click"}),
        json!({"kind": "dense", "name": "dense_var"}),
    ]);
    let files = [path];
    let strict = config(&files, &json!({"kind": "slots"}), &json!({}));
    let error = read(&schema, &strict, None)
        .expect_err("the slot is absent")
        .to_string();
    assert!(
        error.contains("slot `dense_var`: column `dense_var` never occurs in the data"),
        "{error}"
    );
    assert!(
        error.contains("columns that do: click, 1, dense_feature"),
        "{error}"
    );
    let lax = config(
        &files,
        &json!({"kind": "slots"}),
        &json!({"require_slots": false}),
    );
    read(&schema, &lax, None).expect("the check is off");
}

#[test]
fn a_reader_tells_which_slots_have_not_occurred_so_far() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "data", b"1 7:1\n0 9:1\n");
    let schema = schema(&[
        json!({"kind": "label", "name": "label"}),
        json!({"kind": "dense", "name": "a", "column": "7"}),
        json!({"kind": "dense", "name": "b", "column": "8"}),
        json!({"kind": "sparse", "name": "all", "column": "features", "max_length": 9}),
    ]);
    // `qid` is a column of the format that no slot asks for: it is not missed.
    let config = config(&[path], &json!({"kind": "libsvm"}), &json!({}));
    let mut reader = Reader::open(&schema, &config, None).expect("opens");
    assert_eq!(reader.absent_slots(), ["label", "all", "a", "b"]);
    reader.next().expect("a good batch").expect("a batch");
    assert_eq!(reader.absent_slots(), ["b"]);
    let error = reader.next().expect_err("`b` is absent").to_string();
    assert!(error.starts_with("slot `b`: column `8` never occurs"), "{error}");
}

#[test]
fn a_position_goes_on_when_slots_are_no_longer_required() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = [write(folder.path(), "data", b"y:1\ny:0\ny:1\n")];
    let schema = schema(&[
        json!({"kind": "label", "name": "y"}),
        json!({"kind": "dense", "name": "n"}),
    ]);
    let format = json!({"kind": "slots"});
    let strict = config(&files, &format, &json!({"batch_size": 2}));
    let lax = config(&files, &format, &json!({"batch_size": 2, "require_slots": false}));
    let mut reader = Reader::open(&schema, &strict, None).expect("opens");
    let first = reader.next().expect("a good batch").expect("a batch");
    let rest = read(&schema, &lax, Some(&first.position)).expect("the check is off");
    assert_eq!(rest[0].labels, [1.0]);
    let error = read(&schema, &strict, Some(&rest[0].position)).expect_err("nobody knows what occurred");
    assert!(error.to_string().contains("`require_slots: false`"), "{error}");
}

#[test]
fn keep_last_false_drops_the_short_batch() {
    let changes = json!({"keep_last": false, "batch_size": 4});
    assert_eq!(outcome(&lines(10), "data", &changes).expect("rows").len(), 8);
}

#[test]
fn a_position_of_other_files_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (a, b) = (
        write(folder.path(), "a", &lines(9)),
        write(folder.path(), "b", &lines(9)),
    );
    let schema = schema(&slots());
    let first = read(&schema, &config(&[a], &format(), &json!({})), None).expect("rows");
    let error = read(
        &schema,
        &config(&[b], &format(), &json!({})),
        Some(&first[0].position),
    )
    .expect_err("another file");
    assert!(error.to_string().contains("was made with other files"), "{error}");
}

#[test]
fn a_reader_that_is_dropped_early_stops_its_threads() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "data", &lines(400_000));
    let config = config(&[path], &format(), &json!({"threads": 3, "queue": 1}));
    for taken in 0..3 {
        let mut reader = Reader::open(&schema(&slots()), &config, None).expect("opens");
        for _ in 0..taken {
            reader.next().expect("a batch");
        }
        // Dropping joins the threads: the test hangs if one of them does not stop.
        drop(reader);
    }
}
