//! Training on copies of rows and parameters, exchanged with the servers now and then.
//!
//! The formula is in `clickmill_table::geo`. Optimizer states of the dense part are not part of it: each trainer
//! keeps its own, the servers keep their mean, and a trainer that joins begins with that.
//!
//! An exchange has three parts, and training goes on during the second: what was learnt is taken down, between two
//! batches; it is sent and the answer is waited for; rows and dense parameters are moved by the answer.

use std::sync::Arc;

use clickmill_table::{Lookup, Mirror, Table, geo};
use clickmill_wire::MAX_PAYLOAD;
use clickmill_wire::numbers::round;
use clickmill_wire::step::When;

use crate::{Answer, Error, FeedHead, FeedPush, FeedRows, KeysRequest, Partition, PushRequest, Session};

/// Bytes of rows that are exchanged at once: far from what a frame may hold.
const MAX_BYTES: usize = MAX_PAYLOAD as usize / 4;

pub struct Exchange {
    /// By the number of the table.
    mirrors: Vec<Mirror>,
    /// Dense parameters as the servers were last known to hold them.
    old: Vec<f32>,
    /// 1 / number of trainers.
    share: f32,
}

/// What a trainer begins with.
pub struct Joined {
    /// Updates of the run so far.
    pub step: u64,
    pub fence: u64,
    pub values: Vec<f32>,
    /// Kinds of the optimizer's state, each of all dense parameters.
    pub states: Vec<Vec<f32>>,
}

impl Exchange {
    /// Reads the dense part; `tables` are empty.
    pub fn join<'t>(
        session: &Session,
        tables: impl IntoIterator<Item = &'t Table>,
        share: f32,
    ) -> Result<(Self, Joined), Error> {
        let answer = session.step(Vec::new(), vec![keys(session, Vec::new(), true, true)])?;
        let slices = session.bounds().windows(2).map(|bounds| bounds[1] - bounds[0]);
        let mut kinds: Vec<Vec<f32>> = Vec::new();
        for (numbers, len) in answer.dense.iter().zip(slices) {
            for (kind, numbers) in numbers.chunks_exact(len.max(1)).enumerate() {
                if kinds.len() <= kind {
                    kinds.push(Vec::new());
                }
                kinds[kind].extend_from_slice(numbers);
            }
        }
        let values = if kinds.is_empty() {
            Vec::new()
        } else {
            kinds.remove(0)
        };
        let exchange = Self {
            mirrors: tables.into_iter().map(Mirror::new).collect(),
            old: values.clone(),
            share,
        };
        let joined = Joined {
            step: answer.step,
            fence: answer.fence,
            values,
            states: kinds,
        };
        Ok((exchange, joined))
    }

    /// Those of `wanted`, signs by table number, that are not here yet.
    pub fn missing(
        &self,
        tables: &mut [&mut Table],
        wanted: &[(usize, &[u64])],
    ) -> Result<Vec<Missing>, Error> {
        let mut missing = Vec::with_capacity(wanted.len());
        for &(number, signs) in wanted {
            let signs = self.mirrors[number].missing(tables[number], signs)?;
            if !signs.is_empty() {
                missing.push((number, Arc::new(signs)));
            }
        }
        Ok(missing)
    }

    /// Takes the rows over that the servers gave for what was missing.
    pub fn learn(
        &mut self,
        tables: &mut [&mut Table],
        missing: &[Missing],
        rows: &[FeedRows],
    ) -> Result<(), Error> {
        for ((number, signs), rows) in missing.iter().zip(rows) {
            self.mirrors[*number].learn(tables[*number], signs, &rows.values)?;
        }
        Ok(())
    }

    /// The rows of a lookup are about to be trained on.
    pub fn touch(&mut self, number: usize, table: &Table, lookup: &Lookup) -> Result<(), Error> {
        Ok(self.mirrors[number].touch(table, lookup)?)
    }

    /// Whether so much was touched that it should not wait for the next exchange.
    pub fn is_full(&self) -> bool {
        let bytes = |mirror: &Mirror| mirror.num_touched() * (8 + 4 * mirror.width());
        self.mirrors.iter().map(bytes).sum::<usize>() > MAX_BYTES
    }

    /// What was learnt since the last time, to be sent; an answer is to be asked for with the next exchange if not
    /// with this one.
    ///
    /// `push` has ledger and scores; `states` are the kinds of the optimizer's state, each of all parameters.
    pub fn depart(
        &mut self,
        session: &Session,
        mut push: PushRequest,
        learnt: Learnt<'_, '_>,
        is_answered: bool,
    ) -> Result<Departure, Error> {
        push.is_difference = true;
        push.dense_rate = self.share;
        push.dense_scale = learnt.batches as f32;
        push.dense = Arc::new(self.dense_difference(session, learnt.parameters));
        push.states = learnt.states;
        let mut feeds = Vec::with_capacity(learnt.tables.len());
        for (number, table) in learnt.tables.iter().enumerate() {
            let rounding = |numbers: &mut [f32]| round(numbers, session.precision());
            let mirror = &mut self.mirrors[number];
            let (signs, numbers) = mirror.differences(table, self.share, rounding)?;
            let (table, signs, partition) = feed(session, number, &Arc::new(signs));
            feeds.push((table, Arc::clone(&signs), Arc::clone(&partition)));
            push.feeds.push(FeedPush {
                head: FeedHead {
                    ticket: 0,
                    feed: table,
                    table,
                    rate: 0.0,
                    scale: 1.0,
                },
                width: mirror.width(),
                partition,
                numbers,
                signs: Some(signs),
                counts: Vec::new(),
            });
            if is_answered {
                mirror.expect()?;
            }
        }
        let keys = if is_answered {
            vec![
                keys(session, feeds, false, true),
                keys(session, Vec::new(), true, false),
            ]
        } else {
            Vec::new()
        };
        Ok(Departure { push, keys })
    }

    /// Rows that the servers have answered with, all of a table or the next of them.
    pub fn settle(&mut self, number: usize, table: &mut Table, rows: &mut [f32]) -> Result<(), Error> {
        Ok(self.mirrors[number].settle(table, rows)?)
    }

    /// Floats of a row.
    pub fn width(&self, number: usize) -> usize {
        self.mirrors[number].width()
    }

    /// The dense part that the servers have answered with.
    pub fn settle_dense(&mut self, mut values: Vec<f32>, parameters: &mut [&mut [f32]]) {
        geo::received(&mut values, &mut self.old);
        let mut more = values.into_iter();
        for parameter in parameters {
            for (own, more) in parameter.iter_mut().zip(&mut more) {
                *own += more;
            }
        }
    }

    fn dense_difference(&mut self, session: &Session, parameters: &[&mut [f32]]) -> Vec<f32> {
        let local = parameters
            .iter()
            .map(|parameter| &**parameter)
            .collect::<Vec<_>>();
        let mut delta = vec![0.0; self.old.len()];
        geo::difference(&local.concat(), &self.old, self.share, &mut delta);
        round(&mut delta, session.precision());
        geo::sent(&mut self.old, &delta);
        delta
    }
}

/// Number of a table, and signs.
pub type Missing = (usize, Arc<Vec<u64>>);

/// Rows that were missing, as the servers hold them; where all are here, nobody is asked.
pub fn fetch(session: &Session, missing: &[Missing]) -> Result<Answer, Error> {
    let feeds = missing
        .iter()
        .map(|(number, signs)| feed(session, *number, signs))
        .collect();
    session.step(Vec::new(), vec![keys(session, feeds, false, true)])
}

/// What a trainer has that the servers do not know.
pub struct Learnt<'a, 't> {
    pub batches: u32,
    pub tables: &'a [&'t mut Table],
    pub parameters: &'a [&'a mut [f32]],
    /// Kinds of the optimizer's state, each of all parameters.
    pub states: Vec<Vec<f32>>,
}

/// What was learnt, on its way to the servers.
pub struct Departure {
    push: PushRequest,
    keys: Vec<KeysRequest>,
}

impl Departure {
    /// Sends it, and waits until it is applied; rows by table, and the dense part, where they were asked for.
    pub fn deliver(self, session: &Session) -> Result<Answer, Error> {
        session.step(vec![self.push], self.keys)
    }
}

type Feed = (u16, Arc<Vec<u64>>, Arc<Partition>);

fn feed(session: &Session, number: usize, signs: &Arc<Vec<u64>>) -> Feed {
    let place = session.place();
    let partition = Partition::new(signs, &place.route, place.servers.len());
    let number = u16::try_from(number).expect("a schema has far fewer tables");
    (number, Arc::clone(signs), Arc::new(partition))
}

fn keys(session: &Session, feeds: Vec<Feed>, wants_dense: bool, wants_full_rows: bool) -> KeysRequest {
    KeysRequest {
        ticket: session.next_ticket(),
        when: When::Now,
        wants_dense,
        is_training: false,
        wants_full_rows,
        feeds,
    }
}
