//! What every metric of a stream can do.

use crate::Error;

/// Counts samples; merges with others of its kind, and turns into bytes and back without loss.
pub trait Accumulator: Clone + Send {
    /// Samples so far, whatever they weigh.
    fn count(&self) -> u64;

    /// Adds what `other` has counted, or nothing of it where the two do not fit together.
    fn merge(&mut self, other: &Self) -> Result<(), Error>;

    /// Forgets all samples and keeps the settings.
    fn reset(&mut self);

    /// The whole state.
    fn to_bytes(&self) -> Vec<u8>;

    /// An accumulator that goes on exactly where the one that gave `bytes` stood.
    fn from_bytes(bytes: &[u8]) -> Result<Self, Error>;
}
