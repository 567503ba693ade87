//! A reader resumed from any batch yields exactly what would have followed, whatever the threads.

use crate::support::{config, gzip, read, schema, write, zstd};
use proptest::prelude::*;
use serde_json::{Value, json};

fn any_shuffle() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"kind": "none"})),
        (1usize..40, 0u64..5).prop_map(|(rows, seed)| json!({"kind": "buffer", "rows": rows, "seed": seed})),
        (1usize..40, 0u64..5).prop_map(
            |(rows, seed)| json!({"kind": "block", "block_bytes": 4096, "rows": rows, "seed": seed})
        ),
    ]
}

/// Format, slots, and a maker of lines.
fn any_format() -> impl Strategy<Value = (Value, Vec<Value>, fn(u64) -> String)> {
    let label = json!({"kind": "label", "name": "click"});
    let many = json!({"kind": "sparse", "name": "s", "separator": "|", "max_length": 2});
    let csv: fn(u64) -> String = |row| format!("{},{row},a|{}|{}\n", row % 2, row % 5, row % 3);
    let slots: fn(u64) -> String = |row| format!("s:{} click:{} n:{row} s:x\n", row % 5, row % 2);
    let show_click: fn(u64) -> String = |row| format!("{row} {} {}:s {}:s\n", row % 2, row, row % 3);
    prop_oneof![
        Just((
            json!({"kind": "csv"}),
            vec![label.clone(), json!({"kind": "dense", "name": "n"}), many.clone()],
            csv
        )),
        Just((
            json!({"kind": "slots"}),
            vec![label.clone(), json!({"kind": "dense", "name": "n"}), many.clone()],
            slots
        )),
        Just((
            json!({"kind": "show_click"}),
            vec![label, json!({"kind": "dense", "name": "show"}), many],
            show_click
        )),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn resumed_batches_are_bit_identical(
        (format, slots, line) in any_format(),
        shuffle in any_shuffle(),
        batch_size in 1usize..30,
        threads in 1usize..4,
        file_rows in proptest::collection::vec((0u64..300, 0u8..3), 1..4),
        bad_every in 2u64..50,
    ) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut files = Vec::new();
        for (index, &(num_rows, compression)) in file_rows.iter().enumerate() {
            let mut text = if format["kind"] == "csv" { "click,n,s\n".to_owned() } else { String::new() };
            for row in 0..num_rows {
                text += &if row % bad_every == 1 { "bad\n".to_owned() } else { line(row + 1000 * index as u64) };
            }
            let bytes = match compression {
                0 => text.into_bytes(),
                1 => gzip(text.as_bytes()),
                _ => zstd(text.as_bytes()),
            };
            files.push(write(folder.path(), &format!("f{index}"), &bytes));
        }
        let changes = json!({"shuffle": shuffle, "batch_size": batch_size, "threads": threads, "max_bad_lines": null, "pass": 3});
        let config = config(&files, &format, &changes);
        let schema = schema(&slots);
        let Ok(whole) = read(&schema, &config, None) else {
            prop_assert!(file_rows.iter().all(|&(num_rows, _)| num_rows == 0));
            return Ok(());
        };
        let mut single = config.clone();
        single.threads = 1;
        prop_assert_eq!(&read(&schema, &single, None).expect("one thread"), &whole);
        for (index, batch) in whole.iter().enumerate() {
            let text = batch.position.to_json();
            let position = clickmill_samples::Position::from_json(&text).expect("a position is its text");
            let rest = read(&schema, &config, Some(&position)).expect("resumed");
            prop_assert_eq!(&rest[..], &whole[index + 1..]);
        }
    }
}
