//! Statistics of raw columns, and means measured on the data.

use clickmill_samples::{describe, fit_standardise};
use clickmill_types::schema::{DenseTransform, Slot};
use serde_json::json;

use crate::support::{config, schema, write};

#[test]
fn a_description_counts_rows_columns_and_bad_lines() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(
        folder.path(),
        "data",
        b"click:1 s:a s:b n:2\nbad\nclick:0 s:a n:4\nclick:0 n:\n",
    );
    let config = config(
        &[path],
        &json!({"kind": "slots"}),
        &json!({"max_bad_lines": null}),
    );
    let description = describe(&config, None).expect("some rows");
    assert_eq!((description.rows, description.bad_lines.count), (3, 1));
    assert_eq!(description.bad_lines.first()[0].line, 2);
    let label = description.label.expect("`click` is a label");
    assert!((label.rate - 1.0 / 3.0).abs() < 1e-9);
    let names: Vec<&str> = description
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(names, ["click", "s", "n"]);
    let s = &description.columns[1];
    assert_eq!((s.distinct, s.max_length, s.mean_length), (2, 2, 1.5));
    assert!((s.coverage - 2.0 / 3.0).abs() < 1e-9);
    assert!(s.numbers.is_none());
    let n = description.columns[2].numbers.as_ref().expect("`n` is numeric");
    assert_eq!((n.min, n.mean, n.max), (2.0, 3.0, 4.0));
}

#[test]
fn a_description_stops_at_its_limit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "data.csv", b"a,b\n1,x\n2,y\n3,z\n");
    let description = describe(&config(&[path], &json!({"kind": "csv"}), &json!({})), Some(2)).expect("rows");
    assert_eq!((description.rows, description.is_partial), (2, true));
    assert_eq!(description.columns[1].distinct, 2);
}

#[test]
fn fitting_measures_the_values_that_are_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "data.csv", b"y,n,c\n1,2,7\n0,,7\n1,6,7\n");
    let schema = schema(&[
        json!({"kind": "label", "name": "y"}),
        json!({"kind": "dense", "name": "n", "transform": {"kind": "standardise"}}),
        json!({"kind": "dense", "name": "c", "transform": {"kind": "standardise"}}),
    ]);
    let config = config(&[path], &json!({"kind": "csv"}), &json!({"batch_size": 2}));
    let fitted = fit_standardise(&schema, &config, None).expect("fits");
    let numbers: Vec<(Vec<f32>, Vec<f32>)> = fitted
        .slots
        .iter()
        .filter_map(|slot| match slot {
            Slot::Dense(dense) => match &dense.transform {
                DenseTransform::Standardise { mean, std } => Some((mean.clone(), std.clone())),
                DenseTransform::Identity | DenseTransform::Log1p | DenseTransform::MinMax { .. } => None,
            },
            Slot::Sparse(_) | Slot::Label(_) | Slot::Weight(_) | Slot::Group(_) => None,
        })
        .collect();
    assert_eq!(numbers, [(vec![4.0], vec![2.0]), (vec![7.0], vec![1.0])]);
}
