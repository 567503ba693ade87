//! Saves: what comes back is what went in, and a damaged file never does.

use std::path::Path;

use clickmill_table::config::{Admission, Eviction, Optimizer, ShowClick};
use clickmill_table::{Error, Rate, Share, Table, TableConfig, join_saves};
use clickmill_types::schema::{Init, TableSpec};
use proptest::prelude::*;

fn config(optimizer: Optimizer) -> TableConfig {
    let mut config = TableConfig::new(TableSpec {
        name: "t".to_owned(),
        dim: 3,
        seed: 5,
        init: Init::Normal { std: 0.1 },
    });
    config.bucket_bits = 1;
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

fn train(table: &mut Table, step: u64, signs: &[u64]) {
    table.begin_step(step).expect("steps ascend");
    let mut values = vec![0.0; signs.len() * 3];
    table.pull(signs, &mut values).expect("memory");
    let gradients: Vec<f32> = values.iter().map(|value| value + step as f32).collect();
    let shows = vec![1.0; signs.len()];
    let rate = Rate {
        learning_rate: 0.1 / step as f32,
        scale: 1.0,
    };
    table
        .push(signs, &gradients, &shows, &shows, rate)
        .expect("a push");
}

fn small() -> Vec<u8> {
    let mut table = Table::new(config(Optimizer::default())).expect("a valid configuration");
    train(&mut table, 1, &[1, 2, 3]);
    table.to_bytes()
}

fn load(bytes: &[u8]) -> Result<Table, Error> {
    Table::from_bytes(bytes, Path::new("small.table"), None)
}

#[test]
fn every_flipped_bit_is_refused() {
    let bytes = small();
    let digest = load(&bytes).expect("an undamaged file").digest();
    assert!(!digest.is_empty());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let outcome = load(&damaged);
            assert!(
                matches!(outcome, Err(Error::Format { .. })),
                "byte {at} bit {bit}"
            );
        }
    }
}

#[test]
fn every_truncation_and_every_addition_is_refused() {
    let bytes = small();
    for length in 0..bytes.len() {
        let Err(Error::Format { offset, .. }) = load(&bytes[..length]) else {
            panic!("{length} of {} bytes were taken for a table", bytes.len());
        };
        assert!(offset <= length as u64);
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(load(&longer), Err(Error::Format { offset, .. }) if offset == bytes.len() as u64));
}

#[test]
fn a_chain_gives_the_table_back_bit_for_bit_and_training_goes_on_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    for optimizer in optimizers() {
        let mut table = Table::new(config(optimizer)).expect("a valid configuration");
        let path = |name: &str| folder.path().join(name);
        train(&mut table, 1, &(0..100).collect::<Vec<_>>());
        let full = table.save(&path("full"), None).expect("a save");
        // The step of the save goes on: its rows belong to the increment.
        train(&mut table, 1, &[3, 200]);
        train(&mut table, 2, &(50..120).collect::<Vec<_>>());
        table.evict().expect("memory");
        let first = table.save(&path("first"), Some(&full.id)).expect("a save");
        assert_eq!(first.base.as_ref(), Some(&full.id));
        for step in 3..40 {
            train(&mut table, step, &[1, 2, 500]);
            table.evict().expect("memory");
        }
        train(&mut table, 40, &[60]);
        let second = table.save(&path("second"), Some(&first.id)).expect("a save");
        assert!(second.tombstones > 0 && second.rows < table.len() + 100);

        let chain = [path("full"), path("first"), path("second")];
        let mut loaded = Table::load(&chain, None).expect("an undamaged chain");
        assert_eq!(loaded.digest(), table.digest());
        let wider = TableConfig {
            bucket_bits: 5,
            ..table.config().clone()
        };
        let mut other = Table::load(&chain, Some(wider)).expect("another bucket count");
        assert_eq!(other.digest(), table.digest());
        for table in [&mut table, &mut loaded, &mut other] {
            train(table, 41, &[1, 60, 70, 9_000]);
        }
        assert_eq!(loaded.digest(), table.digest());
        assert_eq!(other.digest(), table.digest());
        let third = loaded
            .save(&path("third"), Some(&second.id))
            .expect("the chain goes on after a load");
        assert_eq!(third.base, Some(second.id));
    }
}

#[test]
fn a_wrong_chain_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut table = Table::new(config(Optimizer::default())).expect("a valid configuration");
    train(&mut table, 1, &[1, 2]);
    let full = table.save(&path("full"), None).expect("a save");
    train(&mut table, 2, &[2, 3]);
    let first = table.save(&path("first"), Some(&full.id)).expect("a save");
    train(&mut table, 3, &[4]);
    table.save(&path("second"), Some(&first.id)).expect("a save");
    assert!(matches!(
        table.save(&path("x"), Some(&full.id)),
        Err(Error::State { .. })
    ));
    for chain in [
        vec!["full", "second"],
        vec!["first"],
        vec!["full", "full"],
        vec!["full", "first", "first"],
    ] {
        let paths: Vec<_> = chain.iter().map(|name| path(name)).collect();
        assert!(
            matches!(Table::load(&paths, None), Err(Error::Format { .. })),
            "{chain:?}"
        );
    }
    assert!(!path("x").exists());
}

#[test]
fn a_failed_save_leaves_the_old_file_and_no_litter() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = Table::new(config(Optimizer::default())).expect("a valid configuration");
    train(&mut table, 1, &[1, 2]);
    // A folder in the place of the file: the rename must fail after everything was written.
    let path = folder.path().join("taken");
    std::fs::create_dir(&path).expect("a folder");
    assert!(matches!(table.save(&path, None), Err(Error::Io { .. })));
    let names: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(names.len(), 1);
}

#[test]
fn a_configuration_that_changes_the_shape_of_rows_is_refused() {
    let bytes = small();
    let stored = config(Optimizer::default());
    let mut no_statistics = stored.clone();
    no_statistics.eviction = Eviction::default();
    for other in [config(Optimizer::Sgd { weight_decay: 0.0 }), no_statistics] {
        let outcome = Table::from_bytes(&bytes, Path::new("small.table"), Some(other));
        assert!(matches!(outcome, Err(Error::Config { .. })));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_table_comes_back_from_its_bytes(
        which in 0_usize..3,
        bucket_bits in 0_u32..6,
        batches in prop::collection::vec(prop::collection::vec(any::<u64>(), 1..60), 0..6),
    ) {
        let config = TableConfig { bucket_bits, ..config(optimizers()[which]) };
        let mut table = Table::new(config).expect("a valid configuration");
        for (step, batch) in batches.iter().enumerate() {
            train(&mut table, step as u64 + 1, batch);
        }
        let bytes = table.to_bytes();
        let loaded = load(&bytes).expect("an undamaged file");
        prop_assert_eq!(loaded.digest(), table.digest());
        prop_assert_eq!(loaded.len(), table.len());
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), keep in 0_usize..200) {
        let mut file = small();
        file.truncate(keep);
        file.extend_from_slice(&bytes);
        prop_assert!(load(&file).is_err());
    }
}

/// One push of a gradient that is not a number, to sign 7.
fn broken(gradient: f32) -> Table {
    let mut table = Table::new(config(Optimizer::Sgd { weight_decay: 0.0 })).expect("a valid configuration");
    train(&mut table, 1, &[1, 2, 3]);
    table.begin_step(2).expect("steps ascend");
    let mut values = [0.0; 3];
    table.pull(&[7], &mut values).expect("memory");
    let rate = Rate {
        learning_rate: 0.1,
        scale: 1.0,
    };
    table
        .push(&[7], &[0.0, gradient, 0.0], &[1.0], &[1.0], rate)
        .expect("a push");
    table
}

#[test]
fn a_row_that_is_not_finite_is_named_and_not_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    for (gradient, value) in [(f32::NAN, "NaN"), (f32::INFINITY, "-inf")] {
        let mut table = broken(gradient);
        for outcome in [
            table.save(&folder.path().join("t"), None).map(|_| ()),
            table.check_finite(),
        ] {
            let error = outcome.expect_err("sign 7 is broken").to_string();
            assert_eq!(
                error,
                format!("table `t`: the row of sign 7 is not finite: weight 1 is {value}")
            );
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}

/// A file whose header says something else, with checksums that fit.
fn with_header(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let length = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) as usize;
    let header = std::str::from_utf8(&bytes[16..16 + length]).expect("JSON");
    assert!(header.contains(from), "{header}");
    let header = header.replacen(from, to, 1);
    let mut made = bytes[..12].to_vec();
    made.extend_from_slice(&(header.len() as u32).to_le_bytes());
    made.extend_from_slice(header.as_bytes());
    made.extend_from_slice(&crc32fast::hash(&made).to_le_bytes());
    // The end: head of the block, rows, tombstones, digest of all before it, checksum.
    let end = bytes.len() - 8 - 32 - 4;
    made.extend_from_slice(&bytes[16 + length + 4..end]);
    let digest = xxhash_rust::xxh3::xxh3_128(&made);
    let start = made.len();
    made.extend_from_slice(&bytes[end..end + 24]);
    made.extend_from_slice(&digest.to_le_bytes());
    made.extend_from_slice(&crc32fast::hash(&made[start..]).to_le_bytes());
    made
}

#[test]
fn numbers_that_no_float_has_are_refused_since_they_could_not_be_written_again() {
    let mut adam = Table::new(config(optimizers()[2])).expect("a valid configuration");
    train(&mut adam, 1, &[1, 2, 3]);
    let adam = adam.to_bytes();
    load(&with_header(&adam, "[[1,0.1]]", "[[1,0.25]]")).expect("a header that was changed with care");
    for (bytes, from, to) in [
        (small(), "\"std\":0.1", "\"std\":1e39"),
        (small(), "\"std\":0.1", "\"std\":-0.1"),
        (adam.clone(), "[[1,0.1]]", "[[1,1e39]]"),
        (adam, "[[1,0.1]]", "[[1,-0.1]]"),
    ] {
        let outcome = load(&with_header(&bytes, from, to));
        assert!(matches!(outcome, Err(Error::Format { .. })), "{to}");
    }
}

#[test]
fn saves_of_shares_join_to_the_save_of_the_whole_and_part_again() {
    const COUNT: usize = 3;
    let folder = tempfile::tempdir().expect("a folder");
    let signs: Vec<u64> = (0..3000).collect();
    let trained = |signs: &[u64]| {
        let mut table = Table::new(config(Optimizer::default())).expect("a table");
        (1..4).for_each(|step| train(&mut table, step, signs));
        table
    };
    let share = |index| Share::new(index, COUNT).expect("a share");
    let mut paths = Vec::new();
    for index in 0..COUNT {
        let own: Vec<u64> = signs
            .iter()
            .copied()
            .filter(|&sign| share(index).holds(sign))
            .collect();
        paths.push(folder.path().join(format!("{index}.rows")));
        trained(&own).save(&paths[index], None).expect("a save");
    }
    let joined = folder.path().join("joined.rows");
    let report = join_saves(&paths, &joined).expect("shares of one table");
    let read = |table: &Table| {
        let mut values = vec![0.0; signs.len() * 3];
        table.peek(&signs, &mut values).expect("rows");
        values
    };
    let (whole, table) = (trained(&signs), Table::load(&[&joined], None).expect("a table"));
    assert_eq!((report.rows, table.len()), (whole.len(), whole.len()));
    assert_eq!(read(&table), read(&whole));
    for (index, path) in paths.iter().enumerate() {
        let part = Table::load_parts(&[vec![joined.clone()]], None, |sign| share(index).holds(sign))
            .expect("a share");
        let own = Table::load(&[path], None).expect("a table");
        assert_eq!((part.len(), read(&part)), (own.len(), read(&own)));
    }

    let mut later = trained(&signs[..9]);
    later.begin_step(9).expect("steps ascend");
    later.save(&paths[1], None).expect("a save");
    let error = join_saves(&paths, &joined).expect_err("shares of different steps");
    assert!(error.to_string().contains("in the same step"), "{error}");
    assert_eq!(
        Table::load(&[&joined], None).expect("the file before").len(),
        whole.len()
    );
}
