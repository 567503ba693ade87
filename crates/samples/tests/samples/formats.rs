//! What each format makes of a line, and what it says about a bad one.

use crate::support::{config, read, schema, write};
use clickmill_samples::{Parser, Rows};
use clickmill_types::sign::{cross, sign, vocabulary_seed};
use serde_json::{Value, json};

fn dense(name: &str) -> Value {
    json!({"kind": "dense", "name": name})
}

fn sparse(name: &str) -> Value {
    json!({"kind": "sparse", "name": name})
}

fn label(name: &str) -> Value {
    json!({"kind": "label", "name": name})
}

fn signs_of(name: &str, values: &[&str]) -> Vec<u64> {
    values
        .iter()
        .map(|value| sign(value.as_bytes(), vocabulary_seed(name)))
        .collect()
}

struct Row {
    dense: Vec<f32>,
    labels: Vec<f32>,
    /// Per slot of the first group.
    signs: Vec<Vec<u64>>,
}

/// The only row of a file of `text`, or the error's message.
fn one_row(format: &Value, slots: &[Value], text: &str) -> Result<Row, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "data", text.as_bytes());
    let batches = read(&schema(slots), &config(&[path], format, &json!({})), None)
        .map_err(|error| error.to_string())?;
    let [batch] = &batches[..] else {
        return Err(format!("{} batches", batches.len()));
    };
    assert_eq!(batch.num_rows, 1);
    Ok(Row {
        dense: batch.dense.clone(),
        labels: batch.labels.clone(),
        signs: batch.groups.first().map_or(Vec::new(), |group| {
            (0..group.num_slots)
                .map(|slot| group.signs_of(0, slot).collect())
                .collect()
        }),
    })
}

fn refusal(format: &Value, slots: &[Value], text: &str) -> String {
    match one_row(format, slots, text) {
        Ok(_) => panic!("{text:?} was accepted"),
        Err(message) => message,
    }
}

fn criteo_line(label: &str) -> String {
    let integers: Vec<String> = (1..=13).map(|i| i.to_string()).collect();
    let categories: Vec<String> = (1..=26).map(|i| format!("{i:08x}")).collect();
    format!("{label}\t{}\t{}\n", integers.join("\t"), categories.join("\t"))
}

#[test]
fn criteo_has_label_integers_and_categories() {
    let row = one_row(
        &json!({"kind": "criteo"}),
        &[label("label"), dense("I13"), sparse("C1"), sparse("C26")],
        &criteo_line("1"),
    )
    .expect("a good line");
    assert_eq!((row.labels, row.dense), (vec![1.0], vec![13.0]));
    assert_eq!(
        row.signs,
        [signs_of("C1", &["00000001"]), signs_of("C26", &["0000001a"])]
    );
}

#[test]
fn criteo_without_label_is_accepted_when_no_slot_needs_it() {
    let line = criteo_line("1");
    let line = &line[2..];
    let row = one_row(&json!({"kind": "criteo"}), &[dense("I1"), sparse("C26")], line).expect("39 columns");
    assert_eq!(row.dense, [1.0]);
    assert_eq!(row.signs, [signs_of("C26", &["0000001a"])]);
    let message = refusal(&json!({"kind": "criteo"}), &[label("label"), dense("I1")], line);
    assert!(message.contains("expected 40 columns, found 39"), "{message}");
    let format = json!({"kind": "criteo", "has_label": false});
    assert_eq!(
        one_row(&format, &[dense("I2")], line).expect("39 columns").dense,
        [2.0]
    );
    let message = refusal(&format, &[dense("I2")], &criteo_line("1"));
    assert!(message.contains("expected 39 columns, found 40"), "{message}");
}

#[test]
fn slot_text_takes_slots_in_any_order_and_ignores_unknown_ones() {
    let wide = json!({"kind": "dense", "name": "dense_feature", "width": 2});
    let many = json!({"kind": "sparse", "name": "7", "max_length": 3});
    let row = one_row(
        &json!({"kind": "slots"}),
        &[label("click"), wide.clone(), many, sparse("8")],
        "7:a other:1 dense_feature:0.5 7:b\tclick:0  dense_feature:-2 8:x:y\n",
    )
    .expect("a good line");
    assert_eq!((row.labels, row.dense), (vec![0.0], vec![0.5, -2.0]));
    assert_eq!(row.signs, [signs_of("7", &["a", "b"]), signs_of("8", &["x:y"])]);
    let message = refusal(&json!({"kind": "slots"}), &[wide], "dense_feature:1");
    assert!(message.contains("1 values, its width is 2"), "{message}");
    let message = refusal(&json!({"kind": "slots"}), &[sparse("8")], "8:1 nonsense");
    assert!(
        message.contains(":1:5: `nonsense` is not of the form `slot:value`"),
        "{message}"
    );
    let message = refusal(&json!({"kind": "slots"}), &[label("click")], "8:1");
    assert!(message.contains("label `click` is missing"), "{message}");
}

#[test]
fn show_click_text_has_counts_and_feasigns() {
    let slot = json!({"kind": "sparse", "name": "3", "sign": "value", "max_length": 2});
    let row = one_row(
        &json!({"kind": "show_click"}),
        &[label("click"), dense("show"), slot.clone()],
        "5 1 18446744073709551615:3 12:4 7:3\n",
    )
    .expect("a good line");
    assert_eq!((row.labels, row.dense), (vec![1.0], vec![5.0]));
    assert_eq!(row.signs, [vec![u64::MAX, 7]]);
    let message = refusal(&json!({"kind": "show_click"}), &[slot], "1 0 x7:3");
    assert!(message.contains("`x7` is not a sign"), "{message}");
    let message = refusal(&json!({"kind": "show_click"}), &[label("click")], "1");
    assert!(message.contains("`click` is missing"), "{message}");
    let message = refusal(&json!({"kind": "show_click"}), &[label("click")], "1 0 12");
    assert!(
        message.contains("`12` is not of the form `feasign:slot`"),
        "{message}"
    );
}

#[test]
fn libsvm_gives_indices_as_features_and_values_by_index() {
    let features = json!({"kind": "sparse", "name": "features", "max_length": 9});
    let qid = json!({"kind": "sparse", "name": "qid"});
    let row = one_row(
        &json!({"kind": "libsvm"}),
        &[label("label"), features.clone(), qid, dense("4")],
        "-1 qid:8 1:1 4:0.25 9:1.0 # 5:2\n",
    )
    .expect("a good line");
    assert_eq!((row.labels, row.dense), (vec![-1.0], vec![0.25]));
    assert_eq!(
        row.signs,
        [signs_of("features", &["1", "4", "9"]), signs_of("qid", &["8"])]
    );
    let slots = [label("label"), features];
    let message = refusal(&json!({"kind": "libsvm"}), &slots, "1 3:0.5");
    assert!(message.contains("value `0.5` is not 1"), "{message}");
    one_row(&json!({"kind": "libsvm", "values": "ignore"}), &slots, "1 3:0.5").expect("values are ignored");
    let message = refusal(&json!({"kind": "libsvm"}), &slots, "3:1 4:1");
    assert!(message.contains("label is missing"), "{message}");
    let message = refusal(&json!({"kind": "libsvm"}), &slots, "1 x:1");
    assert!(message.contains("index `x` is not a number"), "{message}");
}

#[test]
fn csv_takes_columns_from_its_header_and_quotes_from_the_rfc() {
    let slots = [label("click"), dense("n"), sparse("name")];
    let row = one_row(
        &json!({"kind": "csv"}),
        &slots,
        "\u{feff}name,\"n\",click,other\r\n\"a,\"\"b\"\"\",2,1,\r\n",
    )
    .expect("a good file");
    assert_eq!((row.labels, row.dense), (vec![1.0], vec![2.0]));
    assert_eq!(row.signs, [signs_of("name", &["a,\"b\""])]);
    let plain = one_row(
        &json!({"kind": "csv", "delimiter": ";"}),
        &slots,
        "name;n;click\nx,y;3;0",
    )
    .expect("a good file");
    assert_eq!(plain.signs, [signs_of("name", &["x,y"])]);
    let message = refusal(&json!({"kind": "csv"}), &slots, "name,n,click\n\"a,1,1\n");
    assert!(
        message.contains(":2:1: quote is not closed on its line"),
        "{message}"
    );
    let message = refusal(&json!({"kind": "csv"}), &slots, "name,n,click\n\"a\"b,1,1\n");
    assert!(message.contains(":2:4: text after a closing quote"), "{message}");
    let message = refusal(&json!({"kind": "csv"}), &slots, "name,n\na,1\n");
    assert!(
        message.contains("slot `click`: column `click` is not in the data; known columns: name, n"),
        "{message}"
    );
    let message = refusal(&json!({"kind": "csv"}), &slots, "name,n,n,click\na,1,1,1\n");
    assert!(message.contains("the header names column `n` twice"), "{message}");
    let message = refusal(&json!({"kind": "csv"}), &slots, "");
    assert!(message.contains("no header line"), "{message}");
}

#[test]
fn csv_files_must_agree_on_their_header() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = [
        write(folder.path(), "a.csv", b"x,click\n1,1\n"),
        write(folder.path(), "b.csv", b"click,x\n1,1\n"),
    ];
    let error = read(
        &schema(&[label("click"), dense("x")]),
        &config(&files, &json!({"kind": "csv"}), &json!({})),
        None,
    )
    .expect_err("headers differ");
    assert!(
        error
            .to_string()
            .contains("b.csv: line 1: the header is not that of the first file")
    );
}

#[test]
fn movielens_ratings_are_joined_with_users_and_movies() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ratings = write(folder.path(), "ratings.dat", b"7::9::4::978300760\n");
    let rating = json!({"kind": "label", "name": "rating", "transform": {"kind": "threshold", "at": 4.0}});
    let genres = json!({"kind": "sparse", "name": "genres", "separator": "|", "max_length": 4});
    let own = schema(&[rating.clone(), sparse("user_id")]);
    let joined = schema(&[rating, genres, sparse("title"), sparse("zip"), dense("age")]);
    let config = config(&[ratings], &json!({"kind": "movielens"}), &json!({}));
    assert_eq!(
        read(&own, &config, None).expect("side files are not needed")[0].labels,
        [1.0]
    );
    let error = read(&joined, &config, None).expect_err("side files are needed");
    assert!(error.to_string().contains("users.dat"), "{error}");
    write(folder.path(), "users.dat", b"7::F::25::10::48067\n");
    write(folder.path(), "movies.dat", b"9::Caf\xe9 (1995)::Drama|Comedy\n");
    let batch = &read(&joined, &config, None).expect("all files")[0];
    assert_eq!(batch.dense, [25.0]);
    let group = &batch.groups[0];
    assert_eq!(
        group.signs_of(0, 0).collect::<Vec<_>>(),
        signs_of("genres", &["Drama", "Comedy"])
    );
    let title = sign(b"Caf\xe9 (1995)", vocabulary_seed("title"));
    assert_eq!(group.signs_of(0, 1).collect::<Vec<_>>(), [title]);
    assert_eq!(
        group.signs_of(0, 2).collect::<Vec<_>>(),
        signs_of("zip", &["48067"])
    );
    write(folder.path(), "users.dat", b"8::F::25::10::48067\n");
    let error = read(&joined, &config, None).expect_err("the user is unknown");
    assert!(
        error
            .to_string()
            .contains(":1:1: user_id `7` is not in users.dat"),
        "{error}"
    );
}

#[test]
fn delimited_text_takes_any_delimiter_and_labels_that_are_words() {
    let income = json!({"kind": "label", "name": "income",
        "transform": {"kind": "one_of", "values": [">50K", ">50K."]}});
    let format = json!({"kind": "delimited", "delimiter": ", ", "columns": ["age", "work", "income"]});
    let slots = [income, dense("age"), sparse("work")];
    let row = one_row(&format, &slots, "39, State-gov, >50K.\n").expect("a good line");
    assert_eq!((row.labels, row.dense), (vec![1.0], vec![39.0]));
    assert_eq!(row.signs, [signs_of("work", &["State-gov"])]);
    assert_eq!(
        one_row(&format, &slots, "39, x, <=50K")
            .expect("a good line")
            .labels,
        [0.0]
    );
    let message = refusal(&format, &slots, "39, x\n");
    assert!(message.contains("expected 3 columns, found 2"), "{message}");
}

#[test]
fn an_unknown_column_names_the_slot_and_the_known_columns() {
    let message = refusal(&json!({"kind": "criteo"}), &[sparse("C27")], &criteo_line("1"));
    assert!(
        message.starts_with("slot `C27`: column `C27` is not in the data; known columns: label, I1"),
        "{message}"
    );
}

#[test]
fn sparse_transforms_limits_and_missing_values() {
    let format =
        json!({"kind": "delimited", "delimiter": ";", "columns": ["a", "b", "c", "d", "e", "f", "g"]});
    let slots = [
        json!({"kind": "sparse", "name": "a", "transform": {"kind": "bucketise", "boundaries": [1.0, 2.0]}}),
        json!({"kind": "sparse", "name": "b", "transform": {"kind": "log_square"}}),
        json!({"kind": "sparse", "name": "c", "separator": "|", "max_length": 2, "keep": "last"}),
        json!({"kind": "sparse", "name": "d", "separator": "", "max_length": 3}),
        json!({"kind": "sparse", "name": "e"}),
        json!({"kind": "sparse", "name": "f", "missing": "skip"}),
        json!({"kind": "sparse", "name": "g", "hash_size": 10, "vocabulary": "e"}),
    ];
    let row = one_row(&format, &slots, "2;100;x||y|z;wxyz;;;q\n").expect("a good line");
    let expected = [
        signs_of("a", &["2"]),
        signs_of("b", &["21"]),
        signs_of("c", &["y", "z"]),
        signs_of("d", &["w", "x", "y"]),
        signs_of("e", &[""]),
        vec![],
        vec![signs_of("e", &["q"])[0] % 10],
    ];
    assert_eq!(row.signs, expected);
}

#[test]
fn crosses_are_products_limited_by_their_length() {
    let format = json!({"kind": "delimited", "delimiter": ";", "columns": ["a", "b"]});
    let many = |name: &str| json!({"kind": "sparse", "name": name, "separator": "|", "max_length": 9, "missing": "skip"});
    let slots = [
        json!({"kind": "sparse", "name": "x", "cross": ["a", "b"], "max_length": 9}),
        many("a"),
        many("b"),
        json!({"kind": "sparse", "name": "y", "cross": ["b", "a"], "max_length": 2, "keep": "last", "missing": "skip"}),
    ];
    let row = one_row(&format, &slots, "1|2;p|q|r\n").expect("a good line");
    let (a, b) = (signs_of("a", &["1", "2"]), signs_of("b", &["p", "q", "r"]));
    let seed = vocabulary_seed("x");
    let product: Vec<u64> = a
        .iter()
        .flat_map(|&left| b.iter().map(move |&right| cross(left, right, seed)))
        .collect();
    assert_eq!(row.signs[0], product);
    assert_eq!((&row.signs[1], &row.signs[2]), (&a, &b));
    let seed = vocabulary_seed("y");
    assert_eq!(row.signs[3], [cross(b[2], a[0], seed), cross(b[2], a[1], seed)]);
    let empty = one_row(&format, &slots, "1|2;\n").expect("a good line");
    assert_eq!(empty.signs[0], signs_of("x", &[""]));
    assert!(empty.signs[3].is_empty());
}

#[test]
fn dense_transforms_defaults_and_separators() {
    let format = json!({"kind": "delimited", "delimiter": "\t", "columns": ["a", "b", "c", "d"]});
    let slots = [
        json!({"kind": "dense", "name": "a", "transform": {"kind": "min_max", "min": [-3.0], "max": [600.0]}}),
        json!({"kind": "dense", "name": "b", "transform": {"kind": "log1p"}}),
        json!({"kind": "dense", "name": "c", "width": 3, "separator": ",", "default": 0.5,
               "transform": {"kind": "standardise", "mean": [1.0], "std": [2.0]}}),
        json!({"kind": "dense", "name": "d", "default": -1.0}),
    ];
    let row = one_row(&format, &slots, "0\t-1\t1,,5\t\n").expect("a good line");
    assert_eq!(row.dense, [3.0 / 603.0, -(2.0f32.ln()), 0.0, 0.5, 2.0, -1.0]);
    let row = one_row(&format, &slots, "0\t-1\t\t7\n").expect("a good line");
    assert_eq!(row.dense[2..], [0.5, 0.5, 0.5, 7.0]);
    let message = refusal(&format, &slots, "0\t1\t1,2,3,4\t\n");
    assert!(
        message.contains(":1:11: slot `c`: more than 3 values"),
        "{message}"
    );
}

#[test]
fn standardise_without_numbers_says_to_fit() {
    let slot = json!({"kind": "dense", "name": "I1", "transform": {"kind": "standardise"}});
    let message = refusal(&json!({"kind": "criteo"}), &[slot], &criteo_line("1"));
    assert!(message.contains("fit the schema to the data first"), "{message}");
}

#[test]
fn weights_and_group_keys_come_with_the_batch() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "data", b"u1 0.5\nu2 2\nu1 1\n");
    let format = json!({"kind": "delimited", "delimiter": " ", "columns": ["user", "w"]});
    let slots = [
        json!({"kind": "weight", "name": "w"}),
        json!({"kind": "group", "name": "user"}),
    ];
    let batch = &read(&schema(&slots), &config(&[path], &format, &json!({})), None).expect("good lines")[0];
    assert_eq!(batch.weights, [0.5, 2.0, 1.0]);
    assert_eq!(batch.group_keys[0], batch.group_keys[2]);
    assert_ne!(batch.group_keys[0], batch.group_keys[1]);
    assert!(refusal(&format, &slots, "u -1").contains("weight `w`: `-1` is negative"));
    assert!(refusal(&format, &slots, "u ").contains("weight `w` is missing"));
}

#[test]
fn a_second_value_where_one_belongs_is_a_bad_line() {
    let slots = [
        label("click"),
        dense("price"),
        json!({"kind": "weight", "name": "w"}),
        json!({"kind": "group", "name": "user"}),
    ];
    let format = json!({"kind": "slots"});
    one_row(&format, &slots, "click:1 price:2 w:1 user:u").expect("one of each");
    for (line, expected) in [
        (
            "click:1 price:2 w:1 user:u click:0",
            ":1:34: label `click` has a second value: `0`",
        ),
        (
            "click:1 price:2 price:3 w:1 user:u",
            ":1:23: slot `price`: more than 1 values, which is its width",
        ),
        (
            "click:1 price:2 w:1 w:1 user:u",
            ":1:23: weight `w` has a second value: `1`",
        ),
        (
            "click:1 price:2 w:1 user:u user:v",
            ":1:33: group `user` has a second value: `v`",
        ),
    ] {
        let message = refusal(&format, &slots, line);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_line_without_reader_gives_the_row_that_a_reader_gives() {
    let slots = [label("label"), dense("I3"), sparse("C4")];
    let format = serde_json::from_value(json!({"kind": "criteo"})).expect("a format");
    let parser = Parser::new(&schema(&slots), &format, None).expect("no file is needed");
    let mut rows = Rows::new(parser.plan().shape());
    let mut scratch = parser.scratch();
    let line = criteo_line("1");
    parser
        .parse_line(line.as_bytes(), &mut scratch, &mut rows)
        .expect("a good line");
    parser
        .parse_line(line.trim_end().as_bytes(), &mut scratch, &mut rows)
        .expect("without its end");
    let fault = parser
        .parse_line(b"x", &mut scratch, &mut rows)
        .expect_err("a bad line");
    assert_eq!(fault.reason, "expected 40 columns, found 1");
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_label_that_its_transform_makes_infinite_is_a_bad_line() {
    let scaled = |scale: f32| {
        let transform = json!({"kind": "affine", "scale": scale, "shift": 0.0});
        json!({"kind": "label", "name": "y", "transform": transform})
    };
    let format = json!({"kind": "slots"});
    let row = one_row(&format, &[scaled(2.0)], "y:1e38\n").expect("within the range");
    assert_eq!(row.labels, [2e38]);
    let message = refusal(&format, &[scaled(100.0)], "y:1e38\n");
    assert!(
        message.contains(":1:3: label `y`: the transformed value is not finite"),
        "{message}"
    );
}
