//! Claims about whole streams: merging, storing, refusing.

#![expect(
    clippy::expect_used,
    clippy::float_cmp,
    reason = "tests fail by panicking and compare bits"
)]

use clickmill_metrics::{
    Accumulator, BinaryMetrics, Error, ExactAuc, GroupAuc, GroupWeight, RegressionMetrics, Spacing,
};
use proptest::prelude::*;

type Samples = Vec<(f32, bool, u8, u64)>;

fn samples(max: usize) -> impl Strategy<Value = Samples> {
    prop::collection::vec((0.0_f32..=1.0, prop::bool::ANY, 0_u8..4, 0_u64..5), 0..max)
}

struct Columns {
    scores: Vec<f32>,
    labels: Vec<f32>,
    weights: Vec<f32>,
    groups: Vec<u64>,
}

fn columns(samples: &Samples) -> Columns {
    Columns {
        scores: samples.iter().map(|sample| sample.0).collect(),
        labels: samples
            .iter()
            .map(|sample| f32::from(u8::from(sample.1)))
            .collect(),
        weights: samples.iter().map(|sample| f32::from(sample.2)).collect(),
        groups: samples.iter().map(|sample| sample.3).collect(),
    }
}

fn binary(batches: &[&Samples]) -> BinaryMetrics {
    let mut metrics = BinaryMetrics::new(Spacing::Logit, 20);
    for batch in batches {
        let batch = columns(batch);
        metrics
            .update(&batch.scores, &batch.labels, Some(&batch.weights))
            .expect("a good batch");
    }
    metrics
}

fn exact(batches: &[&Samples]) -> ExactAuc {
    let mut metric = ExactAuc::new(10_000);
    for batch in batches {
        let batch = columns(batch);
        metric
            .update(&batch.scores, &batch.labels, Some(&batch.weights))
            .expect("a good batch");
    }
    metric
}

fn grouped(batches: &[&Samples]) -> GroupAuc {
    let mut metric = GroupAuc::new(GroupWeight::Impressions, 10_000);
    for batch in batches {
        let batch = columns(batch);
        metric
            .update(&batch.groups, &batch.scores, &batch.labels, Some(&batch.weights))
            .expect("a good batch");
    }
    metric
}

/// Debug text tells NaN from NaN as equality does not.
fn shown(metrics: &BinaryMetrics) -> String {
    format!("{:?} {:?}", metrics.report(), metrics.batch_auc())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merged_parts_equal_the_whole_bit_for_bit(a in samples(300), b in samples(300), c in samples(300)) {
        let whole = binary(&[&a, &b, &c]);
        let mut left = binary(&[&a]);
        left.merge(&binary(&[&b])).expect("alike");
        left.merge(&binary(&[&c])).expect("alike");
        let mut right = binary(&[&c]);
        let mut inner = binary(&[&b]);
        inner.merge(&binary(&[&a])).expect("alike");
        right.merge(&inner).expect("alike");
        prop_assert_eq!(shown(&left), shown(&whole));
        prop_assert_eq!(shown(&right), shown(&whole));
    }

    #[test]
    fn exact_metrics_do_not_see_the_order(a in samples(200), b in samples(200)) {
        let mut left = exact(&[&a]);
        left.merge(&exact(&[&b])).expect("room");
        prop_assert_eq!(left.auc(), exact(&[&b, &a]).auc());
        let mut left = grouped(&[&a]);
        left.merge(&grouped(&[&b])).expect("room");
        prop_assert_eq!(left.report(), grouped(&[&b, &a]).report());
    }

    #[test]
    fn a_stored_state_goes_on_as_if_never_stored(a in samples(100), b in samples(100)) {
        let both = binary(&[&a, &b]);
        let mut restored = BinaryMetrics::from_bytes(&binary(&[&a]).to_bytes()).expect("own bytes");
        let batch = columns(&b);
        restored.update(&batch.scores, &batch.labels, Some(&batch.weights)).expect("a good batch");
        prop_assert_eq!(restored, both);
        let stored = grouped(&[&a]);
        prop_assert_eq!(GroupAuc::from_bytes(&stored.to_bytes()).expect("own bytes"), stored);
        let stored = exact(&[&a]);
        prop_assert_eq!(ExactAuc::from_bytes(&stored.to_bytes()).expect("own bytes"), stored);
    }

    #[test]
    fn foreign_bytes_are_an_error_and_never_a_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200), tag in 0_usize..4
    ) {
        let tags: [&[u8]; 4] = [b"CMB1", b"CME1", b"CMG1", b"CMR1"];
        bytes.splice(0..0, tags[tag].iter().copied());
        let _ = BinaryMetrics::from_bytes(&bytes);
        let _ = ExactAuc::from_bytes(&bytes);
        let _ = GroupAuc::from_bytes(&bytes);
        let _ = RegressionMetrics::from_bytes(&bytes);
    }

    #[test]
    fn a_truncated_state_is_refused(a in samples(50), cut in 1_usize..40) {
        let bytes = binary(&[&a]).to_bytes();
        let is_refused = matches!(
            BinaryMetrics::from_bytes(&bytes[..bytes.len() - cut]),
            Err(Error::State { .. })
        );
        prop_assert!(is_refused);
    }
}

#[test]
fn batch_auc_forgets_the_oldest_batch() {
    let mut metrics = BinaryMetrics::new(Spacing::Logit, 2);
    metrics
        .update(&[0.1, 0.9], &[1.0, 0.0], None)
        .expect("a good batch");
    assert_eq!(metrics.batch_auc(), 0.0);
    metrics
        .update(&[0.1, 0.9], &[0.0, 1.0], None)
        .expect("a good batch");
    metrics
        .update(&[0.1, 0.9], &[0.0, 1.0], None)
        .expect("a good batch");
    assert_eq!(metrics.batch_auc(), 1.0);
    assert!(metrics.auc() < 1.0);
}

#[test]
fn a_bad_batch_leaves_no_trace() {
    let mut metrics = BinaryMetrics::new(Spacing::Logit, 20);
    let error = metrics.update(&[0.5, f32::NAN, f32::NAN], &[0.0, 1.0, 1.0], None);
    assert_eq!(
        error,
        Err(Error::NotANumber {
            count: 2,
            total: 3,
            row: 1
        })
    );
    assert!(metrics.update(&[1.5], &[0.0], None).is_err());
    assert!(metrics.update(&[0.5], &[3.0], None).is_err());
    assert!(metrics.update(&[0.5], &[1.0], Some(&[-1.0])).is_err());
    assert!(metrics.update(&[0.5], &[1.0, 0.0], None).is_err());
    assert_eq!(metrics, BinaryMetrics::new(Spacing::Logit, 20));
}

#[test]
fn a_full_exact_metric_says_so_and_keeps_what_it_has() {
    let mut metric = ExactAuc::new(2);
    metric
        .update(&[0.1, 0.9], &[0.0, 1.0], None)
        .expect("room for two");
    let error = metric.update(&[0.5], &[1.0], None);
    assert!(matches!(
        error,
        Err(Error::Limit {
            needed: 3,
            limit: 2,
            ..
        })
    ));
    assert_eq!(metric.auc(), 1.0);
}

#[test]
fn groups_of_one_class_are_left_out() {
    let mut metric = GroupAuc::new(GroupWeight::Clicks, 100);
    let groups = [1, 1, 2, 2, 3];
    metric
        .update(
            &groups,
            &[0.9, 0.1, 0.1, 0.9, 0.7],
            &[1.0, 0.0, 1.0, 0.0, 1.0],
            None,
        )
        .expect("a good batch");
    let report = metric.report();
    assert_eq!((report.gauc, report.num_groups, report.num_skipped), (0.5, 2, 1));
}

#[test]
fn unlike_metrics_do_not_merge() {
    let mut seeds = BinaryMetrics::new(Spacing::Uniform { thresholds: 4096 }, 20);
    assert!(matches!(
        seeds.merge(&BinaryMetrics::new(Spacing::Logit, 20)),
        Err(Error::Mismatch { .. })
    ));
}
