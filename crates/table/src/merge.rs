//! Several lookups in one step: a row that more than one of them has is updated once, with the sum.
//!
//! Sums are made in the order of the lookups, so that they are the same in every run. Memory is that of the
//! largest step so far.

use crate::dimension::{width, with_dimension};
use crate::lookup::Gathered;
use crate::pull::Handle;
use crate::push::Push;
use crate::{Error, Lookup, Rate, Table};

/// An empty place of the index.
const NOTHING: u32 = u32::MAX;

#[derive(Default)]
pub(crate) struct Merge {
    /// Open addressing over `handles`, at most half full.
    index: Vec<u32>,
    handles: Vec<Handle>,
    gradients: Vec<f32>,
    shows: Vec<f32>,
    clicks: Vec<f32>,
    dropped: u64,
}

/// What one lookup brings.
struct Share<'a> {
    handles: &'a [Handle],
    gathered: &'a Gathered,
    weight: f32,
}

impl Merge {
    fn clear(&mut self, num_rows: usize) -> Result<(), Error> {
        if num_rows >= NOTHING as usize {
            return Err(Error::argument(format!("{num_rows} rows in one step")));
        }
        self.index.clear();
        self.index
            .resize((2 * num_rows).next_power_of_two().max(2), NOTHING);
        self.handles.clear();
        self.gradients.clear();
        self.shows.clear();
        self.clicks.clear();
        self.dropped = 0;
        Ok(())
    }

    fn add(&mut self, share: &Share<'_>, dim: usize) {
        with_dimension!(dim, D => self.add_width::<D>(share, dim));
    }

    #[inline(always)]
    fn add_width<const D: usize>(&mut self, share: &Share<'_>, dim: usize) {
        let dim = width::<D>(dim);
        let rows = share.gathered.gradients.chunks_exact(dim);
        for (at, (&handle, gradient)) in share.handles.iter().zip(rows).enumerate() {
            if handle.is_none() {
                self.dropped += 1;
                continue;
            }
            let number = self.number(handle, dim);
            let sums = &mut self.gradients[number * dim..][..dim];
            for (sum, &gradient) in sums.iter_mut().zip(gradient) {
                *sum += gradient * share.weight;
            }
            if let (Some(show), Some(click)) = (share.gathered.shows.get(at), share.gathered.clicks.get(at)) {
                self.shows[number] += show;
                self.clicks[number] += click;
            }
        }
    }

    /// The number of a row in this step; a row not seen before gets the next one, with sums of zero.
    #[inline(always)]
    fn number(&mut self, handle: Handle, dim: usize) -> usize {
        let mask = self.index.len() - 1;
        let mut at = handle.spread() as usize & mask;
        loop {
            let number = self.index[at];
            if number == NOTHING {
                let number = self.handles.len();
                self.index[at] = number as u32;
                self.handles.push(handle);
                self.gradients.resize((number + 1) * dim, 0.0);
                self.shows.push(0.0);
                self.clicks.push(0.0);
                return number;
            }
            if self.handles[number as usize] == handle {
                return number as usize;
            }
            at = (at + 1) & mask;
        }
    }
}

impl Table {
    /// Applies what several lookups have gathered as one step, once: gradients multiplied by the weight of
    /// their lookup and added up, shows and clicks added as they are.
    ///
    /// No lookups at all are a step that touches no row. After an error none of the lookups has been applied.
    pub fn apply_merged(&mut self, lookups: &[(&Lookup, f32)], rate: Rate) -> Result<(), Error> {
        for (lookup, weight) in lookups {
            lookup.check_trained(self)?;
            if !weight.is_finite() {
                return Err(Error::argument(format!(
                    "the weight of a lookup is {weight}; allowed: a finite number"
                )));
            }
        }
        let mut merge = std::mem::take(&mut self.merge);
        let outcome = self.merge_and_push(&mut merge, lookups, rate);
        self.merge = merge;
        outcome
    }

    fn merge_and_push(
        &mut self,
        merge: &mut Merge,
        lookups: &[(&Lookup, f32)],
        rate: Rate,
    ) -> Result<(), Error> {
        merge.clear(lookups.iter().map(|(lookup, _)| lookup.num_rows()).sum())?;
        for (taken, &(lookup, weight)) in lookups.iter().enumerate() {
            let outcome = lookup.take_gathered(|handles, gathered| {
                let share = Share {
                    handles,
                    gathered,
                    weight,
                };
                merge.add(&share, self.layout.dim);
            });
            if let Err(error) = outcome {
                release(&lookups[..taken]);
                return Err(error);
            }
        }
        let batch = Push {
            handles: &merge.handles,
            gradients: &merge.gradients,
            shows: &merge.shows,
            clicks: &merge.clicks,
        };
        if let Err(error) = self.push_rows(batch, rate) {
            release(lookups);
            return Err(error);
        }
        self.counters.gradients_dropped += merge.dropped;
        Ok(())
    }
}

fn release(lookups: &[(&Lookup, f32)]) {
    for (lookup, _) in lookups {
        lookup.release_gathered();
    }
}
