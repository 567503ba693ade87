//! Bytes of a row, computed from the configuration.
//!
//! ```text
//! sign u64 | step u32 | show f32, click f32 (where kept) | state f32[state_len] | weights f32[dim] | padding to 8
//! ```
//!
//! `step` is the last step in which the row was created or updated. With row-wise Adagrad and dim 16 a row
//! has 80 bytes, which, starting at a multiple of 16, never touch more than two cache lines.

use crate::config::{Optimizer, TableConfig};

/// Sign and step.
pub(crate) const HEAD_BYTES: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub dim: usize,
    pub state_len: usize,
    /// 2 where show and click are kept, else 0.
    pub statistics_len: usize,
    pub stride: usize,
}

impl Layout {
    pub(crate) fn new(config: &TableConfig) -> Self {
        let dim = config.spec.dim as usize;
        let state_len = match config.optimizer {
            Optimizer::Sgd { .. } => 0,
            Optimizer::RowWiseAdagrad { .. } => 1,
            Optimizer::Adagrad { .. } => dim,
            Optimizer::LazyAdam { .. } | Optimizer::Adam { .. } | Optimizer::Ftrl { .. } => 2 * dim,
        };
        let statistics_len = if config.has_statistics() { 2 } else { 0 };
        let bytes = HEAD_BYTES + 4 * (statistics_len + state_len + dim);
        Self {
            dim,
            state_len,
            statistics_len,
            stride: bytes.next_multiple_of(8),
        }
    }

    /// Floats of a row: statistics, state, weights.
    pub(crate) fn floats(&self) -> usize {
        self.statistics_len + self.state_len + self.dim
    }

    /// Bytes of a row in a file, without padding.
    pub(crate) fn row_bytes(&self) -> usize {
        HEAD_BYTES + 4 * self.floats()
    }

    pub(crate) fn weights_offset(&self) -> usize {
        HEAD_BYTES + 4 * (self.statistics_len + self.state_len)
    }
}
