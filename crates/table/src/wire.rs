//! Lookups at the two ends of a wire: rows go one way, gradients and counts the other.
//!
//! On a server a lookup knows its rows' places and takes gradients as bytes; on a trainer it has only their
//! values, gathers gradients as always, and hands out what it has gathered.

use clickmill_types::bf16::{self, add_bf16, to_bf16};

use crate::{Buffers, Error, Lookup};

impl Buffers {
    /// Memory for `len` numbers, with anything in it: for values that are to become a lookup.
    pub fn take_values(&self, len: usize) -> Vec<f32> {
        let mut memory = self.take();
        let mut values = std::mem::take(&mut memory.values);
        self.give(memory);
        values.resize(len, 0.0);
        values
    }
}

impl Lookup {
    /// Rows [U,D] that live on a server: to be pooled and to gather gradients, not to be applied here.
    ///
    /// `values` may be memory of `buffers`, and goes back there with the lookup.
    pub fn from_values(dim: usize, values: Vec<f32>, buffers: &Buffers) -> Result<Self, Error> {
        if dim == 0 || !values.len().is_multiple_of(dim) {
            return Err(Error::argument(format!(
                "{} numbers are no rows of dim {dim}",
                values.len()
            )));
        }
        Ok(Self::remote(dim, values, buffers))
    }

    /// Writes the values [U,D] as bf16, [`bf16::BYTES`] each.
    pub fn write_bf16(&self, out: &mut [u8]) -> Result<(), Error> {
        self.check_bytes(out.len())?;
        to_bf16(self.values(), out);
        Ok(())
    }

    /// Adds gradients [U,D] that came as bf16.
    pub fn add_gradients_bf16(&self, gradients: &[u8]) -> Result<(), Error> {
        self.check_bytes(gradients.len())?;
        self.gather(|gathered| {
            let sums = gathered.gradients(self.values().len());
            add_bf16(gradients, sums);
            Ok(())
        })
    }

    /// Adds gradients [U,D] that came as little-endian floats.
    pub fn add_gradients_fp32(&self, gradients: &[u8]) -> Result<(), Error> {
        let (gradients, rest) = gradients.as_chunks::<4>();
        let len = self.values().len();
        if gradients.len() != len || !rest.is_empty() {
            return Err(Error::argument(format!(
                "{} numbers for {} rows of dim {}",
                gradients.len(),
                self.num_rows(),
                self.dim()
            )));
        }
        let gradients = gradients.iter().map(|bytes| f32::from_le_bytes(*bytes));
        self.gather(|gathered| {
            if gathered.gradients.is_empty() {
                // The first ones, nearly always all: no zeros to add them to.
                gathered.gradients.extend(gradients);
            } else {
                let sums = gathered.gradients(len);
                sums.iter_mut()
                    .zip(gradients)
                    .for_each(|(sum, more)| *sum += more);
            }
            Ok(())
        })
    }

    /// The gradients gathered so far, [U,D], without a copy; there can be no more of them.
    pub fn take_gradients(&self) -> Result<Vec<f32>, Error> {
        self.take_gathered(|_, _| {})?;
        Ok(self.release_gradients())
    }

    /// Adds shows and clicks [U] that were counted elsewhere.
    pub fn add_counts(&self, shows: &[f32], clicks: &[f32]) -> Result<(), Error> {
        let num_rows = self.num_rows();
        if shows.len() != num_rows || clicks.len() != num_rows {
            return Err(Error::argument(format!(
                "{} shows and {} clicks for {num_rows} rows",
                shows.len(),
                clicks.len()
            )));
        }
        self.gather(|gathered| {
            let (own_shows, own_clicks) = gathered.counts(num_rows);
            for (own, more) in [(own_shows, shows), (own_clicks, clicks)] {
                own.iter_mut().zip(more).for_each(|(own, &more)| *own += more);
            }
            Ok(())
        })
    }

    /// Shows the gradients gathered so far, [U,D], without a copy; others wait that would add some.
    pub fn with_gradients<T>(&self, work: impl FnOnce(&[f32]) -> T) -> Result<T, Error> {
        self.gather(|gathered| Ok(work(gathered.gradients(self.values().len()))))
    }

    /// Shows the shows and clicks counted so far: [U] each, or empty where nothing was observed.
    pub fn with_counts<T>(&self, work: impl FnOnce(&[f32], &[f32]) -> T) -> Result<T, Error> {
        self.gather(|gathered| Ok(work(&gathered.shows, &gathered.clicks)))
    }

    fn check_bytes(&self, num_bytes: usize) -> Result<(), Error> {
        if num_bytes == self.values().len() * bf16::BYTES {
            return Ok(());
        }
        Err(Error::argument(format!(
            "{num_bytes} bytes for {} rows of dim {} in bf16",
            self.num_rows(),
            self.dim()
        )))
    }
}
