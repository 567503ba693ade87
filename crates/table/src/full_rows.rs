//! Rows with everything they are made of, by sign: for training that exchanges rows instead of gradients.
//!
//! The floats of a row are its statistics where kept, its optimizer state, and its weights, in the order of the
//! file format. F is their number.
//!
//! A row that is written counts as updated in the step that the table is in, as after a push. With dense Adam a
//! row is brought up to the steps that are over before it is read or written, so that tables at different
//! steps exchange what their rows are now; after a write, the next step to be made up for is the one after the
//! current one.

use std::ops::Range;

use crate::adam::CatchUp;
use crate::config::Optimizer;
use crate::prefetch;
use crate::pull::Handle;
use crate::{Error, Table};

const AHEAD: usize = 32;

impl Table {
    /// F.
    pub fn row_floats(&self) -> usize {
        self.layout.floats()
    }

    /// The floats of `signs` to `out` [U,F]; a sign without a row gives what its row would begin with.
    pub fn read_full(&self, signs: &[u64], out: &mut [f32]) -> Result<(), Error> {
        self.check_floats(signs.len(), out.len())?;
        let handles = self.find(signs)?;
        for (at, floats) in out.chunks_exact_mut(self.layout.floats()).enumerate() {
            self.prefetch_ahead(&handles, at);
            let handle = handles[at];
            if handle.is_none() {
                self.fill_initial(signs[at], floats);
            } else {
                self.read_row(handle, floats);
            }
        }
        Ok(())
    }

    /// The floats of a row by place.
    pub(crate) fn read_row(&self, handle: Handle, floats: &mut [f32]) {
        let bucket = &self.buckets[handle.bucket()];
        floats.copy_from_slice(bucket.floats(handle.row()));
        if let Some(catch_up) = self.catch_up() {
            let last_step = bucket.step(handle.row());
            let floats = &mut floats[self.layout.statistics_len..];
            replay(&catch_up, floats, last_step, self.replay_to());
        }
    }

    /// Adds `deltas` [U,F] to the rows of `signs`; a sign without a row gets one, admitted or not.
    ///
    /// Sums of squares stay at 0 or above: deltas of several trainers may take off together more than is there.
    pub fn add_full(&mut self, signs: &[u64], deltas: &[f32]) -> Result<(), Error> {
        self.check_floats(signs.len(), deltas.len())?;
        let handles = self.ensure_all(signs)?;
        self.add_full_at(&handles, deltas)
    }

    /// As `add_full`, to rows by place.
    pub(crate) fn add_full_at(&mut self, handles: &[Handle], deltas: &[f32]) -> Result<(), Error> {
        let start = self.layout.statistics_len;
        let squares = squares(self.config.optimizer, self.layout.dim);
        let squares = start + squares.start..start + squares.end;
        self.write_full_at(handles, deltas, |floats, deltas| {
            floats
                .iter_mut()
                .zip(deltas)
                .for_each(|(float, delta)| *float += delta);
            for square in &mut floats[squares.clone()] {
                // Not `max`, which would hide a NaN from the next save.
                if *square < 0.0 {
                    *square = 0.0;
                }
            }
        })
    }

    /// Gives the rows of `signs` the floats `floats` [U,F]; a sign without a row gets one, admitted or not.
    pub fn set_full(&mut self, signs: &[u64], floats: &[f32]) -> Result<(), Error> {
        self.check_floats(signs.len(), floats.len())?;
        let handles = self.ensure_all(signs)?;
        self.write_full_at(&handles, floats, <[f32]>::copy_from_slice)
    }

    /// Places of the rows of `signs`, all of which have one now.
    fn ensure_all(&mut self, signs: &[u64]) -> Result<Vec<Handle>, Error> {
        let mut handles = self.find(signs)?;
        for (handle, &sign) in handles.iter_mut().zip(signs) {
            if handle.is_none() {
                *handle = self.ensure(sign)?;
            }
        }
        Ok(handles)
    }

    fn write_full_at(
        &mut self,
        handles: &[Handle],
        numbers: &[f32],
        work: impl Fn(&mut [f32], &[f32]),
    ) -> Result<(), Error> {
        self.check_floats(handles.len(), numbers.len())?;
        self.keep_frozen(handles);
        let (layout, step, replay_to) = (self.layout, self.step, self.replay_to());
        for (at, numbers) in numbers.chunks_exact(layout.floats()).enumerate() {
            self.prefetch_ahead(handles, at);
            // Field by field, since the rows are borrowed too.
            let catch_up = CatchUp::new(&self.history, self.config.optimizer);
            let handle = handles[at];
            let (row_step, floats) = self.buckets[handle.bucket()].row_mut(handle.row());
            if let Some(catch_up) = catch_up {
                replay(
                    &catch_up,
                    &mut floats[layout.statistics_len..],
                    *row_step,
                    replay_to,
                );
            }
            work(floats, numbers);
            *row_step = step;
        }
        Ok(())
    }

    pub(crate) fn prefetch_ahead(&self, handles: &[Handle], at: usize) {
        if let Some(ahead) = handles.get(at + AHEAD)
            && !ahead.is_none()
        {
            prefetch::range(
                self.buckets[ahead.bucket()].address(ahead.row()),
                self.layout.stride,
            );
        }
    }

    fn check_floats(&self, num_signs: usize, num_floats: usize) -> Result<(), Error> {
        let expected = num_signs * self.layout.floats();
        if num_floats == expected {
            return Ok(());
        }
        Err(Error::argument(format!(
            "{num_signs} whole rows of {} numbers need {expected}, not {num_floats}",
            self.layout.floats()
        )))
    }
}

/// Brings state and weights, which follow each other, from `last_step` to `step`.
fn replay(catch_up: &CatchUp<'_>, floats: &mut [f32], last_step: u32, step: u32) {
    if last_step >= step {
        return;
    }
    let dim = floats.len() / 3;
    let (first, rest) = floats.split_at_mut(dim);
    let (second, weights) = rest.split_at_mut(dim);
    catch_up.replay(first, second, weights, last_step, step);
}

/// Which numbers of the state are sums or means of squares.
fn squares(optimizer: Optimizer, dim: usize) -> Range<usize> {
    match optimizer {
        Optimizer::Sgd { .. } => 0..0,
        Optimizer::RowWiseAdagrad { .. } => 0..1,
        Optimizer::Adagrad { .. } => 0..dim,
        Optimizer::LazyAdam { .. } | Optimizer::Adam { .. } | Optimizer::Ftrl { .. } => dim..2 * dim,
    }
}
