//! What a reader does with files: order, shards, damage, and how it ends.

use std::collections::BTreeSet;

use crate::support::{config, gzip, read, rows, schema, write, zstd};
use clickmill_samples::{Error, Reader};
use serde_json::{Value, json};

fn lines(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|row| format!("{} {row} v{}\n", row % 2, row % 7).into_bytes())
        .collect()
}

fn format() -> Value {
    json!({"kind": "delimited", "delimiter": " ", "columns": ["click", "n", "c"]})
}

fn slots() -> Vec<Value> {
    vec![
        json!({"kind": "label", "name": "click"}),
        json!({"kind": "dense", "name": "n"}),
        json!({"kind": "sparse", "name": "c"}),
    ]
}

fn outcome(bytes: &[u8], name: &str, changes: &Value) -> Result<Vec<String>, Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), name, bytes);
    read(&schema(&slots()), &config(&[path], &format(), changes), None).map(|batches| rows(&batches))
}

fn refusal(bytes: &[u8], name: &str, changes: &Value) -> String {
    outcome(bytes, name, changes)
        .expect_err("must be refused")
        .to_string()
}

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
fn each_kind_of_bad_value_has_its_reason() {
    for (line, expected) in [
        ("1 nan a", ":1:3: slot `n`: `nan` is not allowed: NaN"),
        ("1 -inf a", ":1:3: slot `n`: `-inf` is not allowed: infinite"),
        (
            "1 1e99 a",
            ":1:3: slot `n`: `1e99` is beyond the range of a 32-bit float",
        ),
        ("1 x a", ":1:3: slot `n`: `x` is not a number"),
        (" 1 a", ":1:1: label `click` is missing"),
        ("y 1 a", ":1:1: label `click`: `y` is not a number"),
        ("1 1", ":1:4: expected 3 columns, found 2"),
        ("1 1 a b", ":1:6: expected 3 columns, found 4"),
        ("1 1 a\0b", ":1:6: NUL byte: this is not text"),
    ] {
        let message = refusal(line.as_bytes(), "data", &json!({}));
        assert!(message.contains(expected), "{message}");
    }
    let huge = format!("1 {} a\n", "9".repeat(30));
    assert_eq!(
        outcome(huge.as_bytes(), "data", &json!({}))
            .expect("still finite")
            .len(),
        1
    );
}

#[test]
fn binary_garbage_is_refused_with_a_place() {
    let garbage: Vec<u8> = (0..5000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let message = refusal(&garbage, "data", &json!({}));
    assert!(message.contains("data:1:"), "{message}");
}

#[test]
fn bad_lines_over_the_limit_stop_after_the_batches_before_them() {
    let mut text = lines(10);
    text.extend_from_slice(b"bad\n");
    text.extend(lines(10));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "data", &text);
    let mut reader = Reader::open(
        &schema(&slots()),
        &config(&[path], &format(), &json!({"batch_size": 5})),
        None,
    )
    .expect("opens");
    assert_eq!(reader.next().expect("first").map(|batch| batch.num_rows), Some(5));
    assert_eq!(
        reader.next().expect("second").map(|batch| batch.num_rows),
        Some(5)
    );
    let error = reader.next().expect_err("the bad line").to_string();
    assert!(error.contains("data:11:4: expected 3 columns"), "{error}");
    assert_eq!(reader.next().expect_err("the same again").to_string(), error);
    assert_eq!(reader.bad_lines().count, 1);
}

#[test]
fn a_label_that_is_neither_0_nor_1_is_a_bad_line_where_the_model_needs_it() {
    let labels = |transform: Value| {
        vec![
            json!({"kind": "label", "name": "click", "transform": transform}),
            json!({"kind": "label", "name": "n"}),
            json!({"kind": "sparse", "name": "c"}),
        ]
    };
    let read_labels = |slots: &[Value], changes: &Value| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = write(folder.path(), "data", b"1 7 a\n0.5 7 a\n0 7 a\n2 7 a\n1.0 7 a\n");
        let mut reader =
            Reader::open(&schema(slots), &config(&[path], &format(), changes), None).expect("it opens");
        let mut found = Vec::new();
        while let Some(batch) = reader.next()? {
            found.extend(batch.labels.iter().copied().step_by(2));
        }
        let bad: Vec<String> = reader
            .bad_lines()
            .first()
            .iter()
            .map(ToString::to_string)
            .collect();
        Ok::<_, Error>((found, bad))
    };
    let plain = labels(json!({"kind": "identity"}));
    let (found, bad) = read_labels(&plain, &json!({})).expect("any number");
    assert_eq!((found, bad.len()), (vec![1.0, 0.5, 0.0, 2.0, 1.0], 0));
    let binary = json!({"binary_label": true, "max_bad_lines": 2});
    let (found, bad) = read_labels(&plain, &binary).expect("two bad lines");
    assert_eq!(found, [1.0, 0.0, 1.0], "the second label may be anything");
    assert!(
        bad[0].contains("data:2:1: label `click`: `0.5` is neither 0 nor 1; a transform"),
        "{}",
        bad[0]
    );
    assert!(
        bad[1].contains("data:4:1: label `click`: `2` is neither"),
        "{}",
        bad[1]
    );
    let limit = json!({"binary_label": true, "max_bad_lines": 1});
    let error = read_labels(&plain, &limit).expect_err("one too many").to_string();
    assert!(error.contains("2 bad lines, max_bad_lines is 1"), "{error}");
    let threshold = labels(json!({"kind": "threshold", "at": 1.0}));
    let strict = json!({"binary_label": true});
    let (found, _) = read_labels(&threshold, &strict).expect("the transform makes them binary");
    assert_eq!(found, [1.0, 0.0, 0.0, 1.0, 1.0]);
    let affine = labels(json!({"kind": "affine", "scale": 2.0, "shift": -1.0}));
    let error = read_labels(&affine, &strict).expect_err("-1 and 3").to_string();
    assert!(
        error.contains(":3:1: label `click`: `0` becomes -1, which is neither"),
        "{error}"
    );
}

#[test]
fn only_the_first_bad_lines_are_described_all_are_counted() {
    let text: Vec<u8> = (0..50)
        .flat_map(|row| format!("bad\n1 {row} a\n").into_bytes())
        .collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "data", &text);
    let config = config(&[path], &format(), &json!({"max_bad_lines": null}));
    let mut reader = Reader::open(&schema(&slots()), &config, None).expect("opens");
    let mut count = 0;
    while let Some(batch) = reader.next().expect("no limit") {
        count += batch.num_rows;
    }
    assert_eq!(count, 50);
    assert_eq!(reader.bad_lines().count, 50);
    let numbers: Vec<u64> = reader.bad_lines().first().iter().map(|bad| bad.line).collect();
    assert_eq!(numbers, (0..20).map(|i| 2 * i + 1).collect::<Vec<u64>>());
}

#[test]
fn a_line_number_is_exact_in_a_range_of_a_large_file() {
    let mut text = lines(300_000);
    text.extend_from_slice(b"bad\n");
    let size = text.len() as u64;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "data", &text);
    let file = json!([{"path": path, "start": size / 3}]);
    let error = read(
        &schema(&slots()),
        &config(&[], &format(), &json!({"files": file, "batch_size": 1000})),
        None,
    )
    .expect_err("the bad line");
    assert!(error.to_string().contains("data:300001:4:"), "{error}");
}

#[test]
fn a_line_that_is_too_long_is_skipped_and_counted() {
    let mut text = lines(5);
    text.extend(std::iter::repeat_n(b'x', 5 << 20));
    text.push(b'\n');
    text.extend(lines(5));
    text.extend_from_slice(
        b"1 2 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
    );
    for name in ["data", "data.gz"] {
        let bytes = if name == "data" { text.clone() } else { gzip(&text) };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = write(folder.path(), name, &bytes);
        let config = config(
            &[path],
            &format(),
            &json!({"max_bad_lines": 2, "max_line_bytes": 64}),
        );
        let mut reader = Reader::open(&schema(&slots()), &config, None).expect("opens");
        let mut count = 0;
        while let Some(batch) = reader.next().expect("tolerated") {
            count += batch.num_rows;
        }
        assert_eq!(count, 10);
        let bad = reader.bad_lines().first();
        assert_eq!((bad[0].line, bad[1].line), (6, 12));
        assert!(
            bad[0]
                .reason
                .contains("line of 5242880 bytes is longer than max_line_bytes: 64"),
            "{}",
            bad[0]
        );
    }
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
