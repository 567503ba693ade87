//! What a step sends to one server, and what it makes of the answer.

use std::sync::Arc;

use clickmill_table::Lookup;
use clickmill_wire::rows::Rows;
use clickmill_wire::step::{self, KeysHead, Origin, PartHead, PushHead, When};
use clickmill_wire::{Frame, Precision, Writer};

use crate::{Error, Partition};
use clickmill_wire::numbers::{pack_to, unpack, unpack_to};

/// Gradients of one batch.
pub struct PushRequest {
    pub lane: u32,
    pub is_last: bool,
    pub is_difference: bool,
    pub samples: u32,
    /// With differences: this trainer's share of the optimizer's state.
    pub dense_rate: f32,
    /// With differences: the batches that they come from.
    pub dense_scale: f32,
    /// Of all dense parameters, one behind the other; empty: none.
    pub dense: Arc<Vec<f32>>,
    /// With differences: kinds of the optimizer's state, each of all dense parameters.
    pub states: Vec<Vec<f32>>,
    pub feeds: Vec<FeedPush>,
    /// For the server that keeps the ledger.
    pub ledger: Vec<u8>,
    pub scored: Scored,
}

#[derive(Default)]
pub struct Scored {
    pub scores: Vec<f32>,
    pub labels: Vec<f32>,
    pub weights: Option<Vec<f32>>,
    pub groups: Option<Vec<u64>>,
}

/// Numbers for the rows of one feed.
pub struct FeedPush {
    pub head: FeedHead,
    pub width: usize,
    pub partition: Arc<Partition>,
    /// [U, width].
    pub numbers: Vec<f32>,
    /// With differences: whose rows they are.
    pub signs: Option<Arc<Vec<u64>>>,
    /// Shows and clicks [U], or empty.
    pub counts: Vec<(f32, f32)>,
}

/// Rows to be read.
pub struct KeysRequest {
    pub ticket: u64,
    pub when: When,
    pub wants_dense: bool,
    pub is_training: bool,
    pub wants_full_rows: bool,
    /// Table, signs and where they are.
    pub feeds: Vec<(u16, Arc<Vec<u64>>, Arc<Partition>)>,
}

/// Rows of one feed, of all servers.
#[derive(Default)]
pub struct FeedRows {
    pub width: usize,
    /// [U, width].
    pub values: Vec<f32>,
}

/// What the servers have answered.
pub struct Answer {
    /// Updates that the first server has applied.
    pub step: u64,
    /// The fence that is wanted.
    pub fence: u64,
    /// Rows of each feed of each batch that was asked for, in order.
    pub rows: Vec<FeedRows>,
    /// Numbers of each server's slice, where they were asked for; with whole rows, the state behind them.
    pub dense: Vec<Vec<f32>>,
}

/// For whom a frame is, and how its numbers are packed.
#[derive(Clone, Copy)]
pub(crate) struct Shape<'a> {
    pub server: usize,
    pub is_alone: bool,
    pub precision: Precision,
    /// Of the servers' slices of the dense part.
    pub bounds: &'a [usize],
}

/// Writes the frame of one server.
pub(crate) fn encode(
    frame: &mut Frame,
    shape: &Shape<'_>,
    origin: &Origin,
    pushes: &[PushRequest],
    keys: &[KeysRequest],
) {
    let Shape {
        server, precision, ..
    } = *shape;
    let mut out = frame.begin();
    step::encode_head(&mut out, origin, shape.is_alone);
    step::encode_count(&mut out, pushes.len());
    let mut gathered = Vec::new();
    for push in pushes {
        encode_push(&mut out, shape, push, &mut gathered);
    }
    step::encode_count(&mut out, keys.len());
    for keys in keys {
        let feeds = if keys.when == When::Found {
            &[]
        } else {
            keys.feeds.as_slice()
        };
        let head = KeysHead {
            ticket: keys.ticket,
            when: keys.when,
            wants_dense: keys.wants_dense,
            is_training: keys.is_training,
            wants_full_rows: keys.wants_full_rows,
            // Copies that are trained on must not lose bits with every reading.
            precision: if keys.wants_full_rows {
                Precision::Fp32
            } else {
                precision
            },
            num_feeds: feeds.len(),
        };
        step::encode_keys(&mut out, &head);
        for (table, signs, partition) in feeds {
            step::encode_feed(&mut out, *table, partition.share(server, signs));
        }
    }
}

fn encode_push(out: &mut Writer<'_>, shape: &Shape<'_>, push: &PushRequest, gathered: &mut Vec<f32>) {
    let Shape {
        server,
        precision,
        bounds,
        ..
    } = *shape;
    let head = PushHead {
        lane: push.lane,
        is_last: push.is_last,
        is_difference: push.is_difference,
        precision,
        samples: push.samples,
    };
    step::encode_push(out, &head);
    let dense: &[f32] = if push.dense.is_empty() {
        &[]
    } else {
        &push.dense[bounds[server]..bounds[server + 1]]
    };
    let slice = bounds[server]..bounds[server + 1];
    let count = dense.len() + push.states.len() * slice.len();
    let mut room = step::encode_dense(out, precision, push.dense_rate, push.dense_scale, count);
    for numbers in std::iter::once(dense).chain(push.states.iter().map(|state| &state[slice.clone()])) {
        let (own, rest) = room.split_at_mut(numbers.len() * precision.bytes());
        pack_to(numbers, precision, own);
        room = rest;
    }
    step::encode_count(out, push.feeds.len());
    for feed in &push.feeds {
        let head = PartHead {
            ticket: feed.head.ticket,
            feed: feed.head.feed,
            table: feed.head.table,
            rate: feed.head.rate,
            scale: feed.head.scale,
            rows: feed.partition.count(server),
            width: feed.width,
        };
        let signs: Option<Vec<u64>> = feed
            .signs
            .as_ref()
            .map(|signs| feed.partition.share(server, signs).collect());
        let room = step::encode_part(out, precision, &head, signs.as_deref());
        if feed.partition.places(server).is_none() {
            pack_to(&feed.numbers, precision, room);
        } else {
            feed.partition.gather(server, &feed.numbers, feed.width, gathered);
            pack_to(gathered, precision, room);
        }
        if feed.counts.is_empty() {
            step::encode_counts(out, &[]);
        } else {
            let counts: Vec<(f32, f32)> = feed.partition.share(server, &feed.counts).collect();
            step::encode_counts(out, &counts);
        }
    }
    // The first server keeps the ledger and counts the metrics.
    if server == 0 {
        let scored = &push.scored;
        step::encode_ledger(out, &push.ledger);
        let weights = scored.weights.as_deref();
        step::encode_scores(
            out,
            &scored.scores,
            &scored.labels,
            weights,
            scored.groups.as_deref(),
        );
    } else {
        step::encode_ledger(out, &[]);
        step::encode_scores(out, &[], &[], None, None);
    }
}

/// Puts the rows of one server where they belong.
pub(crate) fn scatter(
    answer: &Rows<'_>,
    server: usize,
    name: &str,
    keys: &[KeysRequest],
    rows: &mut [FeedRows],
) -> Result<(), Error> {
    let wrong = |reason: String| Error::Answer {
        server: name.to_owned(),
        reason,
    };
    let partitions: Vec<&Arc<Partition>> = keys
        .iter()
        .flat_map(|keys| keys.feeds.iter().map(|(.., partition)| partition))
        .collect();
    if answer.feeds.len() != partitions.len() {
        return Err(wrong(format!(
            "rows of {} feeds for {}",
            answer.feeds.len(),
            partitions.len()
        )));
    }
    let precision = answer.head.precision;
    let mut numbers = Vec::new();
    for ((feed, partition), out) in answer.feeds.iter().zip(partitions).zip(rows) {
        let width = feed.width as usize;
        if feed.rows as usize != partition.count(server) {
            return Err(wrong(format!(
                "{} rows for {} signs",
                feed.rows,
                partition.count(server)
            )));
        }
        if partition.places(server).is_none() {
            // All rows are of this server.
            out.width = width;
            out.values = unpack(feed.numbers, precision);
            continue;
        }
        if out.width == 0 {
            out.width = width;
            out.values.resize(partition.len() * width, 0.0);
        }
        if out.width != width {
            return Err(wrong(format!(
                "rows of width {width}, other servers say {}",
                out.width
            )));
        }
        let out = &mut out.values;
        let places = partition.places(server).unwrap_or_default();
        numbers.resize(places.len() * width, 0.0);
        unpack_to(feed.numbers, precision, &mut numbers);
        for (row, &place) in numbers.chunks_exact(width.max(1)).zip(places) {
            out[place as usize * width..][..width].copy_from_slice(row);
        }
    }
    Ok(())
}

/// Which rows, and how they are updated.
#[derive(Clone, Copy, Debug)]
pub struct FeedHead {
    pub ticket: u64,
    pub feed: u16,
    pub table: u16,
    pub rate: f32,
    pub scale: f32,
}

impl FeedPush {
    /// Gradients and counts that a lookup has gathered; it is good for nothing else then.
    pub fn of_lookup(lookup: &Lookup, head: FeedHead, partition: Arc<Partition>) -> Result<Self, Error> {
        let counts = lookup.with_counts(|shows, clicks| {
            let pairs = shows.iter().copied().zip(clicks.iter().copied());
            pairs.collect::<Vec<_>>()
        })?;
        let numbers = lookup.take_gradients()?;
        Ok(Self {
            head,
            width: lookup.dim(),
            partition,
            numbers,
            signs: None,
            counts,
        })
    }
}
