//! A table: buckets of rows, pulled by sign and pushed by place.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use clickmill_types::sign::mix;
use serde::Serialize;

use crate::Error;
use crate::adam::{CatchUp, History};
use crate::admission::Admission;
use crate::bucket::Bucket;
use crate::config::{Optimizer, TableConfig};
use crate::freeze::Frozen;
use crate::initial::Initial;
use crate::layout::Layout;
use crate::merge::Merge;
use crate::pull::{Handle, Source, fill, locate, pull};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// What happened to a table since it was made or loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    pub rows_created: u64,
    pub rows_evicted: u64,
    /// Sightings in training of signs that were not admitted.
    pub sightings_refused: u64,
    /// Gradients of signs that had no row.
    pub gradients_dropped: u64,
}

pub struct Table {
    pub(crate) config: TableConfig,
    pub(crate) layout: Layout,
    pub(crate) buckets: Vec<Bucket>,
    /// Rows of all buckets.
    num_rows: u64,
    pub(crate) bucket_bits: u32,
    pub(crate) initial: Initial,
    pub(crate) admission: Admission,
    pub(crate) history: History,
    pub(crate) step: u32,
    /// Steps that are over: what a read must have caught up with.
    pub(crate) done: u32,
    /// Identity of this table in this process, so that no lookup of another one is taken for its own.
    pub(crate) id: u64,
    /// Rises whenever rows change places.
    pub(crate) generation: u64,
    pub(crate) counters: Counters,
    pub(crate) ledger: crate::ledger::Ledger,
    /// What a save needs that is written while training goes on.
    pub(crate) frozen: Option<Box<Frozen>>,
    pub(crate) merge: Merge,
}

impl Table {
    pub fn new(config: TableConfig) -> Result<Self, Error> {
        config.check()?;
        let layout = Layout::new(&config);
        Ok(Self {
            layout,
            bucket_bits: config.bucket_bits,
            buckets: empty_buckets(layout, config.bucket_bits)?,
            num_rows: 0,
            initial: Initial::new(&config.spec),
            admission: Admission::new(config.admission, config.spec.seed),
            history: History::default(),
            step: 0,
            done: 0,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            generation: 0,
            counters: Counters::default(),
            ledger: crate::ledger::Ledger::default(),
            frozen: None,
            merge: Merge::default(),
            config,
        })
    }

    pub fn config(&self) -> &TableConfig {
        &self.config
    }

    pub fn dim(&self) -> usize {
        self.layout.dim
    }

    pub fn step(&self) -> u32 {
        self.step
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Rows in the table.
    pub fn len(&self) -> u64 {
        self.num_rows
    }

    /// To be called when rows were added or removed otherwise than one by one.
    pub(crate) fn count_rows(&mut self) {
        self.num_rows = self.buckets.iter().map(|bucket| u64::from(bucket.len())).sum();
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of rows, index and admission sketch, and of rows copied for a save that is under way.
    pub fn bytes(&self) -> u64 {
        let rows: usize = self.buckets.iter().map(Bucket::bytes).sum();
        let copies = self.frozen.as_ref().map_or(0, |frozen| frozen.bytes());
        (rows + self.admission.bytes() + copies) as u64
    }

    /// Training is now in `step`; steps count from 1 and never go back.
    pub fn begin_step(&mut self, step: u64) -> Result<(), Error> {
        let next = u32::try_from(step)
            .map_err(|_| Error::argument(format!("step is {step}; allowed: up to {}", u32::MAX)))?;
        if next < self.step {
            return Err(Error::state(format!(
                "step {next} lies before step {} that the table is in; steps never go back",
                self.step
            )));
        }
        self.done = self.done.max(next.saturating_sub(1));
        self.step = next;
        self.extend_history();
        Ok(())
    }

    /// Weights of `signs` to `values` [U,D]; creates rows for signs that are admitted.
    pub(crate) fn pull_train(
        &mut self,
        signs: &[u64],
        values: &mut [f32],
        handles: &mut [Handle],
    ) -> Result<(), Error> {
        pull(&mut Rows(self), signs, values, handles)
    }

    /// As `pull_train`, but writes only the values of signs that get no row.
    pub(crate) fn locate(
        &mut self,
        signs: &[u64],
        values: &mut [f32],
        handles: &mut [Handle],
    ) -> Result<(), Error> {
        locate(&mut Rows(self), signs, values, handles)
    }

    /// Weights of the rows at `handles` as they are now.
    pub(crate) fn fill(&self, handles: &[Handle], values: &mut [f32]) {
        fill(&Rows(self), handles, values);
    }

    /// Weights of `signs` to `values` [U,D]; a sign without a row gives its initial row.
    pub fn peek(&self, signs: &[u64], values: &mut [f32]) -> Result<(), Error> {
        self.check_values(signs.len(), values.len())?;
        let mut handles = vec![Handle::NONE; signs.len()];
        self.read(signs, values, &mut handles)
    }

    /// As `peek`, with the places of the rows.
    pub(crate) fn read(
        &self,
        signs: &[u64],
        values: &mut [f32],
        handles: &mut [Handle],
    ) -> Result<(), Error> {
        pull(&mut Rows(self), signs, values, handles)
    }

    /// Pulls for training: as `peek`, and creates rows for signs that are admitted.
    pub fn pull(&mut self, signs: &[u64], values: &mut [f32]) -> Result<(), Error> {
        self.check_values(signs.len(), values.len())?;
        let mut handles = vec![Handle::NONE; signs.len()];
        self.pull_train(signs, values, &mut handles)
    }

    pub(crate) fn check_values(&self, num_signs: usize, num_values: usize) -> Result<(), Error> {
        let expected = num_signs * self.layout.dim;
        if num_values == expected {
            return Ok(());
        }
        Err(Error::argument(format!(
            "{num_signs} signs of dim {} need {expected} numbers, not {num_values}",
            self.layout.dim
        )))
    }

    /// Places of the rows of `signs`; none for a sign without a row.
    pub(crate) fn find(&self, signs: &[u64]) -> Result<Vec<Handle>, Error> {
        let mut handles = vec![Handle::NONE; signs.len()];
        locate(&mut Places(self), signs, &mut [], &mut handles)?;
        Ok(handles)
    }

    /// The place of a sign, which gets a row if it has none, admitted or not.
    pub(crate) fn ensure(&mut self, sign: u64) -> Result<Handle, Error> {
        let hash = mix(sign);
        let number = bucket_of(hash, self.bucket_bits);
        match self.buckets[number].find(sign, hash) {
            Some(row) => Ok(Handle::new(number, row)),
            None => self.create(sign, hash),
        }
    }

    /// Adds a row for a sign that has none, with its initial weights and state.
    pub(crate) fn create(&mut self, sign: u64, hash: u64) -> Result<Handle, Error> {
        let number = bucket_of(hash, self.bucket_bits);
        let bucket = &mut self.buckets[number];
        let row = bucket.insert(sign, hash, self.step)?;
        let (_, floats) = bucket.row_mut(row);
        fill_row(&self.initial, self.config.optimizer, self.layout, sign, floats);
        self.num_rows += 1;
        self.counters.rows_created += 1;
        Ok(Handle::new(number, row))
    }

    /// What the row of a sign begins with: statistics, state, weights.
    pub(crate) fn fill_initial(&self, sign: u64, floats: &mut [f32]) {
        floats.fill(0.0);
        fill_row(&self.initial, self.config.optimizer, self.layout, sign, floats);
    }

    /// Makes the numbers of all steps that are over known, so that reads can replay them.
    fn extend_history(&mut self) {
        if let Optimizer::Adam { beta1, beta2, .. } = self.config.optimizer
            && let Some(&(_, rate)) = self.history.runs().last()
        {
            self.history.record(self.done, rate, beta1, beta2);
        }
    }

    pub(crate) fn catch_up(&self) -> Option<CatchUp<'_>> {
        CatchUp::new(&self.history, self.config.optimizer)
    }

    /// The step that reads replay to: over, and with a known rate.
    pub(crate) fn replay_to(&self) -> u32 {
        self.done.min(self.history.len())
    }

    pub(crate) fn read_stale(&self, bucket: &Bucket, row: u32, weights: &mut [f32]) {
        let floats = &bucket.floats(row)[self.layout.statistics_len..];
        let (state, stored) = floats.split_at(self.layout.state_len);
        weights.copy_from_slice(stored);
        if let Some(catch_up) = self.catch_up() {
            let mut state = state.to_vec();
            let (first, second) = state.split_at_mut(weights.len());
            catch_up.replay(first, second, weights, bucket.step(row), self.replay_to());
        }
    }
}

/// Writes what a row begins with to `floats`, which are zero.
fn fill_row(initial: &Initial, optimizer: Optimizer, layout: Layout, sign: u64, floats: &mut [f32]) {
    let (state, weights) = floats[layout.statistics_len..].split_at_mut(layout.state_len);
    initial.fill(sign, weights);
    match optimizer {
        Optimizer::Adagrad {
            initial_accumulator, ..
        }
        | Optimizer::RowWiseAdagrad {
            initial_accumulator, ..
        } => state.fill(initial_accumulator),
        Optimizer::Ftrl {
            initial_accumulator, ..
        } => state[layout.dim..].fill(initial_accumulator),
        Optimizer::Sgd { .. } | Optimizer::LazyAdam { .. } | Optimizer::Adam { .. } => {}
    }
}

/// Every sign has one bucket: the top bits of its hash.
#[inline(always)]
pub(crate) fn bucket_of(hash: u64, bucket_bits: u32) -> usize {
    (hash >> 1 >> (63 - bucket_bits)) as usize
}

pub(crate) fn empty_buckets(layout: Layout, bucket_bits: u32) -> Result<Vec<Bucket>, Error> {
    (0..1 << bucket_bits)
        .map(|number| Bucket::new(layout, bucket_bits, number))
        .collect()
}

/// A table as the pull kernel sees it, borrowed to be trained or only to be read.
struct Rows<T>(T);

/// A table as the pull kernel sees it where nobody asks for weights: its rows have none.
struct Places<'a>(&'a Table);

impl Source for Places<'_> {
    #[inline(always)]
    fn buckets(&self) -> &[Bucket] {
        &self.0.buckets
    }
    #[inline(always)]
    fn bucket_bits(&self) -> u32 {
        self.0.bucket_bits
    }
    #[inline(always)]
    fn layout(&self) -> Layout {
        Layout {
            dim: 0,
            ..self.0.layout
        }
    }
    #[inline(always)]
    fn is_current(&self, _bucket: &Bucket, _row: u32) -> bool {
        true
    }
    fn read_stale(&self, _bucket: &Bucket, _row: u32, _weights: &mut [f32]) {}
    #[inline(always)]
    fn absent(&mut self, _sign: u64, _hash: u64, _weights: &mut [f32]) -> Result<Handle, Error> {
        Ok(Handle::NONE)
    }
}

/// Weights, and a place if there is one now, of a sign without a row.
trait Absent {
    fn absent(&mut self, sign: u64, hash: u64, weights: &mut [f32]) -> Result<Handle, Error>;
}

impl Absent for &mut Table {
    // Apart from the kernel, whose every width would have its own copy.
    #[inline(never)]
    fn absent(&mut self, sign: u64, hash: u64, weights: &mut [f32]) -> Result<Handle, Error> {
        self.initial.fill(sign, weights);
        if self.admission.admits(hash, self.step) {
            return self.create(sign, hash);
        }
        self.counters.sightings_refused += 1;
        Ok(Handle::NONE)
    }
}

impl Absent for &Table {
    fn absent(&mut self, sign: u64, _hash: u64, weights: &mut [f32]) -> Result<Handle, Error> {
        self.initial.fill(sign, weights);
        Ok(Handle::NONE)
    }
}

impl<T: Absent + Deref<Target = Table>> Source for Rows<T> {
    #[inline(always)]
    fn buckets(&self) -> &[Bucket] {
        &self.0.buckets
    }
    #[inline(always)]
    fn bucket_bits(&self) -> u32 {
        self.0.bucket_bits
    }
    #[inline(always)]
    fn layout(&self) -> Layout {
        self.0.layout
    }
    #[inline(always)]
    fn is_current(&self, bucket: &Bucket, row: u32) -> bool {
        !matches!(self.0.config.optimizer, Optimizer::Adam { .. }) || bucket.step(row) >= self.0.replay_to()
    }
    fn read_stale(&self, bucket: &Bucket, row: u32, weights: &mut [f32]) {
        self.0.read_stale(bucket, row, weights);
    }
    fn absent(&mut self, sign: u64, hash: u64, weights: &mut [f32]) -> Result<Handle, Error> {
        self.0.absent(sign, hash, weights)
    }
}
