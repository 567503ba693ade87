//! Lookups of several trainers in one step: as if their samples had been one batch.

use clickmill_table::config::{Admission, Optimizer};
use clickmill_table::{Buffers, Error, Lookup, Rate, Table, TableConfig};
use clickmill_types::schema::{Init, TableSpec};
use proptest::prelude::*;

fn config(dim: u32, optimizer: Optimizer) -> TableConfig {
    let mut config = TableConfig::new(TableSpec {
        name: "t".to_owned(),
        dim,
        seed: 5,
        init: Init::Uniform { scale: 1.0 },
    });
    config.bucket_bits = 2;
    config.optimizer = optimizer;
    config.statistics = true;
    config
}

fn table(dim: u32, optimizer: Optimizer) -> Table {
    Table::new(config(dim, optimizer)).expect("a valid configuration")
}

fn optimizers() -> Vec<Optimizer> {
    let (beta1, beta2, eps) = (0.9, 0.999, 1e-8);
    vec![
        Optimizer::Sgd { weight_decay: 0.01 },
        Optimizer::default(),
        Optimizer::Adagrad {
            initial_accumulator: 0.1,
            eps: 1e-10,
            weight_decay: 0.0,
        },
        Optimizer::LazyAdam {
            beta1,
            beta2,
            eps,
            weight_decay: 0.0,
        },
        Optimizer::Adam {
            beta1,
            beta2,
            eps,
            weight_decay: 0.01,
        },
        Optimizer::Ftrl {
            beta: 1.0,
            l1: 0.01,
            l2: 0.1,
            lr_power: -0.5,
            initial_accumulator: 0.1,
        },
    ]
}

const RATE: Rate = Rate {
    learning_rate: 0.05,
    scale: 1.0,
};

/// The gradient of a sample that has a sign, the same wherever it is computed. Never negative: a sum that
/// cancels out is all rounding, and Adam divides it by its own size.
fn gradient(sample: usize, sign: u64, element: usize) -> f32 {
    ((sample * 31 + sign as usize * 7 + element * 3) % 23) as f32 / 8.0 + 0.1
}

/// Pulls the signs of some samples and gathers their gradients, summed as a batch does.
fn gather(table: &mut Table, samples: &[(usize, Vec<u64>)], buffers: &Buffers) -> Lookup {
    let mut signs: Vec<u64> = samples.iter().flat_map(|(_, signs)| signs.clone()).collect();
    signs.sort_unstable();
    signs.dedup();
    let dim = table.dim();
    let lookup = Lookup::train(table, &signs, buffers).expect("memory");
    let mut gradients = vec![0.0; signs.len() * dim];
    let mut shows = vec![0.0; signs.len()];
    let clicks = vec![0.5; signs.len()];
    for (sample, own) in samples {
        for sign in own {
            let row = signs.binary_search(sign).expect("one of them");
            shows[row] += 1.0;
            for element in 0..dim {
                gradients[row * dim + element] += gradient(*sample, *sign, element) / samples.len() as f32;
            }
        }
    }
    lookup.add_gradients(&gradients).expect("shapes");
    lookup.add_counts(&shows, &clicks).expect("shapes");
    lookup
}

fn weights(table: &Table) -> Vec<f32> {
    let signs: Vec<u64> = (0..60).collect();
    let mut values = vec![0.0; signs.len() * table.dim()];
    table.peek(&signs, &mut values).expect("memory");
    values
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    #[test]
    fn a_merged_step_is_the_step_of_the_joint_batch(
        which in 0_usize..6,
        dim in 1_u32..18,
        steps in prop::collection::vec(
            prop::collection::vec(
                prop::collection::vec(prop::collection::vec(0_u64..60, 1..6), 1..12),
                1..5,
            ),
            1..4,
        ),
    ) {
        let optimizer = optimizers()[which];
        let (mut joint, mut merged) = (table(dim, optimizer), table(dim, optimizer));
        let buffers = Buffers::default();
        for (at, trainers) in steps.iter().enumerate() {
            for table in [&mut joint, &mut merged] {
                table.begin_step(at as u64 + 1).expect("steps ascend");
            }
            let mut samples = trainers.concat().into_iter().enumerate();
            let shares: Vec<Vec<(usize, Vec<u64>)>> =
                trainers.iter().map(|own| samples.by_ref().take(own.len()).collect()).collect();
            let lookup = gather(&mut joint, &shares.concat(), &buffers);
            joint.apply(&lookup, RATE).expect("a fresh lookup");

            let num_samples: usize = shares.iter().map(Vec::len).sum();
            let lookups: Vec<(Lookup, f32)> = shares
                .iter()
                .map(|share| (gather(&mut merged, share, &buffers), share.len() as f32 / num_samples as f32))
                .collect();
            let lookups: Vec<(&Lookup, f32)> = lookups.iter().map(|(lookup, weight)| (lookup, *weight)).collect();
            merged.apply_merged(&lookups, RATE).expect("fresh lookups");
        }
        prop_assert_eq!(merged.len(), joint.len());
        for (merged, joint) in weights(&merged).iter().zip(weights(&joint)) {
            prop_assert!((merged - joint).abs() <= 1e-6, "{} {}", merged, joint);
        }
    }
}

#[test]
fn weights_that_are_exact_give_the_joint_batch_bit_for_bit() {
    for optimizer in optimizers() {
        let (mut joint, mut merged) = (table(4, optimizer), table(4, optimizer));
        let buffers = Buffers::default();
        for table in [&mut joint, &mut merged] {
            table.begin_step(1).expect("a step");
        }
        let lookup = Lookup::train(&mut joint, &[1, 2, 3], &buffers).expect("memory");
        let sums: Vec<f32> = [[2.0; 4], [2.75; 4], [0.75; 4]].concat();
        lookup.add_gradients(&sums).expect("shapes");
        lookup
            .add_counts(&[1.0, 3.0, 2.0], &[0.0, 1.0, 1.0])
            .expect("shapes");
        joint.apply(&lookup, RATE).expect("a fresh lookup");

        let one = Lookup::train(&mut merged, &[1, 2], &buffers).expect("memory");
        one.add_gradients(&[4.0; 8]).expect("shapes");
        one.add_counts(&[1.0, 1.0], &[0.0, 0.0]).expect("shapes");
        let two = Lookup::train(&mut merged, &[2, 3], &buffers).expect("memory");
        two.add_gradients(&[3.0; 8]).expect("shapes");
        two.add_counts(&[2.0, 2.0], &[1.0, 1.0]).expect("shapes");
        merged
            .apply_merged(&[(&one, 0.5), (&two, 0.25)], RATE)
            .expect("fresh lookups");
        assert_eq!(merged.digest(), joint.digest(), "{optimizer:?}");
    }
}

#[test]
fn a_refused_merge_applies_none_of_its_lookups() {
    let mut table = table(2, Optimizer::default());
    let buffers = Buffers::default();
    let lookups: Vec<Lookup> = [[1, 2], [2, 3], [3, 4]]
        .iter()
        .map(|signs| {
            let lookup = Lookup::train(&mut table, signs, &buffers).expect("memory");
            lookup.add_gradients(&[1.0; 4]).expect("shapes");
            lookup
        })
        .collect();
    let [one, two, three] = [0, 1, 2].map(|at| &lookups[at]);
    table.apply(three, RATE).expect("a fresh lookup");
    let before = table.digest();
    let wrong_rate = Rate {
        learning_rate: f32::NAN,
        scale: 1.0,
    };
    let read = Lookup::read(&table, &[1], &buffers).expect("memory");
    for (refused, rate) in [
        (vec![(one, 1.0), (two, 1.0), (three, 1.0)], RATE),
        (vec![(one, 1.0), (one, 1.0)], RATE),
        (vec![(one, 1.0), (two, f32::INFINITY)], RATE),
        (vec![(one, 1.0), (&read, 1.0)], RATE),
        (vec![(one, 1.0), (two, 1.0)], wrong_rate),
    ] {
        assert!(table.apply_merged(&refused, rate).is_err());
        assert_eq!(table.digest(), before);
    }
    table
        .apply_merged(&[(one, 1.0), (two, 1.0)], RATE)
        .expect("neither has been applied");
    assert!(matches!(table.apply(two, RATE), Err(Error::State { .. })));
    assert_ne!(table.digest(), before);
}

#[test]
fn gradients_of_signs_without_a_row_are_dropped_and_counted() {
    let mut config = config(2, Optimizer::default());
    config.admission = Admission::Count {
        at: 2,
        sketch_bits: 12,
    };
    let mut table = Table::new(config).expect("a valid configuration");
    let buffers = Buffers::default();
    let refused = Lookup::train(&mut table, &[1, 2], &buffers).expect("memory");
    let admitted = Lookup::train(&mut table, &[1], &buffers).expect("memory");
    table
        .apply_merged(&[(&refused, 1.0), (&admitted, 1.0)], RATE)
        .expect("fresh lookups");
    assert_eq!((table.len(), table.counters().gradients_dropped), (1, 2));
}

#[test]
fn a_step_without_lookups_is_over_all_the_same() {
    let adam = optimizers()[4];
    let (mut one, mut two) = (table(2, adam), table(2, adam));
    for table in [&mut one, &mut two] {
        table.begin_step(1).expect("a step");
        table.apply_merged(&[], RATE).expect("nothing to refuse");
    }
    two.push(&[], &[], &[], &[], RATE).expect("an empty push");
    assert_eq!(one.digest(), two.digest());
    assert_eq!(one.step(), 1);
}
