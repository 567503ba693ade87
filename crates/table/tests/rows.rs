//! Tables against a plain map, and what happens to rows over their life.

use std::collections::HashMap;

use clickmill_table::config::{Admission, Eviction, Optimizer, ShowClick};
use clickmill_table::{Buffers, Error, Lookup, Rate, Table, TableConfig};
use clickmill_types::schema::{Init, TableSpec};
use proptest::prelude::*;

fn config(dim: u32) -> TableConfig {
    let mut config = TableConfig::new(TableSpec {
        name: "t".to_owned(),
        dim,
        seed: 5,
        init: Init::Uniform { scale: 1.0 },
    });
    config.bucket_bits = 2;
    config.optimizer = Optimizer::Sgd { weight_decay: 0.0 };
    config
}

fn table(config: TableConfig) -> Table {
    Table::new(config).expect("a valid configuration")
}

const RATE: Rate = Rate {
    learning_rate: 0.5,
    scale: 1.0,
};

fn pull(table: &mut Table, signs: &[u64]) -> Vec<f32> {
    let mut values = vec![0.0; signs.len() * table.dim()];
    table.pull(signs, &mut values).expect("memory");
    values
}

fn peek(table: &Table, signs: &[u64]) -> Vec<f32> {
    let mut values = vec![0.0; signs.len() * table.dim()];
    table.peek(signs, &mut values).expect("memory");
    values
}

fn push(table: &mut Table, signs: &[u64]) {
    let gradients = vec![1.0; signs.len() * table.dim()];
    table.push(signs, &gradients, &[], &[], RATE).expect("a push");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    #[test]
    fn a_table_is_a_map(
        dim in 1_u32..20,
        bucket_bits in 0_u32..5,
        batches in prop::collection::vec(prop::collection::vec(0_u64..300, 0..200), 1..8),
    ) {
        let mut table = table(TableConfig { bucket_bits, ..config(dim) });
        let initial = Table::new(table.config().clone()).expect("a valid configuration");
        let mut model: HashMap<u64, Vec<f32>> = HashMap::new();
        for (step, batch) in batches.iter().enumerate() {
            table.begin_step(step as u64 + 1).expect("steps ascend");
            let values = pull(&mut table, batch);
            for (sign, row) in batch.iter().zip(values.chunks(dim as usize)) {
                let expected = model.entry(*sign).or_insert_with(|| peek(&initial, &[*sign]));
                prop_assert_eq!(row, expected.as_slice());
            }
            let gradients: Vec<f32> = (0..batch.len() * dim as usize).map(|at| at as f32 * 0.25).collect();
            table.push(batch, &gradients, &[], &[], RATE).expect("a push");
            for (sign, gradient) in batch.iter().zip(gradients.chunks(dim as usize)) {
                let row = model.get_mut(sign).expect("pulled before");
                row.iter_mut().zip(gradient).for_each(|(weight, gradient)| *weight -= 0.5 * gradient);
            }
        }
        prop_assert_eq!(table.len(), model.len() as u64);
        let all: Vec<u64> = (0..300).collect();
        let values = peek(&table, &all);
        for (sign, row) in all.iter().zip(values.chunks(dim as usize)) {
            let expected = model.get(sign).cloned().unwrap_or_else(|| peek(&initial, &[*sign]));
            prop_assert_eq!(row, expected.as_slice());
        }
    }
}

#[test]
fn many_rows_survive_every_growth_of_the_index() {
    let count = if cfg!(miri) { 300 } else { 200_000 };
    let mut table = table(config(1));
    let signs: Vec<u64> = (0..count).map(|number| number << 40).collect();
    for part in signs.chunks(1_000) {
        pull(&mut table, part);
        push(&mut table, part);
    }
    assert_eq!(table.len(), count);
    let fresh = Table::new(table.config().clone()).expect("a valid configuration");
    let moved: Vec<f32> = peek(&fresh, &signs).iter().map(|weight| weight - 0.5).collect();
    assert_eq!(peek(&table, &signs), moved);
}

#[test]
fn admission_by_count_creates_a_row_at_the_nth_sighting() {
    let mut table = table(TableConfig {
        admission: Admission::Count {
            at: 3,
            sketch_bits: 12,
        },
        ..config(4)
    });
    let initial = peek(&table, &[7]);
    for sighting in 1..=2 {
        assert_eq!(pull(&mut table, &[7]), initial);
        push(&mut table, &[7]);
        assert_eq!((table.len(), table.counters().gradients_dropped), (0, sighting));
        assert_eq!(peek(&table, &[7]), initial);
    }
    pull(&mut table, &[7]);
    push(&mut table, &[7]);
    assert_eq!(table.len(), 1);
    assert_ne!(peek(&table, &[7]), initial);
    assert_eq!(table.counters().sightings_refused, 2);
}

#[test]
fn rows_untouched_for_longer_than_their_ttl_go_and_come_back_initial() {
    let mut table = table(TableConfig {
        eviction: Eviction {
            ttl_steps: Some(2),
            ..Eviction::default()
        },
        ..config(3)
    });
    let initial = peek(&table, &[1]);
    table.begin_step(1).expect("a step");
    pull(&mut table, &[1, 2]);
    push(&mut table, &[1, 2]);
    table.begin_step(3).expect("a step");
    push(&mut table, &[2]);
    assert_eq!(table.evict().expect("memory").evicted_by_ttl, 0);
    table.begin_step(4).expect("a step");
    let report = table.evict().expect("memory");
    assert_eq!((report.evicted_by_ttl, report.rows), (1, 1));
    assert_eq!(peek(&table, &[1]), initial);
    assert_ne!(peek(&table, &[2]), pull(&mut table, &[1]));
}

#[test]
fn rows_below_the_show_click_threshold_go_after_decay() {
    let rule = ShowClick {
        show_coefficient: 0.1,
        click_coefficient: 1.0,
        decay: 0.5,
        threshold: 0.4,
    };
    let mut table = table(TableConfig {
        eviction: Eviction {
            show_click: Some(rule),
            ..Eviction::default()
        },
        ..config(2)
    });
    pull(&mut table, &[1, 2, 3]);
    // After one decay: 0.1 * 2 = 0.2; 0.1 * 0 + 0.5 = 0.5; 0.1 * 5 = 0.5.
    let outcome = table.push(&[1, 2, 3], &[0.0; 6], &[4.0, 1.0, 10.0], &[0.0, 1.0, 0.0], RATE);
    outcome.expect("a push");
    let report = table.evict().expect("memory");
    assert_eq!((report.evicted_by_score, report.rows), (1, 2));
    let report = table.evict().expect("memory");
    assert_eq!((report.evicted_by_score, report.rows), (2, 0));
}

#[test]
fn a_budget_evicts_the_longest_untouched_first_and_no_more_than_needed() {
    for bucket_bits in [0, 3] {
        let mut table = table(TableConfig {
            bucket_bits,
            eviction: Eviction {
                max_rows: Some(60),
                ..Eviction::default()
            },
            ..config(2)
        });
        for step in 1..=10 {
            table.begin_step(step).expect("a step");
            let signs: Vec<u64> = (step * 10..step * 10 + 10).collect();
            pull(&mut table, &signs);
            push(&mut table, &signs);
        }
        let report = table.evict().expect("memory");
        assert_eq!((report.evicted_by_budget, report.rows), (40, 60));
        let initial = Table::new(table.config().clone()).expect("a valid configuration");
        for sign in 10..110 {
            assert_eq!(
                peek(&table, &[sign]) == peek(&initial, &[sign]),
                sign < 50,
                "sign {sign}"
            );
        }
    }
}

#[test]
fn a_lookup_from_before_an_eviction_is_refused() {
    let mut table = table(TableConfig {
        eviction: Eviction {
            max_rows: Some(1),
            ..Eviction::default()
        },
        ..config(2)
    });
    let buffers = Buffers::default();
    let lookup = Lookup::train(&mut table, &[1, 2, 3], &buffers).expect("memory");
    table.evict().expect("memory");
    assert!(matches!(table.apply(&lookup, RATE), Err(Error::State { .. })));
    let mut other = Table::new(table.config().clone()).expect("a valid configuration");
    let lookup = Lookup::train(&mut table, &[1], &buffers).expect("memory");
    assert!(matches!(other.apply(&lookup, RATE), Err(Error::State { .. })));
    table.apply(&lookup, RATE).expect("a fresh lookup");
    assert!(matches!(table.apply(&lookup, RATE), Err(Error::State { .. })));
}

#[test]
fn rows_keep_their_values_under_another_bucket_count() {
    let mut table = table(config(5));
    let signs: Vec<u64> = (0..500).collect();
    pull(&mut table, &signs);
    push(&mut table, &signs[..250]);
    let (before, digest) = (peek(&table, &signs), table.digest());
    for bits in [0, 7, 3] {
        table.rebucket(bits).expect("memory");
        assert_eq!(peek(&table, &signs), before);
        assert_eq!(table.digest(), digest);
    }
    push(&mut table, &signs[..1]);
    assert_ne!(table.digest(), digest);
}

#[test]
fn the_share_of_a_budget_follows_the_bytes_of_the_table() {
    let count = if cfg!(miri) { 300 } else { 60_000 };
    let mut table = table(config(16));
    assert!(table.budget_share(1) < 1.0);
    pull(&mut table, &(0..count).collect::<Vec<_>>());
    let share = table.budget_share(2 * table.bytes());
    assert!(cfg!(miri) || (0.4..0.6).contains(&share), "{share}");
    table.remove_where(|sign| sign >= count / 2).expect("memory");
    assert_eq!(table.len(), count / 2);
    let half = table.budget_share(2 * table.bytes());
    assert!(cfg!(miri) || (0.4..0.6).contains(&half), "{half}");
}
