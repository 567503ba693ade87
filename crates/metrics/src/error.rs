//! What can be wrong with a batch, a merge or a stored state.

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("{what} has {found} elements, scores have {expected}")]
    Length {
        what: &'static str,
        expected: usize,
        found: usize,
    },
    #[error(
        "{count} of {total} scores are NaN, the first in row {row} of the batch: the model has diverged; \
         lower the learning rate, clip gradients, or look for huge values in the dense slots"
    )]
    NotANumber { count: usize, total: usize, row: usize },
    #[error("score {value} in row {row} of the batch is {expected}")]
    Score {
        row: usize,
        value: f32,
        expected: &'static str,
    },
    #[error("label {value} in row {row} of the batch is {expected}")]
    Label {
        row: usize,
        value: f32,
        expected: &'static str,
    },
    #[error("weight {value} in row {row} of the batch is not between 0 and {max}")]
    Weight { row: usize, value: f32, max: f32 },
    #[error(
        "{metric} keeps every score and would hold {needed}, its limit is {limit}; raise the limit or use the bucketed AUC"
    )]
    Limit {
        metric: &'static str,
        needed: usize,
        limit: usize,
    },
    #[error("cannot merge {metric} with {left} and {right}; both sides must be configured alike")]
    Mismatch {
        metric: &'static str,
        left: String,
        right: String,
    },
    #[error("state of {metric} at byte {offset}: {reason}")]
    State {
        metric: &'static str,
        offset: usize,
        reason: &'static str,
    },
    #[error("{what} is {value}; allowed: {allowed}")]
    Config {
        what: &'static str,
        value: usize,
        allowed: &'static str,
    },
}
