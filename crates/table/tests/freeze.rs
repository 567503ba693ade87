//! Saves of a table that trains on: they hold the table as it was when they were begun.

use std::path::{Path, PathBuf};

use clickmill_table::config::{Admission, Optimizer, ShowClick};
use clickmill_table::{Buffers, Error, FrozenSave, Lookup, Rate, SaveReport, Table, TableConfig};
use clickmill_types::schema::{Init, TableSpec};
use proptest::prelude::*;

const DIM: usize = 3;

fn config(optimizer: Optimizer) -> TableConfig {
    let mut config = TableConfig::new(TableSpec {
        name: "t".to_owned(),
        dim: DIM as u32,
        seed: 5,
        init: Init::Normal { std: 0.1 },
    });
    config.bucket_bits = 2;
    config.optimizer = optimizer;
    config.admission = Admission::Count {
        at: 1,
        sketch_bits: 8,
    };
    config.eviction.show_click = Some(ShowClick {
        show_coefficient: 0.1,
        click_coefficient: 1.0,
        decay: 0.9,
        threshold: 0.05,
    });
    config
}

fn optimizers() -> [Optimizer; 3] {
    [
        Optimizer::default(),
        Optimizer::Sgd { weight_decay: 0.0 },
        Optimizer::Adam {
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.01,
        },
    ]
}

fn table() -> Table {
    Table::new(config(Optimizer::default())).expect("a valid configuration")
}

const RATE: Rate = Rate {
    learning_rate: 0.1,
    scale: 1.0,
};

/// A batch whose signs may repeat, in the step that the table is in.
fn train(table: &mut Table, signs: &[u64]) {
    let mut values = vec![0.0; signs.len() * DIM];
    table.pull(signs, &mut values).expect("memory");
    let gradients: Vec<f32> = values.iter().map(|value| value + table.step() as f32).collect();
    let shows = vec![1.0; signs.len()];
    table
        .push(signs, &gradients, &shows, &shows, RATE)
        .expect("a push");
}

fn step(table: &mut Table, step: u64, signs: &[u64]) {
    table.begin_step(step).expect("steps ascend");
    train(table, signs);
}

/// The rest of a save, all at once.
fn complete(mut save: FrozenSave, table: &mut Table) -> Result<SaveReport, Error> {
    while save.piece(table, 10)? {
        save.write()?;
    }
    save.finish(table)
}

fn frozen_save(table: &mut Table, path: &Path, base: Option<&str>) -> SaveReport {
    let save = FrozenSave::begin(table, path, base).expect("no other save");
    complete(save, table).expect("a sound table")
}

fn load(paths: &[PathBuf]) -> Table {
    Table::load(paths, None).expect("an undamaged chain")
}

fn num_files(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("a folder").count()
}

#[derive(Clone, Debug)]
enum Action {
    Train(Vec<u64>),
    Step(Vec<u64>),
    Apply(Vec<u64>),
    Piece(u64),
    Write,
}

fn action() -> impl Strategy<Value = Action> {
    let signs = || prop::collection::vec(0_u64..150, 1..40);
    prop_oneof![
        signs().prop_map(Action::Train),
        signs().prop_map(Action::Step),
        signs().prop_map(Action::Apply),
        (1_u64..40).prop_map(Action::Piece),
        Just(Action::Write),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 96 }))]

    #[test]
    fn a_frozen_save_holds_the_table_of_its_fence_whatever_happens_meanwhile(
        which in 0_usize..3,
        bucket_bits in 0_u32..4,
        before in prop::collection::vec(prop::collection::vec(0_u64..150, 1..60), 2..6),
        has_base in any::<bool>(),
        actions in prop::collection::vec(action(), 0..40),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let (full, path) = (folder.path().join("full"), folder.path().join("frozen"));
        let mut table = Table::new(TableConfig { bucket_bits, ..config(optimizers()[which]) })
            .expect("a valid configuration");
        step(&mut table, 1, &before[0]);
        let base = table.save(&full, None).expect("a save").id;
        for (at, signs) in before[1..].iter().enumerate() {
            step(&mut table, at as u64 + 2, signs);
            table.evict().expect("memory");
        }
        let at_fence = (table.digest(), table.len());

        let base = has_base.then_some(base.as_str());
        let mut save = FrozenSave::begin(&mut table, &path, base).expect("no other save");
        let buffers = Buffers::default();
        for action in &actions {
            match action {
                // The step of the fence goes on, and signs repeat.
                Action::Train(signs) => train(&mut table, signs),
                Action::Step(signs) => {
                    let next = u64::from(table.step()) + 1;
                    step(&mut table, next, signs);
                }
                Action::Apply(signs) => {
                    let lookup = Lookup::train(&mut table, signs, &buffers).expect("memory");
                    lookup.add_gradients(&vec![0.5; signs.len() * DIM]).expect("shapes");
                    table.apply(&lookup, RATE).expect("a fresh lookup");
                }
                Action::Piece(rows) => {
                    save.piece(&mut table, *rows).expect("its own table");
                }
                Action::Write => save.write().expect("room on the disk"),
            }
        }
        let report = complete(save, &mut table).expect("a sound table");
        let chain = if has_base { vec![full, path.clone()] } else { vec![path.clone()] };
        let loaded = load(&chain);
        prop_assert_eq!((loaded.digest(), loaded.len()), at_fence);
        prop_assert_eq!(report.bytes, std::fs::metadata(&path).expect("a file").len());

        // And the chain goes on from there.
        let next = folder.path().join("next");
        frozen_save(&mut table, &next, Some(&report.id));
        let mut chain = chain;
        chain.push(next);
        prop_assert_eq!(load(&chain).digest(), table.digest());
    }
}

#[test]
fn an_increment_after_a_frozen_save_has_only_the_rows_touched_since_its_fence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut table = table();
    step(&mut table, 1, &(0..100).collect::<Vec<_>>());
    table.begin_step(2).expect("a fence between steps");
    let save = FrozenSave::begin(&mut table, &path("full"), None).expect("no other save");
    step(&mut table, 3, &[3, 200]);
    let full = complete(save, &mut table).expect("a sound table");
    assert_eq!((full.rows, full.step), (100, 2));
    step(&mut table, 4, &[4]);
    let next = frozen_save(&mut table, &path("next"), Some(&full.id));
    assert_eq!(next.rows, 3, "signs 3, 200 and 4");
    assert_eq!(load(&[path("full"), path("next")]).digest(), table.digest());
}

#[test]
fn evictions_after_the_last_piece_belong_to_the_next_increment() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut table = table();
    step(&mut table, 1, &[1, 2, 3]);
    let mut save = FrozenSave::begin(&mut table, &path("full"), None).expect("no other save");
    assert!(save.piece(&mut table, 2).expect("its own table"));
    let refused = table.evict().expect_err("rows are not copied yet").to_string();
    assert!(refused.contains("have not all been copied"), "{refused}");
    assert!(matches!(table.rebucket(5), Err(Error::State { .. })));
    assert!(!save.piece(&mut table, 2).expect("its own table"));
    // Rows decay until they go, while the file is still being written.
    for number in 2..40 {
        step(&mut table, number, &[2]);
        table.evict().expect("all rows are copied");
    }
    assert_eq!(table.len(), 1);
    let full = save.finish(&mut table).expect("a sound table");
    assert_eq!((full.rows, full.tombstones), (3, 0));
    let next = frozen_save(&mut table, &path("next"), Some(&full.id));
    assert_eq!(next.tombstones, 2);
    assert_eq!(load(&[path("full"), path("next")]).digest(), table.digest());
}

#[test]
fn a_save_that_is_given_up_leaves_no_file_and_the_last_good_save_as_base() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut table = table();
    step(&mut table, 1, &(0..50).collect::<Vec<_>>());
    let full = frozen_save(&mut table, &path("full"), None);
    for number in 2..40 {
        step(&mut table, number, &[1, 2]);
        table.evict().expect("memory");
    }
    for num_pieces in 0..3 {
        let mut save = FrozenSave::begin(&mut table, &path("given up"), Some(&full.id)).expect("no other");
        for _ in 0..num_pieces {
            save.piece(&mut table, 1).expect("its own table");
            save.write().expect("room on the disk");
        }
        train(&mut table, &[2, 60]);
        drop(save);
        assert_eq!(num_files(folder.path()), 1);
        table.evict().expect("nothing is frozen any more");
    }
    let next = frozen_save(&mut table, &path("next"), Some(&full.id));
    assert!(next.tombstones >= 48);
    assert_eq!(load(&[path("full"), path("next")]).digest(), table.digest());
}

#[test]
fn a_file_that_cannot_be_written_fails_the_save_and_not_the_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = table();
    step(&mut table, 1, &[1, 2]);
    // A folder in the place of the file: the rename must fail after everything was written.
    let taken = folder.path().join("taken");
    std::fs::create_dir(&taken).expect("a folder");
    let nowhere = folder.path().join("missing").join("file");
    for path in [&taken, &nowhere] {
        let save = FrozenSave::begin(&mut table, path, None).expect("no other save");
        assert!(matches!(complete(save, &mut table), Err(Error::Io { .. })));
        assert_eq!(num_files(folder.path()), 1);
        table.evict().expect("nothing is frozen any more");
    }
    let sound = folder.path().join("sound");
    frozen_save(&mut table, &sound, None);
    assert_eq!(load(&[sound]).digest(), table.digest());
}

#[test]
fn a_row_that_was_not_finite_at_the_fence_is_named_and_not_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t");
    let mut table = Table::new(config(Optimizer::Sgd { weight_decay: 0.0 })).expect("a valid configuration");
    step(&mut table, 1, &[1, 2, 3, 7]);
    let sound = FrozenSave::begin(&mut table, &path, None).expect("no other save");
    table
        .push(&[7], &[0.0, f32::NAN, 0.0], &[], &[], RATE)
        .expect("a push");
    complete(sound, &mut table).expect("the row broke after the fence");
    std::fs::remove_file(&path).expect("a file");

    let broken = FrozenSave::begin(&mut table, &path, None).expect("no other save");
    train(&mut table, &[7]);
    let error = complete(broken, &mut table).expect_err("sign 7 is broken");
    assert_eq!(
        error.to_string(),
        "table `t`: the row of sign 7 is not finite: weight 1 is NaN"
    );
    assert_eq!(num_files(folder.path()), 0);
}

#[test]
fn one_save_at_a_time_and_only_of_its_own_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (mut table, mut other) = (table(), table());
    step(&mut table, 1, &[1, 2]);
    let mut save = FrozenSave::begin(&mut table, &path("a"), None).expect("no other save");
    assert!(matches!(
        FrozenSave::begin(&mut table, &path("b"), None),
        Err(Error::State { .. })
    ));
    assert!(matches!(table.save(&path("b"), None), Err(Error::State { .. })));
    assert!(matches!(save.piece(&mut other, 9), Err(Error::State { .. })));
    assert!(matches!(save.seal(), Err(Error::State { .. })), "no rows yet");
    assert!(!save.piece(&mut table, 9).expect("its own table"));
    assert!(
        !save.piece(&mut table, 9).expect("its own table"),
        "asked once more"
    );
    let sealed = save.seal().expect("room on the disk").clone();
    assert_eq!(save.finish(&mut table).expect("its own table"), sealed);
    table
        .save(&path("b"), Some(&sealed.id))
        .expect("an increment that is written at once");
}
