//! Records and columns give the batches that the same values give as text.

use clickmill_samples::{Position, RecordBatcher, RecordConfig, TextColumn};
use serde_json::{Value, json};

use crate::support::{config, read, rows, schema, write};

fn slots() -> Vec<Value> {
    vec![
        json!({"kind": "label", "name": "y"}),
        json!({"kind": "dense", "name": "n"}),
        json!({"kind": "sparse", "name": "s", "max_length": 3}),
    ]
}

fn batcher(changes: &Value) -> RecordBatcher {
    let mut text = json!({"batch_size": 3});
    for (key, value) in changes.as_object().expect("changes are an object") {
        text[key] = value.clone();
    }
    let config = RecordConfig::from_json(&text.to_string()).expect("a configuration");
    RecordBatcher::new(&schema(&slots()), config, None).expect("a batcher")
}

fn add(batcher: &mut RecordBatcher, row: u32) {
    batcher.start();
    batcher.push(0, |text| text.extend_from_slice((row % 2).to_string().as_bytes()));
    batcher.push(1, |text| text.extend_from_slice(row.to_string().as_bytes()));
    batcher.push(2, |text| text.extend_from_slice(format!("v{row}").as_bytes()));
    batcher.push(2, |text| text.extend_from_slice(b"w"));
}

#[test]
fn records_equal_the_same_values_as_text() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text: Vec<u8> = (0..10)
        .flat_map(|row| format!("y:{} n:{row} s:v{row} s:w\n", row % 2).into_bytes())
        .collect();
    let path = write(folder.path(), "data", &text);
    for shuffle in [
        json!({"kind": "none"}),
        json!({"kind": "buffer", "rows": 4, "seed": 1}),
    ] {
        let changes = json!({"shuffle": shuffle, "pass": 2});
        let from_text = read(
            &schema(&slots()),
            &config(std::slice::from_ref(&path), &json!({"kind": "slots"}), &changes),
            None,
        )
        .expect("good lines");
        let mut batcher = batcher(&changes);
        let mut batches = Vec::new();
        for row in 0..10 {
            add(&mut batcher, row);
            batcher.commit().expect("a good record");
            batches.extend(batcher.take());
        }
        batches.extend(batcher.finish().expect("the end"));
        assert_eq!(rows(&batches), rows(&from_text));
        for (index, batch) in batches.iter().enumerate() {
            let config = RecordConfig::from_json(
                &json!({"batch_size": 3, "shuffle": changes["shuffle"], "pass": 2}).to_string(),
            )
            .expect("a configuration");
            let mut resumed =
                RecordBatcher::new(&schema(&slots()), config, Some(&batch.position)).expect("resumed");
            for row in batch.position.lines as u32..10 {
                add(&mut resumed, row);
                resumed.commit().expect("a good record");
            }
            assert_eq!(resumed.finish().expect("the end"), batches[index + 1..]);
        }
    }
}

#[test]
fn a_bad_record_is_named_by_its_number_and_left_out() {
    let mut batcher = batcher(&json!({}));
    add(&mut batcher, 0);
    batcher.commit().expect("a good record");
    batcher.start();
    batcher.push(0, |text| text.extend_from_slice(b"1"));
    batcher.push(1, |text| text.extend_from_slice(b"many"));
    let error = batcher.commit().expect_err("a bad record").to_string();
    assert_eq!(
        error,
        "record 1: key `n`: slot `n`: `many` is not a number (max_bad_lines is 0)"
    );
    assert_eq!(rows(&batcher.finish().expect("the end")).len(), 1);
}

#[test]
fn bad_records_are_counted_up_to_the_limit_with_their_sources() {
    let mut batcher = batcher(&json!({
        "max_bad_lines": 2,
        "sources": [["a.parquet", 4], ["b.parquet", 9]],
    }));
    let mut batches = Vec::new();
    for row in 0..6 {
        if row == 3 || row == 4 {
            batcher.start();
        } else {
            add(&mut batcher, row);
        }
        batcher.commit().expect("two bad records are allowed");
        batches.extend(batcher.take());
    }
    let bad: Vec<String> = batcher
        .bad_lines()
        .first()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        bad,
        [
            "a.parquet: record 3: key `y`: label `y` is missing",
            "b.parquet: record 0: key `y`: label `y` is missing",
        ]
    );
    batcher.start();
    let error = batcher.commit().expect_err("one too many").to_string();
    assert!(error.contains("3 bad lines, max_bad_lines is 2"), "{error}");
    assert!(error.contains("b.parquet: record 2: key `y`"), "{error}");
}

#[test]
fn a_position_counts_bad_records_too() {
    for shuffle in [
        json!({"kind": "none"}),
        json!({"kind": "buffer", "rows": 4, "seed": 1}),
    ] {
        let changes = json!({"max_bad_lines": null, "shuffle": shuffle});
        let run = |from: Option<&Position>, at_once: bool| {
            let mut text = json!({"batch_size": 3});
            for (key, value) in changes.as_object().expect("changes are an object") {
                text[key] = value.clone();
            }
            let config = RecordConfig::from_json(&text.to_string()).expect("a configuration");
            let mut batcher = RecordBatcher::new(&schema(&slots()), config, from).expect("a batcher");
            let mut batches = Vec::new();
            for row in from.map_or(0, |position| position.lines as u32)..20 {
                if row % 3 == 1 {
                    batcher.start();
                } else {
                    add(&mut batcher, row);
                }
                batcher.commit().expect("any number of bad records");
                if !at_once {
                    batches.extend(batcher.take());
                }
            }
            batches.extend(batcher.finish().expect("the end"));
            assert_eq!(batcher.bad_lines().count, 7);
            batches
        };
        let whole = run(None, false);
        assert_eq!(rows(&whole).len(), 13);
        assert_eq!(run(None, true), whole, "however the records come");
        for (index, batch) in whole.iter().enumerate() {
            assert_eq!(run(Some(&batch.position), true), whole[index + 1..]);
        }
    }
}

#[test]
fn records_that_are_all_bad_are_no_samples() {
    let mut batcher = batcher(&json!({"max_bad_lines": null}));
    batcher.start();
    batcher.commit().expect("any number of bad records");
    let error = batcher.finish().expect_err("no sample").to_string();
    assert_eq!(
        error,
        "all 1 records were bad, the first: record 0: key `y`: label `y` is missing"
    );
}

#[test]
fn a_key_that_never_occurs_is_an_error_behind_the_last_batch() {
    let mut batcher = batcher(&json!({}));
    batcher.start();
    batcher.push(0, |text| text.extend_from_slice(b"1"));
    batcher.push(1, |text| text.extend_from_slice(b"1"));
    batcher.commit().expect("a good record");
    assert_eq!(rows(&batcher.finish().expect("the end")).len(), 1);
    assert_eq!(batcher.absent_slots(), ["s"]);
    let error = batcher.check_slots().expect_err("`s` is absent").to_string();
    assert!(
        error.contains("slot `s`: key `s` never occurs in 1 records"),
        "{error}"
    );
}

#[test]
fn columns_of_text_equal_records() {
    let mut by_record = batcher(&json!({}));
    for row in 0..5 {
        add(&mut by_record, row);
        by_record.commit().expect("a good record");
    }
    let (label, number, values) = ("01010", "01234", "v0wv1wv2wv3wv4w");
    let ones: Vec<i64> = (0..=5).collect();
    let starts: Vec<i64> = (0..5)
        .flat_map(|row| [row * 3, row * 3 + 2])
        .chain([15])
        .collect();
    let lists: Vec<i64> = (0..=5).map(|row| row * 2).collect();
    let text = |offsets, values: &'static str, lists| {
        Some(TextColumn {
            offsets,
            values: values.as_bytes(),
            lists,
        })
    };
    let mut by_column = batcher(&json!({}));
    let columns = [
        text(&ones[..], label, None),
        text(&ones[..], number, None),
        text(&starts[..], values, Some(&lists[..])),
    ];
    by_column.push_columns(&columns).expect("good columns");
    assert_eq!(
        by_column.finish().expect("the end"),
        by_record.finish().expect("the end")
    );
}

#[test]
fn columns_with_wild_offsets_are_refused() {
    for offsets in [&[0i64, 9][..], &[-1, 1], &[1, 0], &[]] {
        let column = TextColumn {
            offsets,
            values: b"1",
            lists: None,
        };
        let error = batcher(&json!({}))
            .push_columns(&[Some(column), None, None])
            .expect_err("wild offsets");
        assert!(
            error.to_string().contains("column `y`: offsets do not ascend"),
            "{error}"
        );
    }
}
