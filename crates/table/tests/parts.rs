//! Tables spread over servers: their parts make the table again, and other parts.

use std::path::{Path, PathBuf};

use clickmill_table::config::{Admission, Optimizer, ShowClick};
use clickmill_table::{Coming, Error, Rate, Table, TableConfig};
use clickmill_types::schema::{Init, TableSpec};
use clickmill_types::sign::bucket;

const DIM: usize = 4;
const SERVERS: usize = 3;

fn config(optimizer: Optimizer) -> TableConfig {
    let mut config = TableConfig::new(TableSpec {
        name: "t".to_owned(),
        dim: DIM as u32,
        seed: 5,
        init: Init::Normal { std: 0.1 },
    });
    config.bucket_bits = 3;
    config.optimizer = optimizer;
    config.eviction.show_click = Some(ShowClick {
        show_coefficient: 0.1,
        click_coefficient: 1.0,
        decay: 0.9,
        threshold: 0.05,
    });
    config
}

fn optimizers() -> [Optimizer; 2] {
    [
        Optimizer::default(),
        Optimizer::Adam {
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.01,
        },
    ]
}

fn server_of(sign: u64, num_servers: usize) -> usize {
    bucket(sign, 10) % num_servers
}

/// One step with the signs that a server owns; with none, the step is over all the same.
fn train(table: &mut Table, step: u64, signs: &[u64]) {
    table.begin_step(step).expect("steps ascend");
    let mut values = vec![0.0; signs.len() * DIM];
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

/// A table in one place and the same table spread over servers, with the chains of its parts.
struct Cluster {
    whole: Table,
    servers: Vec<Table>,
    chains: Vec<Vec<PathBuf>>,
}

impl Cluster {
    /// Trains through decays and evictions, with a full save and an increment on the way.
    fn new(folder: &Path, config: &TableConfig) -> Self {
        let new = || Table::new(config.clone()).expect("a valid configuration");
        let mut cluster = Self {
            whole: new(),
            servers: (0..SERVERS).map(|_| new()).collect(),
            chains: vec![Vec::new(); SERVERS],
        };
        cluster.train(1, &(0..200).collect::<Vec<_>>());
        let full = cluster.save(folder, "full", &[None, None, None]);
        for step in 2..30 {
            cluster.train(step, &(step * 3..step * 3 + 40).collect::<Vec<_>>());
            for table in cluster.servers.iter_mut().chain([&mut cluster.whole]) {
                table.evict().expect("memory");
            }
        }
        let bases: Vec<Option<&str>> = full.iter().map(|id| Some(id.as_str())).collect();
        cluster.save(folder, "next", &bases);
        cluster
    }

    fn train(&mut self, step: u64, signs: &[u64]) {
        train(&mut self.whole, step, signs);
        for (server, table) in self.servers.iter_mut().enumerate() {
            let own: Vec<u64> = signs
                .iter()
                .copied()
                .filter(|&sign| server_of(sign, SERVERS) == server)
                .collect();
            train(table, step, &own);
        }
    }

    fn save(&mut self, folder: &Path, name: &str, bases: &[Option<&str>]) -> Vec<String> {
        let mut ids = Vec::new();
        for (server, table) in self.servers.iter_mut().enumerate() {
            let path = folder.join(format!("{name}-{server}"));
            ids.push(table.save(&path, bases[server]).expect("a save").id);
            self.chains[server].push(path);
        }
        ids
    }
}

#[test]
fn the_parts_of_a_fence_make_the_table_again() {
    for optimizer in optimizers() {
        let folder = tempfile::tempdir().expect("a folder");
        let Cluster {
            mut whole, chains, ..
        } = Cluster::new(folder.path(), &config(optimizer));
        let mut table = Table::load_parts(&chains, None, |_| true).expect("parts of one fence");
        assert_eq!((table.digest(), table.len()), (whole.digest(), whole.len()));
        let wider = TableConfig {
            bucket_bits: 7,
            ..config(optimizer)
        };
        let other = Table::load_parts(&chains, Some(&wider), |_| true).expect("another bucket count");
        assert_eq!((other.digest(), other.stats().bucket_bits), (whole.digest(), 7));
        for table in [&mut table, &mut whole] {
            train(table, 31, &[1, 60, 9_000]);
        }
        assert_eq!(table.digest(), whole.digest());
    }
}

#[test]
fn any_other_number_of_servers_gets_every_row_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let Cluster { whole, chains, .. } = Cluster::new(folder.path(), &config(optimizers()[1]));
    for num_servers in [1, 2, 5] {
        let mut parts = Vec::new();
        for server in 0..num_servers {
            let keep = |sign| server_of(sign, num_servers) == server;
            let mut part = Table::load_parts(&chains, None, keep).expect("parts of one fence");
            assert_eq!(
                part.remove_where(keep).expect("memory"),
                part_len(&whole, num_servers, server)
            );
            assert!(part.is_empty(), "rows of other servers");
            let mut part = Table::load_parts(&chains, None, keep).expect("parts of one fence");
            let path = folder.path().join(format!("{num_servers}-{server}"));
            part.save(&path, None).expect("a full save");
            parts.push(vec![path]);
        }
        let again = Table::load_parts(&parts, None, |_| true).expect("parts of one fence");
        assert_eq!(again.digest(), whole.digest());
    }
}

/// Rows of `table` that a server would own.
fn part_len(table: &Table, num_servers: usize, server: usize) -> u64 {
    let bytes = table.to_bytes();
    let mut copy = Table::from_bytes(&bytes, Path::new("copy"), None).expect("an undamaged file");
    copy.remove_where(|sign| server_of(sign, num_servers) == server)
        .expect("memory")
}

#[test]
fn rows_move_to_another_server_at_a_fence_and_the_next_saves_are_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cluster = Cluster::new(folder.path(), &config(optimizers()[0]));
    let path = |name: &str| folder.path().join(name);
    let moves = |sign: u64| bucket(sign, 10) < 500;
    let last = cluster.chains[1].last().expect("a save").clone();
    let base = Table::load(&cluster.chains[1], None).expect("an undamaged chain");
    assert_eq!(
        base.digest(),
        cluster.servers[1].digest(),
        "the fence of the last save"
    );

    let chain = [cluster.chains[1].clone()];
    let added = cluster.servers[0]
        .extend_from_parts(&chain, moves)
        .expect("rows of other signs");
    let removed = cluster.servers[1].remove_where(moves).expect("memory");
    assert!(added > 0 && added == removed);
    for (server, table) in cluster.servers[..2].iter_mut().enumerate() {
        let error = table
            .save(&path("x"), Some("any"))
            .expect_err("no increment after a move")
            .to_string();
        assert!(error.contains("save in full"), "{error}");
        table
            .save(&path(&format!("moved-{server}")), None)
            .expect("a full save");
    }
    assert!(last.exists());
    let chains = [
        vec![path("moved-0")],
        vec![path("moved-1")],
        cluster.chains[2].clone(),
    ];
    let table = Table::load_parts(&chains, None, |_| true).expect("parts of one fence");
    assert_eq!(table.digest(), cluster.whole.digest());
}

#[test]
fn rows_that_are_copied_ahead_are_completed_by_the_increments_of_the_fence() {
    for optimizer in optimizers() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = config(optimizer);
        let mut cluster = Cluster::new(folder.path(), &config);
        let moves = |sign: u64| bucket(sign, 10) < 500;
        let ahead: Vec<Vec<PathBuf>> = cluster.chains.iter().map(|chain| chain[..1].to_vec()).collect();
        let mut coming = Coming::read(&ahead, &config, moves).expect("a full save");
        assert!(coming.is_begun_by(&cluster.chains));
        coming
            .complete(&cluster.chains, moves)
            .expect("increments on what was read");
        let stranger = [cluster.chains[1].clone(), cluster.chains[0].clone()];
        assert!(!coming.is_begun_by(&stranger) && coming.complete(&stranger, moves).is_err());

        let mut table = coming.into_table().expect("parts of one fence");
        let mut left = cluster.chains.clone();
        for (server, own) in cluster.servers.iter_mut().enumerate() {
            own.remove_where(moves).expect("memory");
            let path = folder.path().join(format!("left-{server}"));
            own.save(&path, None).expect("a full save");
            left[server] = vec![path];
        }
        let rest = Coming::read(&left, &config, |_| true).expect("full saves");
        table.take_in(rest).expect("rows of other signs");
        assert_eq!(table.digest(), cluster.whole.digest());
    }
}

#[test]
fn a_sign_in_two_parts_is_an_error_that_names_it_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let new = || Table::new(config(optimizers()[0])).expect("a valid configuration");
    let (mut one, mut two) = (new(), new());
    train(&mut one, 1, &[1, 2, 77]);
    train(&mut two, 1, &[3, 77, 4]);
    one.save(&path("one"), None).expect("a save");
    two.save(&path("two"), None).expect("a save");
    let chains = [vec![path("one")], vec![path("two")]];
    let error = Table::load_parts(&chains, None, |_| true)
        .err()
        .expect("77 is in both");
    assert!(error.to_string().contains("sign 77"), "{error}");
    assert!(Table::load_parts(&chains, None, |sign| sign != 77).is_ok());

    let before = one.digest();
    let error = one
        .extend_from_parts(&chains[1..], |_| true)
        .expect_err("77 is in both");
    assert!(error.to_string().contains("sign 77"), "{error}");
    assert_eq!(one.digest(), before);
}

#[test]
fn parts_of_two_fences_or_of_two_kinds_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let save = |name: &str, config: TableConfig, steps: u64, evictions: u32| {
        let mut table = Table::new(config).expect("a valid configuration");
        for step in 1..=steps {
            train(&mut table, step, &[steps, step + 100]);
        }
        for _ in 0..evictions {
            table.evict().expect("memory");
        }
        table.save(&path(name), None).expect("a save");
        table
    };
    let mut table = save("first", config(optimizers()[0]), 3, 1);
    save("later", config(optimizers()[0]), 4, 1);
    save("decayed", config(optimizers()[0]), 3, 2);
    let rows_of_sgd = config(Optimizer::Sgd { weight_decay: 0.0 });
    save("other", rows_of_sgd, 3, 1);
    for (name, reason) in [
        ("later", "the step of"),
        ("decayed", "the number of decays of"),
        ("other", "optimizer"),
    ] {
        let chains = [vec![path("first")], vec![path(name)]];
        let error = Table::load_parts(&chains, None, |_| true)
            .err()
            .expect("they differ");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(table.extend_from_parts(&chains[1..], |_| true).is_err());
    }
    assert!(matches!(
        Table::load_parts(&[], None, |_| true),
        Err(Error::Argument { .. })
    ));
}

#[test]
fn only_the_whole_of_one_chain_can_be_the_base_of_an_increment() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cluster = Cluster::new(folder.path(), &config(optimizers()[0]));
    let path = folder.path().join("increment");
    let id = cluster.servers[0].save(&path, None).expect("a full save").id;
    let chain = [vec![path.clone()]];
    let next = folder.path().join("next");
    let mut whole = Table::load_parts(&chain, None, |_| true).expect("one part");
    whole.save(&next, Some(&id)).expect("an increment");
    let mut some = Table::load_parts(&chain, None, |sign| sign % 2 == 0).expect("one part");
    assert!(matches!(some.save(&next, Some(&id)), Err(Error::State { .. })));
    some.save(&next, None).expect("a full save");
}

#[test]
fn a_sign_seen_before_a_restore_is_admitted_no_later_on_its_new_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = TableConfig {
        admission: Admission::Count {
            at: 3,
            sketch_bits: 12,
        },
        ..config(optimizers()[0])
    };
    let mut chains = Vec::new();
    for server in 0..SERVERS {
        let mut table = Table::new(config.clone()).expect("a valid configuration");
        let own: Vec<u64> = (0..60)
            .filter(|&sign| server_of(sign, SERVERS) == server)
            .collect();
        for step in 1..3 {
            train(&mut table, step, &own);
        }
        assert!(table.is_empty());
        let path = folder.path().join(server.to_string());
        table.save(&path, None).expect("a save");
        chains.push(vec![path]);
    }
    let mut table = Table::load_parts(&chains, None, |_| true).expect("parts of one fence");
    train(&mut table, 3, &(0..60).collect::<Vec<_>>());
    assert_eq!(table.len(), 60, "each at its third sighting");
}

#[test]
fn rows_that_were_not_updated_for_longest_go_first_when_there_is_no_room() {
    let mut config = config(optimizers()[0]);
    config.eviction.show_click = None;
    let mut table = Table::new(config).expect("a valid configuration");
    for step in 1..=10 {
        train(&mut table, step, &(step * 10..step * 10 + 10).collect::<Vec<_>>());
    }
    train(&mut table, 11, &[10, 11]);
    assert_eq!(table.evict_to(50).expect("memory"), (0, 50));
    assert_eq!(table.len(), 50);
    let gone = table.remove_where(|sign| sign == 10 || sign == 11 || sign >= 62);
    assert_eq!(gone.expect("memory"), 50, "they were updated last");
    assert_eq!(table.evict_to(50).expect("memory"), (0, 0), "there is room");
}

#[test]
fn rows_with_the_lowest_scores_go_first_where_there_are_scores() {
    let mut table = Table::new(config(optimizers()[0])).expect("a valid configuration");
    let signs: Vec<u64> = (0..40).collect();
    train(&mut table, 1, &signs);
    train(&mut table, 2, &signs[..10]);
    train(&mut table, 3, &signs[..10]);
    train(&mut table, 4, &signs[10..]);
    assert_eq!(table.evict_to(10).expect("memory"), (0, 30));
    let gone = table.remove_where(|sign| sign < 10);
    assert_eq!(gone.expect("memory"), 10, "seen three times, though not of late");
}
