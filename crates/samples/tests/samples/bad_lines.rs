//! Lines that are no samples: what is said of them, and how many are borne.

use clickmill_samples::{Error, Reader};
use serde_json::{Value, json};

use crate::log::{format, lines, outcome, refusal, slots};
use crate::support::{config, gzip, read, schema, write};

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
fn bad_lines_behind_the_last_sample_are_counted_and_those_without_any() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let settings = json!({"batch_size": 2, "max_bad_lines": null});
    let mut text = lines(2);
    text.extend(b"bad\nbad\n");
    let path = write(folder.path(), "behind", &text);
    let mut reader =
        Reader::open(&schema(&slots()), &config(&[path], &format(), &settings), None).expect("opens");
    while reader.next().expect("no limit").is_some() {}
    assert_eq!(reader.bad_lines().count, 2);
    let path = write(folder.path(), "alone", b"bad\nbad\nbad\n");
    let mut reader =
        Reader::open(&schema(&slots()), &config(&[path], &format(), &settings), None).expect("opens");
    assert!(reader.next().is_err(), "there is no sample");
    assert_eq!(reader.bad_lines().count, 3);
}
