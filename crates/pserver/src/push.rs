//! A push as a server holds it: decoded, and not yet applied.

use clickmill_table::Lookup;
use clickmill_wire::step::{Part, Push, Scores};

use crate::Error;
use crate::metrics::Scored;
use clickmill_wire::numbers::{unpack, unpack_signs};

/// Everything of one batch, of one lane, that this server has to apply.
pub(crate) struct Held {
    pub lane: u32,
    pub samples: u32,
    pub is_last: bool,
    /// Updates that it counts as.
    pub updates: u64,
    pub dense: DensePush,
    pub rows: Vec<RowsPush>,
    /// The step in which the first of its rows were read; none where nobody knows.
    pub read_step: Option<u64>,
    /// Entry for the ledger, as it came; empty for servers that keep none.
    pub ledger: Vec<u8>,
    pub scored: Scored,
}

pub(crate) enum DensePush {
    Gradients {
        values: Vec<f32>,
        rate: f32,
        scale: f32,
    },
    /// What to add, with the state of the trainer's optimizer behind it, where it is sent.
    Differences {
        values: Vec<f32>,
        share: f32,
    },
}

pub(crate) enum RowsPush {
    /// Gradients, gathered in the lookup that the rows were given from.
    Gradients {
        feed: usize,
        table: usize,
        lookup: Lookup,
        rate: f32,
        scale: f32,
    },
    /// What to add to whole rows.
    Differences {
        table: usize,
        signs: Vec<u64>,
        floats: Vec<f32>,
    },
}

impl Held {
    /// `take` gives the lookup of (ticket, feed) and the step in which it was read; each may be pushed to once.
    pub(crate) fn decode(
        push: &Push<'_>,
        mut take: impl FnMut(u64, u16) -> Result<(Lookup, u64), Error>,
    ) -> Result<Self, Error> {
        let values = unpack(push.dense.numbers, push.precision);
        let dense = if push.is_difference {
            DensePush::Differences {
                values,
                share: push.dense.rate,
            }
        } else {
            DensePush::Gradients {
                values,
                rate: push.dense.rate,
                scale: push.dense.scale,
            }
        };
        let mut read_step: Option<u64> = None;
        let rows = push
            .parts
            .iter()
            .map(|part| {
                if push.is_difference {
                    return Ok(RowsPush::Differences {
                        table: usize::from(part.table),
                        signs: unpack_signs(part.signs),
                        floats: unpack(part.numbers, push.precision),
                    });
                }
                let (lookup, step) = take(part.ticket, part.feed)?;
                read_step = Some(read_step.map_or(step, |before| before.min(step)));
                gather(&lookup, part, push)?;
                Ok(RowsPush::Gradients {
                    feed: usize::from(part.feed),
                    table: usize::from(part.table),
                    lookup,
                    rate: part.rate,
                    scale: part.scale,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            lane: push.lane,
            samples: push.samples,
            is_last: push.is_last,
            updates: if push.is_difference {
                push.dense.scale as u64
            } else {
                1
            },
            dense,
            rows,
            read_step,
            ledger: push.ledger.to_vec(),
            scored: scored(&push.scores),
        })
    }
}

fn gather(lookup: &Lookup, part: &Part<'_>, push: &Push<'_>) -> Result<(), Error> {
    if lookup.num_rows() != part.rows as usize || lookup.dim() != part.width as usize {
        return Err(Error::protocol(format!(
            "gradients of {} rows of width {}, but {} of width {} were given",
            part.rows,
            part.width,
            lookup.num_rows(),
            lookup.dim()
        )));
    }
    match push.precision {
        clickmill_wire::Precision::Bf16 => lookup.add_gradients_bf16(part.numbers)?,
        clickmill_wire::Precision::Fp32 => lookup.add_gradients_fp32(part.numbers)?,
    }
    if !part.shows.is_empty() {
        let floats = |bytes| unpack(bytes, clickmill_wire::Precision::Fp32);
        lookup.add_counts(&floats(part.shows), &floats(part.clicks))?;
    }
    Ok(())
}

pub(crate) fn scored(scores: &Scores<'_>) -> Scored {
    let floats = |bytes| unpack(bytes, clickmill_wire::Precision::Fp32);
    Scored {
        scores: floats(scores.scores),
        labels: floats(scores.labels),
        weights: (!scores.weights.is_empty()).then(|| floats(scores.weights)),
        groups: (!scores.groups.is_empty()).then(|| unpack_signs(scores.groups)),
    }
}
