//! Rows exchanged whole: what one table has learnt becomes what another one knows.

use clickmill_table::config::{Admission, Optimizer};
use clickmill_table::{Error, FrozenSave, Rate, Table, TableConfig};
use clickmill_types::schema::{Init, TableSpec};

const DIM: usize = 5;
const SIGNS: [u64; 4] = [1, 2, 3, 4];

fn optimizers() -> [Optimizer; 6] {
    let (beta1, beta2, eps) = (0.9, 0.999, 1e-8);
    [
        Optimizer::Sgd { weight_decay: 0.0 },
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

fn config(optimizer: Optimizer) -> TableConfig {
    let mut config = TableConfig::new(TableSpec {
        name: "t".to_owned(),
        dim: DIM as u32,
        seed: 5,
        init: Init::Normal { std: 0.1 },
    });
    config.bucket_bits = 2;
    config.optimizer = optimizer;
    config.statistics = true;
    config
}

fn table(optimizer: Optimizer) -> Table {
    Table::new(config(optimizer)).expect("a valid configuration")
}

fn train(table: &mut Table, step: u64, signs: &[u64]) {
    table.begin_step(step).expect("steps ascend");
    let mut values = vec![0.0; signs.len() * DIM];
    table.pull(signs, &mut values).expect("memory");
    let gradients: Vec<f32> = values.iter().map(|value| 0.3 * value + 0.2).collect();
    let ones = vec![1.0; signs.len()];
    let rate = Rate {
        learning_rate: 0.1,
        scale: 1.0,
    };
    table.push(signs, &gradients, &ones, &ones, rate).expect("a push");
}

fn full(table: &Table, signs: &[u64]) -> Vec<f32> {
    let mut floats = vec![0.0; signs.len() * table.row_floats()];
    table.read_full(signs, &mut floats).expect("the right size");
    floats
}

fn weights(table: &Table) -> Vec<f32> {
    let mut values = vec![0.0; SIGNS.len() * DIM];
    table.peek(&SIGNS, &mut values).expect("the right size");
    values
}

fn assert_close(found: &[f32], expected: &[f32], optimizer: Optimizer) {
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= 1e-6 * expected.abs().max(1.0),
            "{optimizer:?}: {found} in place of {expected}"
        );
    }
}

#[test]
fn a_sign_without_a_row_reads_as_the_row_that_it_would_get() {
    for optimizer in optimizers() {
        let mut table = table(optimizer);
        let before = full(&table, &SIGNS);
        assert!(table.is_empty());
        let mut values = vec![0.0; SIGNS.len() * DIM];
        table.pull(&SIGNS, &mut values).expect("memory");
        assert_eq!(full(&table, &SIGNS), before);
        let row = before.len() / SIGNS.len();
        assert_eq!(before[row - DIM..row], values[..DIM], "weights come last");
    }
}

#[test]
fn the_deltas_of_a_trainer_bring_the_server_to_where_it_is() {
    for optimizer in optimizers() {
        let (mut trainer, mut server) = (table(optimizer), table(optimizer));
        for round in 0..3 {
            let base = full(&trainer, &SIGNS);
            assert_close(&base, &full(&server, &SIGNS), optimizer);
            for step in 1..=4 {
                let number = round * 4 + step;
                train(&mut trainer, number, &SIGNS[..step as usize]);
                server.begin_step(number).expect("steps ascend");
            }
            let now = full(&trainer, &SIGNS);
            let deltas: Vec<f32> = now.iter().zip(&base).map(|(now, base)| now - base).collect();
            server.add_full(&SIGNS, &deltas).expect("the right size");
            assert_close(&full(&server, &SIGNS), &now, optimizer);
        }
    }
}

#[test]
fn a_table_trains_on_alike_from_rows_that_were_set() {
    for optimizer in optimizers() {
        let (mut one, mut other) = (table(optimizer), table(optimizer));
        for step in 1..6 {
            train(&mut one, step, &SIGNS);
            // The other one has had the same steps, on other rows.
            train(&mut other, step, &[50 + step]);
        }
        let floats = full(&one, &SIGNS);
        other.set_full(&SIGNS, &floats).expect("the right size");
        assert_eq!(full(&other, &SIGNS), floats);
        for step in 6..9 {
            train(&mut one, step, &SIGNS);
            train(&mut other, step, &SIGNS);
        }
        assert_eq!(full(&other, &SIGNS), full(&one, &SIGNS), "{optimizer:?}");
    }
}

#[test]
fn rows_that_dense_adam_has_left_behind_are_exchanged_as_if_they_had_been_moved() {
    let adam = optimizers()[4];
    let (mut table, mut untouched) = (table(adam), table(adam));
    for step in 1..20 {
        let signs = if step == 1 { &SIGNS[..] } else { &SIGNS[..1] };
        train(&mut table, step, signs);
        train(&mut untouched, step, signs);
    }
    let floats = full(&table, &SIGNS);
    let row = table.row_floats();
    for (at, weights) in weights(&table).chunks(DIM).enumerate() {
        assert_eq!(&floats[(at + 1) * row - DIM..(at + 1) * row], weights);
    }
    // Adding nothing changes nothing, now or when further steps are made up for.
    table
        .add_full(&SIGNS, &vec![0.0; floats.len()])
        .expect("the right size");
    assert_eq!(full(&table, &SIGNS), floats);
    for step in 20..30 {
        train(&mut table, step, &SIGNS[..1]);
        train(&mut untouched, step, &SIGNS[..1]);
    }
    assert_close(&weights(&table), &weights(&untouched), adam);
    assert_ne!(weights(&table)[DIM..2 * DIM], floats[2 * row - DIM..2 * row]);
}

#[test]
fn missing_rows_are_made_once_and_whatever_admission_says() {
    let mut config = config(Optimizer::Sgd { weight_decay: 0.0 });
    config.admission = Admission::Count {
        at: 200,
        sketch_bits: 8,
    };
    let mut table = Table::new(config).expect("a valid configuration");
    let row = table.row_floats();
    let before = full(&table, &[9]);
    table
        .add_full(&[9, 9], &vec![0.25; 2 * row])
        .expect("the right size");
    assert_eq!(table.len(), 1);
    let expected: Vec<f32> = before.iter().map(|float| float + 0.25 + 0.25).collect();
    assert_eq!(full(&table, &[9]), expected);
}

#[test]
fn sums_of_squares_never_go_below_zero_and_a_nan_stays_one() {
    for optimizer in optimizers() {
        let mut table = table(optimizer);
        train(&mut table, 1, &SIGNS);
        let row = table.row_floats();
        let statistics = 2;
        let state = row - DIM - statistics;
        let mut deltas = vec![0.0; row];
        deltas[statistics..statistics + state].fill(-1e3);
        table.add_full(&[1], &deltas).expect("the right size");
        train(&mut table, 2, &SIGNS);
        table
            .check_finite()
            .expect("roots of numbers that are not negative");
        deltas[statistics..].fill(f32::NAN);
        table.add_full(&[1], &deltas).expect("the right size");
        assert!(matches!(
            table.check_finite(),
            Err(Error::NotFinite { sign: 1, .. })
        ));
    }
}

#[test]
fn rows_written_whole_belong_to_the_next_increment_and_not_to_a_save_begun_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut table = table(Optimizer::default());
    train(&mut table, 1, &[1, 2, 3]);
    table.begin_step(2).expect("a fence between steps");
    let at_fence = table.digest();
    let mut save = FrozenSave::begin(&mut table, &path("full"), None).expect("no other save");
    table.begin_step(3).expect("a step");
    let floats = vec![0.5; 2 * table.row_floats()];
    table.set_full(&[2, 8], &floats).expect("the right size");
    while save.piece(&mut table, 1).expect("its own table") {}
    let base = save.finish(&mut table).expect("a sound table").id;
    let loaded = Table::load(&[path("full")], None).expect("an undamaged file");
    assert_eq!(loaded.digest(), at_fence);
    let next = table.save(&path("next"), Some(&base)).expect("a save");
    assert_eq!(next.rows, 2);
}

#[test]
fn numbers_that_are_no_whole_rows_are_refused() {
    let mut table = table(Optimizer::default());
    let row = table.row_floats();
    assert_eq!(row, 2 + 1 + DIM);
    let mut floats = vec![0.0; 2 * row - 1];
    for outcome in [
        table.read_full(&[1, 2], &mut floats),
        table.add_full(&[1, 2], &floats),
        table.set_full(&[1, 2], &floats),
    ] {
        assert!(matches!(outcome, Err(Error::Argument { .. })));
    }
    assert!(table.is_empty());
}
