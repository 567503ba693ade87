//! A push, as Python makes it.

#![expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]

use std::sync::{Arc, Mutex, PoisonError};

use clickmill_remote::{FeedPush, PushRequest, Scored};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::Reads1;
use crate::errors;
use crate::lookup::Lookup;
use crate::remote::Ticket;

/// Gradients of one batch, on their way to the servers; good for one step.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Push {
    inner: Mutex<Option<PushRequest>>,
}

#[pymethods]
impl Push {
    /// Takes what `lookups` have gathered for `ticket`, and the sum of the dense gradients over `parts`.
    ///
    /// `rates` has one learning rate a feed; `scores`, `labels`, `weights` and `groups` are what the metrics
    /// count, `ledger` is what the ledger is told, JSON.
    #[new]
    #[pyo3(signature = (
        ticket, lookups, rates, scale, parts, dense_rate, samples, ledger,
        scores, labels, weights = None, groups = None, lane = 0, is_last = false
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn new(
        py: Python<'_>,
        ticket: &Ticket,
        lookups: Vec<PyRef<'_, Lookup>>,
        rates: Vec<f32>,
        scale: f32,
        parts: Vec<Vec<Reads1<'_, f32>>>,
        dense_rate: f32,
        samples: u32,
        ledger: &str,
        scores: Vec<Reads1<'_, f32>>,
        labels: Reads1<'_, f32>,
        weights: Option<Reads1<'_, f32>>,
        groups: Option<Reads1<'_, u64>>,
        lane: u32,
        is_last: bool,
    ) -> PyResult<Self> {
        if lookups.len() != ticket.feeds.len() || rates.len() != ticket.feeds.len() {
            return Err(PyValueError::new_err(format!(
                "{} lookups and {} rates for {} feeds",
                lookups.len(),
                rates.len(),
                ticket.feeds.len()
            )));
        }
        let parts = parts
            .iter()
            .map(|part| {
                let arrays = part.iter().map(|array| Ok(array.as_slice()?));
                arrays.collect::<PyResult<Vec<&[f32]>>>()
            })
            .collect::<PyResult<Vec<_>>>()?;
        let scored = scored(&scores, Some(&labels), weights.as_ref(), groups.as_ref())?;
        let lookups: Vec<&clickmill_table::Lookup> = lookups.iter().map(|lookup| &lookup.inner).collect();
        let inner = py
            .detach(|| {
                let feeds = ticket
                    .feeds
                    .iter()
                    .zip((0..).zip(lookups.iter().zip(&rates)))
                    .map(|(feed, (number, (lookup, &rate)))| {
                        FeedPush::of_lookup(
                            lookup,
                            clickmill_remote::FeedHead {
                                ticket: ticket.number,
                                feed: number,
                                table: feed.table,
                                rate,
                                scale,
                            },
                            Arc::clone(&feed.partition),
                        )
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(PushRequest {
                    lane,
                    is_last,
                    is_difference: false,
                    samples,
                    dense_rate,
                    dense_scale: scale,
                    dense: Arc::new(flatten(&parts)),
                    states: Vec::new(),
                    feeds,
                    ledger: ledger.as_bytes().to_vec(),
                    scored,
                })
            })
            .map_err(|error| errors::remote(py, &error))?;
        Ok(Self {
            inner: Mutex::new(Some(inner)),
        })
    }

    /// One push of several, which are good for nothing else then; `ledger` takes the place of their entries.
    ///
    /// Gradients are added up, or averaged; rows that several of them touch are updated once.
    #[staticmethod]
    fn merge(pushes: Vec<PyRef<'_, Self>>, ledger: &str, is_average: bool) -> PyResult<Self> {
        let pushes = pushes.iter().map(|push| push.take()).collect::<PyResult<_>>()?;
        let merged = PushRequest::merge(pushes, ledger.as_bytes().to_vec(), is_average)
            .ok_or_else(|| PyValueError::new_err("there is nothing to merge"))?;
        Ok(Self {
            inner: Mutex::new(Some(merged)),
        })
    }

    /// What the ledger is told, JSON.
    #[getter]
    fn ledger(&self) -> PyResult<String> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let push = inner
            .as_ref()
            .ok_or_else(|| PyValueError::new_err("the push has been sent"))?;
        Ok(String::from_utf8_lossy(&push.ledger).into_owned())
    }

    /// No gradients: an entry for the ledger, and scores for the metrics where there are some.
    #[staticmethod]
    #[pyo3(signature = (ledger, scores = None, labels = None, weights = None, groups = None, lane = 0, is_last = false))]
    fn empty(
        ledger: &str,
        scores: Option<Vec<Reads1<'_, f32>>>,
        labels: Option<Reads1<'_, f32>>,
        weights: Option<Reads1<'_, f32>>,
        groups: Option<Reads1<'_, u64>>,
        lane: u32,
        is_last: bool,
    ) -> PyResult<Self> {
        let scores = scores.unwrap_or_default();
        let scored = scored(&scores, labels.as_ref(), weights.as_ref(), groups.as_ref())?;
        Ok(Self {
            inner: Mutex::new(Some(PushRequest {
                lane,
                is_last,
                is_difference: false,
                samples: u32::try_from(scored.scores.len()).unwrap_or(u32::MAX),
                dense_rate: 0.0,
                dense_scale: 1.0,
                dense: Arc::default(),
                states: Vec::new(),
                feeds: Vec::new(),
                ledger: ledger.as_bytes().to_vec(),
                scored,
            })),
        })
    }
}

impl Push {
    /// What is to be sent; once.
    pub(crate) fn take(&self) -> PyResult<PushRequest> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner
            .take()
            .ok_or_else(|| PyValueError::new_err("a push is good for one step"))
    }
}

fn scored(
    scores: &[Reads1<'_, f32>],
    labels: Option<&Reads1<'_, f32>>,
    weights: Option<&Reads1<'_, f32>>,
    groups: Option<&Reads1<'_, u64>>,
) -> PyResult<Scored> {
    let parts = scores.iter().map(|part| Ok(part.as_slice()?));
    let scored = Scored {
        scores: parts.collect::<PyResult<Vec<_>>>()?.concat(),
        labels: labels.map_or_else(Vec::new, |labels| labels.as_array().to_vec()),
        weights: weights.map(|weights| weights.as_array().to_vec()),
        groups: groups.map(|groups| groups.as_array().to_vec()),
    };
    let count = scored.scores.len();
    let lengths = [
        scored.labels.len(),
        scored.weights.as_ref().map_or(count, Vec::len),
        scored.groups.as_ref().map_or(count, Vec::len),
    ];
    if lengths.iter().all(|&length| length == count) {
        return Ok(scored);
    }
    Err(PyValueError::new_err(format!(
        "{count} scores with {lengths:?} labels, weights and groups"
    )))
}

/// The sum over the parts of a batch of all gradients, one behind the other.
fn flatten(parts: &[Vec<&[f32]>]) -> Vec<f32> {
    match parts {
        [] => Vec::new(),
        [only] => only.concat(),
        [first, second, rest @ ..] => {
            let mut sum = Vec::with_capacity(first.iter().map(|array| array.len()).sum());
            for (one, two) in first.iter().zip(second) {
                sum.extend(one.iter().zip(*two).map(|(one, two)| one + two));
            }
            for part in rest {
                let mut out = sum.as_mut_slice();
                for array in part {
                    let (own, left) = out.split_at_mut(array.len());
                    for (sum, value) in own.iter_mut().zip(*array) {
                        *sum += value;
                    }
                    out = left;
                }
            }
            sum
        }
    }
}
