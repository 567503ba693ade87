//! Checks of a batch before any of it is counted: a batch is taken whole or refused whole.

use crate::Error;

/// Sums are kept as fixed-point numbers; a weight above this could overflow them.
pub(crate) const MAX_WEIGHT: f32 = 1e6;

/// Scores, labels and optional weights of equal length.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) scores: &'a [f32],
    pub(crate) labels: &'a [f32],
    pub(crate) weights: Option<&'a [f32]>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(
        scores: &'a [f32],
        labels: &'a [f32],
        weights: Option<&'a [f32]>,
    ) -> Result<Self, Error> {
        check_length("labels", scores.len(), labels.len())?;
        if let Some(weights) = weights {
            check_length("weights", scores.len(), weights.len())?;
        }
        Ok(Self {
            scores,
            labels,
            weights,
        })
    }

    /// Probabilities and labels of 0 or 1.
    pub(crate) fn check_binary(&self) -> Result<(), Error> {
        self.check_scores("not a probability between 0 and 1", |score| {
            (0.0..=1.0).contains(&score)
        })?;
        self.check_labels(
            "neither 0 nor 1; give the label slot a `threshold`, or use regression metrics",
            is_binary,
        )?;
        self.check_weights()
    }

    /// Any finite scores, labels of 0 or 1: what a ranking needs.
    pub(crate) fn check_ranking(&self) -> Result<(), Error> {
        self.check_scores("not finite", f32::is_finite)?;
        self.check_labels("neither 0 nor 1; give the label slot a `threshold`", is_binary)?;
        self.check_weights()
    }

    /// Any finite scores and labels.
    pub(crate) fn check_regression(&self) -> Result<(), Error> {
        self.check_scores("not finite", f32::is_finite)?;
        self.check_labels("not finite", f32::is_finite)?;
        self.check_weights()
    }

    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(crate) fn weight(&self, row: usize) -> f32 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    fn check_scores(&self, expected: &'static str, is_good: impl Fn(f32) -> bool) -> Result<(), Error> {
        let Some(row) = first_bad(self.scores, is_good) else {
            return Ok(());
        };
        if let Some(row) = self.scores.iter().position(|score| score.is_nan()) {
            return Err(Error::NotANumber {
                count: self.scores.iter().filter(|score| score.is_nan()).count(),
                total: self.scores.len(),
                row,
            });
        }
        Err(Error::Score {
            row,
            value: self.scores[row],
            expected,
        })
    }

    fn check_labels(&self, expected: &'static str, is_good: impl Fn(f32) -> bool) -> Result<(), Error> {
        match first_bad(self.labels, is_good) {
            None => Ok(()),
            Some(row) => Err(Error::Label {
                row,
                value: self.labels[row],
                expected,
            }),
        }
    }

    fn check_weights(&self) -> Result<(), Error> {
        let weights = self.weights.unwrap_or(&[]);
        match first_bad(weights, |weight| (0.0..=MAX_WEIGHT).contains(&weight)) {
            None => Ok(()),
            Some(row) => Err(Error::Weight {
                row,
                value: weights[row],
                max: MAX_WEIGHT,
            }),
        }
    }
}

#[expect(clippy::float_cmp, reason = "a label is one of the two values or it is not")]
fn is_binary(label: f32) -> bool {
    label == 0.0 || label == 1.0
}

pub(crate) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found {
        Ok(())
    } else {
        Err(Error::Length {
            what,
            expected,
            found,
        })
    }
}

/// Counting first keeps the usual case, nothing bad, free of branches.
fn first_bad(values: &[f32], is_good: impl Fn(f32) -> bool) -> Option<usize> {
    let num_bad: u32 = values.iter().map(|&value| u32::from(!is_good(value))).sum();
    if num_bad == 0 {
        return None;
    }
    values.iter().position(|&value| !is_good(value))
}
