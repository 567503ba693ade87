//! Rows of a table that are copies of rows on servers, and what the table has learnt that those do not know.
//!
//! For every row it keeps the floats that the servers were last known to hold, by place: rows of such a table
//! never change places. What was touched since the last exchange is marked, at the cost of a look at one
//! number a row. The formula is in [`crate::geo`].
//!
//! Training goes on while an exchange is under way: the answer moves rows by what others have learnt, whatever
//! was learnt here meanwhile.

use std::collections::{HashSet, VecDeque};

use crate::config::Admission;
use crate::pull::Handle;
use crate::{Error, Lookup, Table, geo, prefetch};

/// Rows between asking for memory and reading it.
const AHEAD: usize = 32;

pub struct Mirror {
    table_id: u64,
    generation: u64,
    width: usize,
    buckets: Vec<Known>,
    /// Rows that were given out for training since the last exchange.
    touched: Vec<Handle>,
    /// Rows that the servers have not answered for yet, in the order in which they will.
    under_way: VecDeque<Handle>,
    /// Exchanges so far, from 1.
    window: u32,
    /// Signs that the servers had nothing to say of and that wait for admission here.
    asked: HashSet<u64>,
    admits_all: bool,
}

/// Rows of one bucket, by number.
#[derive(Default)]
struct Known {
    /// [rows, F]: as the servers were last known to hold them.
    old: Vec<f32>,
    /// Window in which each row was touched last.
    windows: Vec<u32>,
}

impl Mirror {
    /// Of a table without rows.
    pub fn new(table: &Table) -> Self {
        Self {
            table_id: table.id,
            generation: table.generation,
            width: table.row_floats(),
            buckets: table.buckets.iter().map(|_| Known::default()).collect(),
            touched: Vec::new(),
            under_way: VecDeque::new(),
            window: 1,
            asked: HashSet::new(),
            admits_all: table.config().admission == Admission::Always,
        }
    }

    /// Rows touched since the last exchange.
    pub fn num_touched(&self) -> usize {
        self.touched.len()
    }

    /// Floats of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Those of `signs` that the servers have to be asked for.
    pub fn missing(&self, table: &Table, signs: &[u64]) -> Result<Vec<u64>, Error> {
        self.check(table)?;
        let handles = table.find(signs)?;
        let missing = signs.iter().zip(handles).filter(|(sign, handle)| {
            // Nearly all are there.
            handle.is_none() && !self.asked.contains(sign)
        });
        Ok(missing.map(|(sign, _)| *sign).collect())
    }

    /// Gives the table the rows that the servers hold, [U,F]; a row at its beginning is left to admission.
    pub fn learn(&mut self, table: &mut Table, signs: &[u64], floats: &[f32]) -> Result<(), Error> {
        self.check(table)?;
        if floats.len() != signs.len() * self.width {
            return Err(Error::argument(format!(
                "{} numbers for {} rows of {}",
                floats.len(),
                signs.len(),
                self.width
            )));
        }
        let mut initial = vec![0.0; self.width];
        let mut known = Vec::with_capacity(signs.len());
        let mut rows = Vec::with_capacity(floats.len());
        for (&sign, floats) in signs.iter().zip(floats.chunks_exact(self.width)) {
            table.fill_initial(sign, &mut initial);
            if initial
                .iter()
                .zip(floats)
                .all(|(own, float)| own.to_bits() == float.to_bits())
            {
                // Else it gets its row at once, and is never missed again.
                if !self.admits_all {
                    self.asked.insert(sign);
                }
            } else {
                known.push(sign);
                rows.extend_from_slice(floats);
            }
        }
        table.set_full(&known, &rows)
    }

    /// The rows of a lookup are about to be trained on.
    pub fn touch(&mut self, table: &Table, lookup: &Lookup) -> Result<(), Error> {
        self.check(table)?;
        lookup.check_trained(table)?;
        let handles = lookup.handles();
        for (at, &handle) in handles.iter().enumerate() {
            if let Some(&ahead) = handles.get(at + AHEAD)
                && !ahead.is_none()
            {
                let windows = &self.buckets[ahead.bucket()].windows;
                prefetch::read(windows.as_ptr().wrapping_add(ahead.row() as usize));
            }
            if handle.is_none() {
                continue;
            }
            let known = &mut self.buckets[handle.bucket()];
            let row = handle.row() as usize;
            if row >= known.windows.len() {
                // Rows that were made since are as the servers hold them: nobody has trained on them.
                let bucket = &table.buckets[handle.bucket()];
                for new in known.windows.len() as u32..bucket.len() {
                    known.old.extend_from_slice(bucket.floats(new));
                }
                known.windows.resize(bucket.len() as usize, 0);
            }
            if known.windows[row] != self.window {
                known.windows[row] = self.window;
                self.touched.push(handle);
            }
        }
        Ok(())
    }

    /// Signs of the rows touched, and what is to be added to them on the servers, [U,F].
    ///
    /// `round` makes the numbers of a row those that will really arrive. They are on their way then; whether the
    /// servers will answer with the rows is for [`Self::expect`] to say.
    pub fn differences(
        &mut self,
        table: &Table,
        share: f32,
        round: impl Fn(&mut [f32]),
    ) -> Result<(Vec<u64>, Vec<f32>), Error> {
        self.check(table)?;
        // In the order in which they lie, here and, by bucket, on the servers: memory is read along, not across.
        self.touched.sort_unstable();
        let width = self.width;
        let mut signs = Vec::with_capacity(self.touched.len());
        let mut deltas = Vec::with_capacity(self.touched.len() * width);
        let (mut local, mut delta) = (vec![0.0; width], vec![0.0; width]);
        for (at, &handle) in self.touched.iter().enumerate() {
            table.prefetch_ahead(&self.touched, at);
            if let Some(&ahead) = self.touched.get(at + AHEAD) {
                self.buckets[ahead.bucket()].prefetch(ahead, width);
            }
            table.read_row(handle, &mut local);
            let old = self.buckets[handle.bucket()].old(handle, width);
            geo::difference(&local, old, share, &mut delta);
            round(&mut delta);
            geo::sent(old, &delta);
            signs.push(table.buckets[handle.bucket()].sign(handle.row()));
            deltas.extend_from_slice(&delta);
        }
        Ok((signs, deltas))
    }

    /// The servers will answer with the rows of what `differences` gave; nothing is touched any more.
    pub fn expect(&mut self) -> Result<(), Error> {
        if !self.under_way.is_empty() {
            return Err(Error::state("an exchange is under way already"));
        }
        self.under_way = std::mem::take(&mut self.touched).into();
        self.window += 1;
        Ok(())
    }

    /// The servers have answered with rows [U,F], all that are expected or the next of them.
    ///
    /// `rows` become what the table was moved by.
    pub fn settle(&mut self, table: &mut Table, rows: &mut [f32]) -> Result<(), Error> {
        self.check(table)?;
        let count = rows.len() / self.width;
        if rows.len() != count * self.width || count > self.under_way.len() {
            return Err(Error::argument(format!(
                "{} numbers for {} rows of {}",
                rows.len(),
                self.under_way.len(),
                self.width
            )));
        }
        let handles: Vec<Handle> = self.under_way.drain(..count).collect();
        for (at, row) in rows.chunks_exact_mut(self.width).enumerate() {
            if let Some(&ahead) = handles.get(at + AHEAD) {
                self.buckets[ahead.bucket()].prefetch(ahead, self.width);
            }
            let handle = handles[at];
            geo::received(row, self.buckets[handle.bucket()].old(handle, self.width));
        }
        table.add_full_at(&handles, rows)
    }

    fn check(&self, table: &Table) -> Result<(), Error> {
        if self.table_id == table.id && self.generation == table.generation {
            return Ok(());
        }
        Err(Error::state(
            "the mirror belongs to another table, or rows have changed places since it was made",
        ))
    }
}

impl Known {
    fn old(&mut self, handle: Handle, width: usize) -> &mut [f32] {
        &mut self.old[handle.row() as usize * width..][..width]
    }

    fn prefetch(&self, handle: Handle, width: usize) {
        let start = self.old.as_ptr().wrapping_add(handle.row() as usize * width);
        prefetch::range(start.cast(), 4 * width);
    }
}
