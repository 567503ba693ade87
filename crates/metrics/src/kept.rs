//! Samples that are kept one by one, up to a limit.

use crate::Error;
use crate::record::Record;
use crate::state::{Reader, Writer};

/// One sample in as few bytes as it takes; the order sorts samples for a ranking.
pub(crate) trait Sample: Copy + Ord {
    const NUM_BYTES: usize;

    fn write(self, out: &mut Writer);

    fn read(input: &mut Reader<'_>) -> Result<Self, Error>;
}

impl Sample for Record {
    const NUM_BYTES: usize = 8;

    fn write(self, out: &mut Writer) {
        out.u64(self.to_bits());
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Error> {
        input.u64().map(Self::from_bits)
    }
}

/// With the group that the sample belongs to.
impl Sample for (u64, Record) {
    const NUM_BYTES: usize = 16;

    fn write(self, out: &mut Writer) {
        out.u64(self.0);
        self.1.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Error> {
        Ok((input.u64()?, Record::read(input)?))
    }
}

/// Refuses to grow past `limit` samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept<S> {
    /// Name in errors.
    metric: &'static str,
    limit: usize,
    samples: Vec<S>,
}

impl<S: Sample> Kept<S> {
    pub(crate) fn new(metric: &'static str, limit: usize) -> Self {
        Self {
            metric,
            limit,
            samples: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }

    /// Adds all of `samples`, or none where there is no room for them.
    pub(crate) fn extend(&mut self, samples: impl ExactSizeIterator<Item = S>) -> Result<(), Error> {
        let needed = self.samples.len() + samples.len();
        if needed > self.limit {
            return Err(Error::Limit {
                metric: self.metric,
                needed,
                limit: self.limit,
            });
        }
        self.samples.extend(samples);
        Ok(())
    }

    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.extend(other.samples.iter().copied())
    }

    /// All samples in their own order, whatever the order in which they came.
    pub(crate) fn sorted(&mut self) -> &[S] {
        self.samples.sort_unstable();
        &self.samples
    }

    pub(crate) fn clear(&mut self) {
        self.samples.clear();
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.u64(self.limit as u64);
        out.u64(self.samples.len() as u64);
        for sample in &self.samples {
            sample.write(out);
        }
    }

    pub(crate) fn read(metric: &'static str, input: &mut Reader<'_>) -> Result<Self, Error> {
        let mut kept = Self::new(metric, input.u64()? as usize);
        for _ in 0..input.count(S::NUM_BYTES)? {
            kept.samples.push(S::read(input)?);
        }
        Ok(kept)
    }
}
