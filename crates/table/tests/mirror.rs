//! A table whose rows are copies, and the original that it exchanges them with.

use clickmill_table::config::Admission;
use clickmill_table::{Buffers, Error, Lookup, Mirror, Rate, Table, TableConfig};
use clickmill_types::schema::{Init, TableSpec};

const DIM: usize = 4;

fn config() -> TableConfig {
    let mut config = TableConfig::new(TableSpec {
        name: "t".to_owned(),
        dim: DIM as u32,
        seed: 3,
        init: Init::Normal { std: 0.1 },
    });
    config.bucket_bits = 3;
    config.statistics = true;
    config
}

fn table() -> Table {
    Table::new(config()).expect("a valid configuration")
}

/// A trainer: its table and what it knows of the original.
struct Trainer {
    table: Table,
    mirror: Mirror,
    step: u64,
}

impl Trainer {
    fn new() -> Self {
        let table = table();
        Self {
            mirror: Mirror::new(&table),
            table,
            step: 0,
        }
    }

    fn fetch(&mut self, original: &Table, signs: &[u64]) -> Vec<u64> {
        let missing = self.mirror.missing(&self.table, signs).expect("its own table");
        let mut rows = vec![0.0; missing.len() * original.row_floats()];
        original.read_full(&missing, &mut rows).expect("rows fit");
        self.mirror
            .learn(&mut self.table, &missing, &rows)
            .expect("rows fit");
        missing
    }

    fn train(&mut self, signs: &[u64], gradient: f32) {
        self.step += 1;
        self.table.begin_step(self.step).expect("steps ascend");
        let lookup = Lookup::train(&mut self.table, signs, &Buffers::default()).expect("rows fit");
        self.mirror.touch(&self.table, &lookup).expect("its own table");
        lookup
            .add_gradients(&vec![gradient; signs.len() * DIM])
            .expect("they fit");
        self.table.apply(&lookup, rate()).expect("it was trained");
    }

    /// Gives the signs that were sent.
    fn exchange(&mut self, original: &mut Table, share: f32) -> Vec<u64> {
        let (signs, deltas) = self
            .mirror
            .differences(&self.table, share, |_| {})
            .expect("its own table");
        original.add_full(&signs, &deltas).expect("rows fit");
        let mut rows = vec![0.0; deltas.len()];
        original.read_full(&signs, &mut rows).expect("rows fit");
        self.mirror.expect().expect("none is under way");
        self.mirror.settle(&mut self.table, &mut rows).expect("rows fit");
        signs
    }
}

fn rate() -> Rate {
    Rate {
        learning_rate: 0.05,
        scale: 1.0,
    }
}

fn rows(table: &Table, signs: &[u64]) -> Vec<f32> {
    let mut out = vec![0.0; signs.len() * table.row_floats()];
    table.read_full(signs, &mut out).expect("rows fit");
    out
}

fn assert_near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }
}

#[test]
fn one_trainer_leaves_on_the_server_what_it_has_learnt_alone() {
    let (mut original, mut alone, mut trainer) = (table(), Trainer::new(), Trainer::new());
    for round in 0..4 {
        for signs in [[1, 2, 3], [3, 4, 5 + round]] {
            trainer.fetch(&original, &signs);
            for each in [&mut trainer, &mut alone] {
                each.train(&signs, 0.5 - round as f32);
            }
        }
        trainer.exchange(&mut original, 1.0);
        let signs = [1, 2, 3, 4, 5 + round];
        assert_near(&rows(&original, &signs), &rows(&alone.table, &signs));
        assert_near(&rows(&trainer.table, &signs), &rows(&alone.table, &signs));
    }
}

#[test]
fn only_rows_touched_since_the_last_exchange_are_sent() {
    let (mut original, mut trainer) = (table(), Trainer::new());
    trainer.train(&[1, 2, 3], 1.0);
    trainer.train(&[3, 2], 1.0);
    let mut signs = trainer.exchange(&mut original, 1.0);
    signs.sort_unstable();
    assert_eq!(signs, [1, 2, 3]);
    trainer.train(&[2], 1.0);
    assert_eq!(trainer.exchange(&mut original, 1.0), [2]);
    assert!(trainer.exchange(&mut original, 1.0).is_empty());
}

#[test]
fn two_trainers_follow_the_formula_and_hear_of_each_other() {
    let (mut original, mut first, mut second) = (table(), Trainer::new(), Trainer::new());
    let begin = rows(&original, &[7]);
    for trainer in [&mut first, &mut second] {
        trainer.fetch(&original, &[7]);
    }
    first.train(&[7], 1.0);
    second.train(&[7], -2.0);
    let learnt = [rows(&first.table, &[7]), rows(&second.table, &[7])];
    first.exchange(&mut original, 0.5);
    second.exchange(&mut original, 0.5);
    let each = |work: &dyn Fn(usize) -> f32| (0..begin.len()).map(work).collect::<Vec<f32>>();
    let sum = each(&|at| begin[at] + (learnt[0][at] - begin[at]) / 2.0 + (learnt[1][at] - begin[at]) / 2.0);
    assert_near(&rows(&original, &[7]), &sum);
    // The second keeps all that it has learnt, and gets what the first has sent.
    let heard = each(&|at| learnt[1][at] + (learnt[0][at] - begin[at]) / 2.0);
    assert_near(&rows(&second.table, &[7]), &heard);
}

#[test]
fn rows_that_servers_hold_are_brought_once() {
    let mut original = table();
    original.begin_step(1).expect("steps ascend");
    original.pull(&[1, 2], &mut [0.0; 2 * DIM]).expect("values fit");
    original
        .push(&[1, 2], &[1.0; 2 * DIM], &[3.0; 2], &[1.0; 2], rate())
        .expect("they fit");
    let mut trainer = Trainer::new();
    assert_eq!(trainer.fetch(&original, &[1, 2, 9]), [1, 2, 9]);
    assert_near(&rows(&trainer.table, &[1, 2]), &rows(&original, &[1, 2]));
    assert_eq!(trainer.table.len(), 2, "nobody has a row of 9");
    trainer.train(&[1, 2, 9], 1.0);
    assert!(trainer.fetch(&original, &[9, 2, 1]).is_empty());
}

#[test]
fn admission_decides_over_rows_that_nobody_has() {
    let mut config = config();
    config.admission = Admission::Count {
        at: 2,
        sketch_bits: 10,
    };
    let table = Table::new(config).expect("a valid configuration");
    let (mut original, mut trainer) = (self::table(), Trainer::new());
    trainer.mirror = Mirror::new(&table);
    trainer.table = table;
    assert_eq!(trainer.fetch(&original, &[5]), [5]);
    assert!(trainer.fetch(&original, &[5]).is_empty(), "nobody is asked again");
    trainer.train(&[5], 1.0);
    assert!(
        trainer.exchange(&mut original, 1.0).is_empty(),
        "seen once: it has no row"
    );
    trainer.train(&[5], 1.0);
    assert_eq!(trainer.exchange(&mut original, 1.0), [5]);
    assert_near(&rows(&original, &[5]), &rows(&trainer.table, &[5]));
}

#[test]
fn a_mirror_refuses_another_table() {
    let trainer = Trainer::new();
    let refused = trainer.mirror.missing(&table(), &[1]);
    assert!(matches!(refused, Err(Error::State { .. })), "{refused:?}");
}

#[test]
fn an_answer_may_come_in_pieces_and_moves_what_was_trained_meanwhile() {
    let (mut original, mut trainer) = (table(), Trainer::new());
    let (mut alone, signs) = (Trainer::new(), [1, 2, 3, 4, 5]);
    trainer.train(&signs, 1.0);
    alone.train(&signs, 1.0);
    let (sent, deltas) = trainer
        .mirror
        .differences(&trainer.table, 1.0, |_| {})
        .expect("its own table");
    trainer.mirror.expect().expect("none is under way");
    assert!(matches!(trainer.mirror.expect(), Err(Error::State { .. })));
    original.add_full(&sent, &deltas).expect("rows fit");
    trainer.train(&signs, 0.5);
    alone.train(&signs, 0.5);
    let mut answer = rows(&original, &sent);
    for piece in answer.chunks_mut(2 * original.row_floats()) {
        trainer
            .mirror
            .settle(&mut trainer.table, piece)
            .expect("rows fit");
    }
    assert_near(&rows(&trainer.table, &signs), &rows(&alone.table, &signs));
    let mut more = vec![0.0; original.row_floats()];
    let refused = trainer.mirror.settle(&mut trainer.table, &mut more);
    assert!(
        matches!(refused, Err(Error::Argument { .. })),
        "nothing is expected: {refused:?}"
    );
    trainer.exchange(&mut original, 1.0);
    assert_near(&rows(&original, &signs), &rows(&alone.table, &signs));
}
