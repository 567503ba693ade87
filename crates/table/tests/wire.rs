//! Lookups at the two ends of a wire train the same table as a lookup in one process.

use clickmill_table::config::Optimizer;
use clickmill_table::{Buffers, Error, Lookup, Occurrences, PooledSlot, Rate, Table, TableConfig};
use clickmill_types::bf16::{from_bf16, to_bf16};
use clickmill_types::schema::{Init, Pooling, TableSpec};

const DIM: usize = 5;
const SIGNS: [u64; 3] = [10, 20, 30];
const RATE: Rate = Rate {
    learning_rate: 0.5,
    scale: 1.0,
};

fn table() -> Table {
    let mut config = TableConfig::new(TableSpec {
        name: "t".to_owned(),
        dim: DIM as u32,
        seed: 5,
        init: Init::Uniform { scale: 1.0 },
    });
    config.optimizer = Optimizer::default();
    config.statistics = true;
    Table::new(config).expect("a valid configuration")
}

/// Two samples with one slot: rows 0 and 1, then rows 1 and 2.
fn occurrences() -> Occurrences<'static> {
    Occurrences::new(&[0, 2, 4], &[0, 1, 1, 2], 1, 3).expect("two samples")
}

/// Pools, and gathers the gradients of some model.
fn compute(lookup: &Lookup) {
    let slots = [PooledSlot {
        position: 0,
        pooling: Pooling::Sum,
    }];
    let mut pooled = vec![0.0; 2 * DIM];
    lookup
        .pool(&occurrences(), 0, &slots, &mut pooled)
        .expect("shapes");
    lookup.unpool(&occurrences(), 0, &slots, &pooled).expect("shapes");
    lookup.observe(&occurrences(), &[1.0, 0.0]).expect("labels");
}

#[test]
fn a_batch_that_crosses_a_wire_trains_as_one_that_does_not() {
    let (mut local, mut server) = (table(), table());
    let buffers = Buffers::default();
    for step in 1..5 {
        for table in [&mut local, &mut server] {
            table.begin_step(step).expect("steps ascend");
        }
        let here = Lookup::train(&mut local, &SIGNS, &buffers).expect("memory");
        compute(&here);
        local.apply(&here, RATE).expect("a fresh lookup");

        let there = Lookup::train(&mut server, &SIGNS, &buffers).expect("memory");
        let trainer = Lookup::from_values(DIM, there.values().to_vec(), &buffers).expect("whole rows");
        compute(&trainer);
        trainer
            .with_gradients(|gradients| there.add_gradients(gradients))
            .expect("not applied yet")
            .expect("shapes");
        trainer
            .with_counts(|shows, clicks| there.add_counts(shows, clicks))
            .expect("not applied yet")
            .expect("shapes");
        server.apply(&there, RATE).expect("a fresh lookup");
        assert_eq!(server.digest(), local.digest());
    }
}

#[test]
fn rows_and_gradients_cross_in_bf16_rounded_once() {
    let mut server = table();
    let buffers = Buffers::default();
    let lookup = Lookup::train(&mut server, &SIGNS, &buffers).expect("memory");
    let mut bytes = vec![0; 3 * DIM * 2];
    lookup.write_bf16(&mut bytes).expect("the right size");
    let mut values = buffers.take_values(3 * DIM);
    from_bf16(&bytes, &mut values);
    for (rounded, value) in values.iter().zip(lookup.values()) {
        assert!((rounded - value).abs() <= value.abs() / 256.0);
    }
    let gradients: Vec<f32> = (0..3 * DIM).map(|at| at as f32).collect();
    to_bf16(&gradients, &mut bytes);
    for _ in 0..2 {
        lookup.add_gradients_bf16(&bytes).expect("the right size");
    }
    let twice: Vec<f32> = gradients.iter().map(|gradient| 2.0 * gradient).collect();
    assert_eq!(lookup.gradients().expect("not applied yet"), twice);
    for outcome in [
        lookup.write_bf16(&mut bytes[1..]),
        lookup.add_gradients_bf16(&bytes[..4]),
        lookup.add_counts(&[1.0], &[1.0]),
    ] {
        assert!(matches!(outcome, Err(Error::Argument { .. })));
    }
}

#[test]
fn a_lookup_of_a_server_is_not_applied_here() {
    let mut table = table();
    let lookup = Lookup::from_values(DIM, vec![0.0; DIM], &Buffers::default()).expect("one row");
    let error = table
        .apply(&lookup, RATE)
        .expect_err("no place to go")
        .to_string();
    assert!(error.contains("live on a server"), "{error}");
    let outcome = Lookup::from_values(DIM, vec![0.0; DIM + 1], &Buffers::default());
    assert!(matches!(outcome, Err(Error::Argument { .. })));
}

#[test]
fn nothing_observed_is_told_apart_from_nothing_seen() {
    let lookup = Lookup::from_values(DIM, vec![0.0; DIM], &Buffers::default()).expect("one row");
    let lengths = |lookup: &Lookup| lookup.with_counts(|shows, clicks| (shows.len(), clicks.len()));
    assert_eq!(lengths(&lookup).expect("not applied"), (0, 0));
    lookup.add_counts(&[0.0], &[0.0]).expect("one row");
    assert_eq!(lengths(&lookup).expect("not applied"), (1, 1));
    let gradients = lookup.with_gradients(<[f32]>::to_vec).expect("not applied");
    assert_eq!(gradients, [0.0; DIM]);
}
