//! The rows of one batch: pulled, pooled, and given their gradients.
//!
//! Values never change after the pull, so that any number of threads may pool at once without a lock.
//! Gradients are gathered under the lookup's own lock. A lookup remembers the places of its rows; they hold
//! until rows change places (eviction, load, split), after which the table refuses it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::pooling::{self, Occurrences, PooledSlot};
use crate::pull::Handle;
use crate::push::Push;
use crate::{Error, Rate, Table};

/// Memory of lookups that are gone, for those to come: a batch is too large to be allocated anew each time.
#[derive(Clone, Default)]
pub struct Buffers {
    free: Arc<Mutex<Vec<Memory>>>,
}

/// As many as a pipeline has in flight.
const MAX_FREE: usize = 16;

#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) values: Vec<f32>,
    handles: Vec<Handle>,
    gathered: Gathered,
}

#[derive(Default)]
pub(crate) struct Gathered {
    /// [U,D], or empty before the first gradient.
    pub(crate) gradients: Vec<f32>,
    /// [U] each, or empty before the first observation.
    pub(crate) shows: Vec<f32>,
    pub(crate) clicks: Vec<f32>,
    is_applied: bool,
}

impl Buffers {
    pub(crate) fn take(&self) -> Memory {
        lock(&self.free).pop().unwrap_or_default()
    }

    pub(crate) fn give(&self, mut memory: Memory) {
        memory.gathered.gradients.clear();
        memory.gathered.shows.clear();
        memory.gathered.clicks.clear();
        memory.gathered.is_applied = false;
        let mut free = lock(&self.free);
        if free.len() < MAX_FREE {
            free.push(memory);
        }
    }
}

/// A panic of another holder cannot leave these plain buffers in a state that matters.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stands for the table of a lookup whose rows live on a server; tables of this process count from 1.
const REMOTE: u64 = 0;

pub struct Lookup {
    table_id: u64,
    generation: u64,
    dim: usize,
    values: Vec<f32>,
    handles: Vec<Handle>,
    gathered: Mutex<Gathered>,
    buffers: Buffers,
}

impl Drop for Lookup {
    fn drop(&mut self) {
        let gathered = std::mem::take(&mut *lock(&self.gathered));
        self.buffers.give(Memory {
            values: std::mem::take(&mut self.values),
            handles: std::mem::take(&mut self.handles),
            gathered,
        });
    }
}

/// A lookup whose rows have been found, or made, but not read: the costly half, which may run while the
/// batch before is still being computed. The table must not evict in between.
pub struct Located(Lookup);

impl Located {
    /// Finds the rows of `signs` for training: admitted signs get a row.
    pub fn new(table: &mut Table, signs: &[u64], buffers: &Buffers) -> Result<Self, Error> {
        let mut lookup = Lookup::sized(table, signs.len(), buffers);
        table.locate(signs, &mut lookup.values, &mut lookup.handles)?;
        Ok(Self(lookup))
    }

    /// Reads the rows as they are now.
    pub fn fill(mut self, table: &Table) -> Result<Lookup, Error> {
        self.0.check_table(table)?;
        table.fill(&self.0.handles, &mut self.0.values);
        Ok(self.0)
    }
}

impl Lookup {
    /// Pulls the rows of `signs` for training: admitted signs get a row.
    pub fn train(table: &mut Table, signs: &[u64], buffers: &Buffers) -> Result<Self, Error> {
        let mut lookup = Self::sized(table, signs.len(), buffers);
        table.pull_train(signs, &mut lookup.values, &mut lookup.handles)?;
        Ok(lookup)
    }

    /// Reads the rows of `signs`; gradients of such a lookup have nowhere to go.
    pub fn read(table: &Table, signs: &[u64], buffers: &Buffers) -> Result<Self, Error> {
        let mut lookup = Self::sized(table, signs.len(), buffers);
        table.read(signs, &mut lookup.values, &mut lookup.handles)?;
        lookup.handles.clear();
        Ok(lookup)
    }

    fn sized(table: &Table, num_rows: usize, buffers: &Buffers) -> Self {
        let mut memory = buffers.take();
        // Old contents stay where they are: the pull overwrites every element.
        memory.values.resize(num_rows * table.dim(), 0.0);
        memory.handles.resize(num_rows, Handle::NONE);
        Self {
            table_id: table.id,
            generation: table.generation,
            dim: table.dim(),
            values: memory.values,
            handles: memory.handles,
            gathered: Mutex::new(memory.gathered),
            buffers: buffers.clone(),
        }
    }

    /// The caller vouches that `values` are whole rows.
    pub(crate) fn remote(dim: usize, values: Vec<f32>, buffers: &Buffers) -> Self {
        let mut memory = buffers.take();
        memory.handles.clear();
        Self {
            table_id: REMOTE,
            generation: 0,
            dim,
            values,
            handles: memory.handles,
            gathered: Mutex::new(memory.gathered),
            buffers: buffers.clone(),
        }
    }

    fn check_table(&self, table: &Table) -> Result<(), Error> {
        if self.table_id == REMOTE {
            return Err(Error::state(
                "the rows of the lookup live on a server; send it their gradients instead",
            ));
        }
        if self.table_id != table.id {
            return Err(Error::state("the lookup belongs to another table"));
        }
        if self.generation != table.generation {
            return Err(Error::state(
                "the lookup was made before rows changed places; apply lookups before a fence that evicts",
            ));
        }
        Ok(())
    }

    /// Refuses a lookup whose gradients have no place in `table`.
    pub(crate) fn check_trained(&self, table: &Table) -> Result<(), Error> {
        self.check_table(table)?;
        if self.handles.len() != self.num_rows() {
            return Err(Error::state(
                "the lookup was made for reading; pull with train=True",
            ));
        }
        Ok(())
    }

    /// Shows the places of the rows and what was gathered, [U,D] at least, and counts it as applied.
    pub(crate) fn take_gathered(&self, work: impl FnOnce(&[Handle], &Gathered)) -> Result<(), Error> {
        self.gather(|gathered| {
            gathered.gradients(self.values.len());
            work(&self.handles, gathered);
            gathered.is_applied = true;
            Ok(())
        })
    }

    /// Hands out the gradients of a lookup that counts as applied.
    pub(crate) fn release_gradients(&self) -> Vec<f32> {
        std::mem::take(&mut lock(&self.gathered).gradients)
    }

    /// Takes back that it was applied.
    pub(crate) fn release_gathered(&self) {
        lock(&self.gathered).is_applied = false;
    }

    /// Places of the rows; those of a lookup for reading are not kept.
    pub(crate) fn handles(&self) -> &[Handle] {
        &self.handles
    }

    /// U.
    pub fn num_rows(&self) -> usize {
        self.values.len() / self.dim
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    /// [U,D].
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Pools to `out` [B',P,D] the samples from `first_sample` on, slots in the order given.
    pub fn pool(
        &self,
        occurrences: &Occurrences<'_>,
        first_sample: usize,
        slots: &[PooledSlot],
        out: &mut [f32],
    ) -> Result<(), Error> {
        pooling::pool(&self.values, self.dim, occurrences, first_sample, slots, out)
    }

    /// Rows of one slot to `out` [B',L,D], zero padded, and their number to `lengths` [B'].
    pub fn sequence(
        &self,
        occurrences: &Occurrences<'_>,
        first_sample: usize,
        position: usize,
        out: &mut [f32],
        lengths: &mut [i64],
    ) -> Result<(), Error> {
        pooling::sequence(
            &self.values,
            self.dim,
            occurrences,
            first_sample,
            position,
            out,
            lengths,
        )
    }

    /// Adds the gradients [B',P,D] of what `pool` gave.
    pub fn unpool(
        &self,
        occurrences: &Occurrences<'_>,
        first_sample: usize,
        slots: &[PooledSlot],
        out_gradients: &[f32],
    ) -> Result<(), Error> {
        self.gather(|gathered| {
            let gradients = gathered.gradients(self.values.len());
            pooling::unpool(
                &self.values,
                self.dim,
                occurrences,
                first_sample,
                slots,
                out_gradients,
                gradients,
            )
        })
    }

    /// Adds the gradients [B',L,D] of what `sequence` gave.
    pub fn unsequence(
        &self,
        occurrences: &Occurrences<'_>,
        first_sample: usize,
        position: usize,
        num_samples: usize,
        out_gradients: &[f32],
    ) -> Result<(), Error> {
        self.gather(|gathered| {
            let gradients = gathered.gradients(self.values.len());
            pooling::unsequence(
                self.dim,
                occurrences,
                first_sample,
                position,
                num_samples,
                out_gradients,
                gradients,
            )
        })
    }

    /// Adds gradients [U,D] as they are.
    pub fn add_gradients(&self, gradients: &[f32]) -> Result<(), Error> {
        if gradients.len() != self.values.len() {
            return Err(Error::argument(format!(
                "{} numbers for {} rows of dim {}",
                gradients.len(),
                self.num_rows(),
                self.dim
            )));
        }
        self.gather(|gathered| {
            let sums = gathered.gradients(self.values.len());
            sums.iter_mut()
                .zip(gradients)
                .for_each(|(sum, &gradient)| *sum += gradient);
            Ok(())
        })
    }

    /// Counts shows and clicks of the rows: one show an occurrence, the sample's label as clicks.
    pub fn observe(&self, occurrences: &Occurrences<'_>, labels: &[f32]) -> Result<(), Error> {
        self.gather(|gathered| {
            let (shows, clicks) = gathered.counts(self.num_rows());
            pooling::observe(occurrences, labels, shows, clicks)
        })
    }

    /// The gradients gathered so far, [U,D].
    pub fn gradients(&self) -> Result<Vec<f32>, Error> {
        self.gather(|gathered| Ok(gathered.gradients(self.values.len()).clone()))
    }

    /// Sum of the squared gradients, for clipping by a global norm.
    pub fn gradient_square_sum(&self) -> Result<f64, Error> {
        self.gather(|gathered| Ok(crate::dense::square_sum(&[gathered.gradients(self.values.len())])))
    }

    pub(crate) fn gather<T>(&self, work: impl FnOnce(&mut Gathered) -> Result<T, Error>) -> Result<T, Error> {
        let mut gathered = lock(&self.gathered);
        if gathered.is_applied {
            return Err(Error::state(
                "the lookup has been applied; pull again for the next batch",
            ));
        }
        work(&mut gathered)
    }
}

impl Gathered {
    pub(crate) fn gradients(&mut self, len: usize) -> &mut Vec<f32> {
        if self.gradients.len() != len {
            self.gradients.clear();
            self.gradients.resize(len, 0.0);
        }
        &mut self.gradients
    }

    pub(crate) fn counts(&mut self, num_rows: usize) -> (&mut [f32], &mut [f32]) {
        self.shows.resize(num_rows, 0.0);
        self.clicks.resize(num_rows, 0.0);
        (&mut self.shows, &mut self.clicks)
    }
}

impl Table {
    /// Applies what a lookup has gathered, once.
    pub fn apply(&mut self, lookup: &Lookup, rate: Rate) -> Result<(), Error> {
        lookup.check_trained(self)?;
        lookup.gather(|gathered| {
            gathered.gradients(lookup.values.len());
            let Gathered {
                gradients,
                shows,
                clicks,
                is_applied,
            } = gathered;
            let batch = Push {
                handles: &lookup.handles,
                gradients,
                shows,
                clicks,
            };
            self.push_rows(batch, rate)?;
            *is_applied = true;
            Ok(())
        })
    }
}
