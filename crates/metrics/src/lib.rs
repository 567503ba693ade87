//! Streaming, mergeable metrics.
//!
//! Each [`Accumulator`] takes a batch at a time, merges with another of the same kind (other threads, other
//! trainers) and turns its whole state into bytes and back without loss, so that a resumed run reports what
//! an uninterrupted one would have. Nothing here knows Python.
//!
//! | accumulator | holds | exact |
//! |---|---|---|
//! | [`BinaryMetrics`] | two histograms, some sums, the last batches | all but AUC and bucket error |
//! | [`ExactAuc`] | every score, 8 bytes each | yes |
//! | [`GroupAuc`] | every score with its group, 16 bytes each | yes |
//! | [`RegressionMetrics`] | five sums | yes |

mod accumulator;
mod arguments;
mod binary;
mod error;
mod exact;
mod fixed;
mod group;
mod histogram;
mod kept;
mod record;
mod regression;
mod spacing;
mod state;
mod terms;
mod window;

pub use accumulator::Accumulator;
pub use binary::{BinaryMetrics, BinaryReport};
pub use error::Error;
pub use exact::ExactAuc;
pub use group::{GroupAuc, GroupReport, GroupWeight};
pub use regression::{RegressionMetrics, RegressionReport};
pub use spacing::Spacing;
