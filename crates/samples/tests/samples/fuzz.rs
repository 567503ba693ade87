//! Arbitrary bytes never panic a parser; valid rows come through as they were written.

use clickmill_samples::{FormatConfig, Parser, Rows};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{config, read, schema, write};

/// Every format with slots that use all of its kinds of columns; CSV has its header in a file.
fn parsers(folder: &std::path::Path) -> Vec<Parser> {
    let header = write(folder, "header.csv", b"label,n,s,d\n");
    write(folder, "users.dat", b"1::F::1::10::48067\n");
    write(folder, "movies.dat", b"1::Title::A|B\n");
    let slots = |label: &str, dense: &str, sparse: &str, value: &str| {
        vec![
            json!({"kind": "label", "name": "y", "column": label}),
            json!({"kind": "dense", "name": "n", "column": dense}),
            json!({"kind": "dense", "name": "w", "column": dense, "width": 2, "separator": ","}),
            json!({"kind": "sparse", "name": "s", "column": sparse, "separator": "|", "max_length": 3, "keep": "last"}),
            json!({"kind": "sparse", "name": "v", "column": value, "sign": "value", "missing": "skip"}),
            json!({"kind": "sparse", "name": "b", "column": sparse, "separator": "", "max_length": 9}),
            json!({"kind": "sparse", "name": "x", "cross": ["s", "b"], "max_length": 5, "keep": "last"}),
            json!({"kind": "sparse", "name": "l", "column": dense, "transform": {"kind": "log_square"}}),
            json!({"kind": "weight", "name": "weight", "column": label}),
            json!({"kind": "group", "name": "group", "column": sparse}),
        ]
    };
    [
        (json!({"kind": "criteo"}), slots("label", "I1", "C1", "C2")),
        (json!({"kind": "slots"}), slots("y", "n", "s", "v")),
        (json!({"kind": "show_click"}), slots("click", "show", "1", "2")),
        (json!({"kind": "libsvm"}), slots("label", "1", "features", "qid")),
        (json!({"kind": "csv"}), slots("label", "n", "s", "d")),
        (
            json!({"kind": "movielens"}),
            slots("rating", "age", "genres", "user_id"),
        ),
        (
            json!({"kind": "delimited", "delimiter": "||", "columns": ["y", "n", "s", "v"]}),
            slots("y", "n", "s", "v"),
        ),
    ]
    .into_iter()
    .map(|(format, slots)| {
        let format: FormatConfig = serde_json::from_value(format).expect("a format");
        Parser::new(&schema(&slots), &format, Some(&header)).expect("a parser")
    })
    .collect()
}

/// Bytes that look like lines more often than not.
fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => r"[0-9a-f:|, \t\n\r.\-#xyns]{0,12}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
        1 => Just(b"1::1::5::9\n".to_vec()),
        1 => Just(b"y:1 n:2 s:3 v:4\n".to_vec()),
        1 => Just(b"\"a\"\"b\",".to_vec()),
        1 => Just(vec![b'\t'; 39]),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// A line of a format with a label, a number and a sign.
type Line = fn(u8, i32, u64) -> String;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn arbitrary_bytes_never_panic_and_block_and_lines_agree(text in any_text()) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for parser in parsers(folder.path()) {
            let mut scratch = parser.scratch();
            let mut rows = Rows::new(parser.plan().shape());
            let mut faults = Vec::new();
            let lines = parser.parse_block(&text, 1000, &mut scratch, &mut rows, &mut faults);
            prop_assert!(rows.len() + faults.len() <= lines as usize);
            let mut single = Rows::new(parser.plan().shape());
            let mut num_bad = 0;
            for line in text.split_inclusive(|&byte| byte == b'\n') {
                if matches!(line, b"\n" | b"\r\n" | b"\r") {
                    continue;
                }
                num_bad += usize::from(line.contains(&0) || parser.parse_line(line, &mut scratch, &mut single).is_err());
            }
            prop_assert_eq!(num_bad, faults.len());
            prop_assert!(single.has_same_samples(&rows));
            prop_assert!(rows.is_finite());
        }
    }

    #[test]
    fn numbers_come_through_every_format_as_written(values in proptest::collection::vec((0u8..2, -1000i32..1000, 0u64..u64::MAX), 1..20)) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cases: [(Value, &str, Line); 5] = [
            (json!({"kind": "slots"}), "", |y, n, v| format!("v:{v} y:{y} n:{n}\n")),
            (json!({"kind": "csv"}), "y,n,v\n", |y, n, v| format!("{y},\"{n}\",{v}\n")),
            (json!({"kind": "csv", "delimiter": "\t"}), "v\tn\ty\n", |y, n, v| format!("{v}\t{n}\t{y}\n")),
            (json!({"kind": "delimited", "delimiter": "::", "columns": ["y", "n", "v"]}), "", |y, n, v| format!("{y}::{n}::{v}\n")),
            (json!({"kind": "delimited", "delimiter": ",", "columns": ["y", "n", "v"]}), "", |y, n, v| format!("{y},{n},{v}\r\n")),
        ];
        let slots = [
            json!({"kind": "label", "name": "y"}),
            json!({"kind": "dense", "name": "n"}),
            json!({"kind": "sparse", "name": "v", "sign": "value"}),
        ];
        for (index, (format, header, line)) in cases.into_iter().enumerate() {
            let mut text = header.to_owned();
            for &(y, n, v) in &values {
                text += &line(y, n, v);
            }
            let path = write(folder.path(), &format!("f{index}"), text.as_bytes());
            let batches = read(&schema(&slots), &config(&[path], &format, &json!({"batch_size": 7})), None).expect("valid rows");
            let found: Vec<(f32, f32, u64)> = batches
                .iter()
                .flat_map(|batch| (0..batch.num_rows).map(|row| {
                    (batch.labels[row], batch.dense[row], batch.groups[0].signs_of(row, 0).next().expect("one sign"))
                }))
                .collect();
            let expected: Vec<(f32, f32, u64)> = values.iter().map(|&(y, n, v)| (f32::from(y), n as f32, v)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
