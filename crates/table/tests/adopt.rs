//! Weights that move to a new table: they stay what they were, and training starts anew.

use std::path::PathBuf;

use clickmill_table::config::{Optimizer, ShowClick};
use clickmill_table::{Error, Rate, Table, TableConfig};
use clickmill_types::schema::{Init, TableSpec};

const DIM: usize = 3;
const SIGNS: [u64; 4] = [1, 2, 3, 4];

fn optimizers() -> Vec<Optimizer> {
    let weight_decay = 0.0;
    vec![
        Optimizer::Sgd { weight_decay },
        Optimizer::default(),
        Optimizer::LazyAdam {
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay,
        },
        Optimizer::Adam {
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
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

fn config(optimizer: Optimizer) -> TableConfig {
    let mut config = TableConfig::new(TableSpec {
        name: "t".to_owned(),
        dim: DIM as u32,
        seed: 5,
        init: Init::Normal { std: 0.1 },
    });
    config.optimizer = optimizer;
    config
}

fn step(table: &mut Table, number: u64, signs: &[u64], gradient: f32) {
    table.begin_step(number).expect("steps ascend");
    let mut values = vec![0.0; signs.len() * DIM];
    table.pull(signs, &mut values).expect("memory");
    let gradients = vec![gradient; values.len()];
    let ones = vec![1.0; signs.len()];
    let rate = Rate {
        learning_rate: 0.1,
        scale: 1.0,
    };
    table
        .push(signs, &gradients, &ones, &ones, rate)
        .expect("a push of the right shape");
}

fn weights(table: &Table) -> Vec<f32> {
    let mut values = vec![0.0; SIGNS.len() * DIM];
    table.peek(&SIGNS, &mut values).expect("memory");
    values
}

/// A table that was trained, and its file.
fn origin(folder: &tempfile::TempDir, config: TableConfig) -> (Table, [PathBuf; 1]) {
    let mut table = Table::new(config).expect("a valid configuration");
    step(&mut table, 1, &SIGNS, 0.7);
    for number in 2..9 {
        // Some rows are behind, so that dense Adam has steps to make up for.
        step(&mut table, number, &SIGNS[..2], -0.4);
    }
    let path = folder.path().join("origin");
    table.save(&path, None).expect("the folder takes files");
    (table, [path])
}

#[test]
fn weights_stay_bit_for_bit_whatever_the_two_optimizers() {
    let folder = tempfile::tempdir().expect("a folder");
    for before in optimizers() {
        let (table, paths) = origin(&folder, config(before));
        for after in optimizers() {
            let adopted = Table::load_weights(&paths, config(after), 0.1, |_| true).expect("rows that fit");
            assert_eq!(weights(&adopted), weights(&table), "{before:?} to {after:?}");
            assert_eq!((adopted.step(), adopted.len()), (0, 4));
            assert_eq!(adopted.counters().rows_created, 0);
        }
    }
}

#[test]
fn the_first_step_is_that_of_an_optimizer_that_has_seen_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for optimizer in optimizers() {
        let (_, paths) = origin(&folder, config(optimizer));
        let mut adopted =
            Table::load_weights(&paths, config(optimizer), 0.1, |_| true).expect("rows that fit");
        let start = weights(&adopted);
        step(&mut adopted, 1, &SIGNS, 0.5);
        // Its state, the same for every row and every weight, makes it the same step for all of them.
        let moved: Vec<f32> = weights(&adopted)
            .iter()
            .zip(&start)
            .map(|(after, before)| after - before)
            .collect();
        let expected = match optimizer {
            Optimizer::Sgd { .. } => -0.05,
            Optimizer::RowWiseAdagrad { .. } | Optimizer::LazyAdam { .. } => -0.1,
            Optimizer::Adagrad { .. } | Optimizer::Adam { .. } | Optimizer::Ftrl { .. } => continue,
        };
        for step in moved {
            assert!((step - expected).abs() < 1e-5, "{optimizer:?}: {step}");
        }
    }
}

#[test]
fn ftrl_holds_a_weight_that_another_optimizer_trained() {
    let folder = tempfile::tempdir().expect("a folder");
    let (table, paths) = origin(&folder, config(Optimizer::Sgd { weight_decay: 0.0 }));
    let ftrl = optimizers()[4];
    let mut adopted = Table::load_weights(&paths, config(ftrl), 0.1, |_| true).expect("rows that fit");
    step(&mut adopted, 1, &SIGNS, 0.0);
    for (after, before) in weights(&adopted).iter().zip(weights(&table)) {
        assert!((after - before).abs() < 1e-6, "{before} became {after}");
    }
}

#[test]
fn shows_are_kept_so_that_the_first_eviction_does_not_take_the_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config(Optimizer::default());
    config.eviction.show_click = Some(ShowClick {
        show_coefficient: 0.1,
        click_coefficient: 1.0,
        decay: 1.0,
        threshold: 2.0,
    });
    let (_, paths) = origin(&folder, config.clone());
    let mut adopted = Table::load_weights(&paths, config, 0.1, |_| true).expect("rows that fit");
    adopted.begin_step(1).expect("a first step");
    adopted.evict().expect("memory");
    assert_eq!(adopted.len(), 2, "the rows of eight clicks stay, those of one go");
}

#[test]
fn another_width_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, paths) = origin(&folder, config(Optimizer::default()));
    let mut wider = config(Optimizer::default());
    wider.spec.dim = 4;
    let outcome = Table::load_weights(&paths, wider, 0.1, |_| true);
    assert!(matches!(outcome, Err(Error::Config { .. })));
}
