//! What a server remembers of one stream of batches of one trainer.

use std::collections::HashMap;

use clickmill_table::{Located, Lookup};
use clickmill_wire::step::{FeedKeys, Keys, When};

use crate::Error;
use crate::model::Model;
use crate::push::Held;
use clickmill_wire::numbers::unpack_signs;

/// Batches that a trainer may have read and not pushed: more means that it has lost count.
const MAX_TICKETS: usize = 1024;

#[derive(Default)]
pub(crate) struct Session {
    /// Sequence number of the last push that was applied, or handed to the round.
    pub applied: u64,
    has_begun: bool,
    pub held: Option<HeldStep>,
    /// The round that the last push went into, where there are rounds.
    pub round: Option<u64>,
    /// Rows that were given out, until their gradients come.
    tickets: HashMap<u64, Given>,
    /// Rows that are to be given out with the next answer.
    reading: Vec<Reading>,
    /// Rows that a later step will ask for.
    later: Vec<Later>,
    /// What the last answer gave out, and to which push: it may be lost on its way, and be asked for again.
    given: (u64, Vec<Reading>),
}

/// Rows that were given out.
struct Given {
    /// Updates before they were read.
    step: u64,
    feeds: Vec<Option<Lookup>>,
}

/// The pushes of one step, all or none.
pub(crate) struct HeldStep {
    pub sequence: u64,
    pub pushes: Vec<Held>,
}

/// Keys of a batch whose rows were asked for.
pub(crate) struct Reading {
    pub ticket: u64,
    pub wants_dense: bool,
    pub wants_full_rows: bool,
    pub precision: clickmill_wire::Precision,
    pub feeds: Vec<ReadingFeed>,
}

/// Keys of a batch whose rows will be asked for.
struct Later {
    ticket: u64,
    feeds: Vec<LaterFeed>,
}

enum LaterFeed {
    Signs { table: usize, signs: Vec<u64> },
    Located { table: usize, located: Located },
}

impl Later {
    /// Finds, or makes, its rows. What cannot be found stays as it is.
    fn find(&mut self, model: &mut Model) -> Result<(), Error> {
        for feed in &mut self.feeds {
            if let LaterFeed::Signs { table, signs } = feed {
                let (table, located) = (*table, model.locate(*table, signs)?);
                *feed = LaterFeed::Located { table, located };
            }
        }
        Ok(())
    }
}

pub(crate) enum ReadingFeed {
    /// Found, for training.
    Located { table: usize, located: Located },
    /// Found and given out before.
    Kept { feed: usize },
    /// To score with.
    Signs { table: usize, signs: Vec<u64> },
    /// Whole rows.
    Full { table: usize, signs: Vec<u64> },
}

/// Rows of an answer.
pub(crate) enum AnswerRows {
    Lookup(Lookup),
    /// Kept in the session.
    Kept {
        ticket: u64,
        feed: usize,
    },
    Full {
        rows: usize,
        width: usize,
        floats: Vec<f32>,
    },
}

/// Whether a push is new.
pub(crate) enum Arrival {
    New,
    /// Came before, by a connection that broke: held already, or even applied.
    Known,
}

impl Session {
    /// Checks a push's number against those before; the first one may have any.
    pub(crate) fn arrive(&mut self, sequence: u64) -> Result<Arrival, Error> {
        if !self.has_begun {
            self.has_begun = true;
            self.applied = sequence.saturating_sub(1);
        }
        let is_held = self.held.as_ref().is_some_and(|held| held.sequence == sequence);
        if is_held || sequence == self.applied {
            return Ok(Arrival::Known);
        }
        if sequence == self.applied + 1 && self.held.is_none() {
            return Ok(Arrival::New);
        }
        Err(Error::protocol(format!(
            "push {sequence} does not follow push {}",
            self.held.as_ref().map_or(self.applied, |held| held.sequence)
        )))
    }

    /// Rows that are pushed to, and the step in which they were read.
    pub(crate) fn take(&mut self, ticket: u64, feed: u16) -> Result<(Lookup, u64), Error> {
        if let Some(given) = self.tickets.get_mut(&ticket)
            && let Some(lookup) = given.feeds.get_mut(usize::from(feed)).and_then(Option::take)
        {
            let step = given.step;
            if given.feeds.iter().all(Option::is_none) {
                self.tickets.remove(&ticket);
            }
            return Ok((lookup, step));
        }
        Err(Error::protocol(format!(
            "gradients for feed {feed} of ticket {ticket}, whose rows were not given, or pushed before"
        )))
    }

    /// Begins to read; a request that came before is not located again.
    pub(crate) fn read(&mut self, keys: &Keys<'_>, model: &mut Model) -> Result<(), Error> {
        let is_known = self.tickets.contains_key(&keys.ticket)
            || self.reading.iter().any(|reading| reading.ticket == keys.ticket)
            || self.given.1.iter().any(|reading| reading.ticket == keys.ticket);
        if is_known {
            return Ok(());
        }
        if self.tickets.len() + self.later.len() >= MAX_TICKETS {
            return Err(Error::protocol(format!(
                "{MAX_TICKETS} batches were read and never pushed"
            )));
        }
        let signs = |feed: &FeedKeys<'_>| (usize::from(feed.table), unpack_signs(feed.signs));
        let feeds = match keys.when {
            When::Later => {
                self.keep(keys);
                return Ok(());
            }
            When::Found => self.found(keys.ticket, model)?,
            When::Now if keys.wants_full_rows => {
                let full = keys.feeds.iter().map(signs);
                full.map(|(table, signs)| ReadingFeed::Full { table, signs })
                    .collect()
            }
            When::Now if keys.is_training => {
                let mut feeds = Vec::with_capacity(keys.feeds.len());
                for (table, signs) in keys.feeds.iter().map(signs) {
                    let located = model.locate(table, &signs)?;
                    feeds.push(ReadingFeed::Located { table, located });
                }
                feeds
            }
            When::Now => {
                let read = keys.feeds.iter().map(signs);
                read.map(|(table, signs)| ReadingFeed::Signs { table, signs })
                    .collect()
            }
        };
        self.reading.push(Reading {
            ticket: keys.ticket,
            wants_dense: keys.wants_dense,
            wants_full_rows: keys.wants_full_rows,
            precision: keys.precision,
            feeds,
        });
        Ok(())
    }

    /// Keeps keys for a step to come; those that are here already stay as they are.
    fn keep(&mut self, keys: &Keys<'_>) {
        if self.later.iter().any(|later| later.ticket == keys.ticket) {
            return;
        }
        let feeds = keys.feeds.iter().map(|feed| LaterFeed::Signs {
            table: usize::from(feed.table),
            signs: unpack_signs(feed.signs),
        });
        self.later.push(Later {
            ticket: keys.ticket,
            feeds: feeds.collect(),
        });
    }

    /// Rows whose keys came with an earlier step.
    fn found(&mut self, ticket: u64, model: &mut Model) -> Result<Vec<ReadingFeed>, Error> {
        let place = self.later.iter().position(|later| later.ticket == ticket);
        let place = place.ok_or_else(|| {
            Error::protocol(format!(
                "rows of ticket {ticket} are asked for, whose keys never came"
            ))
        })?;
        self.later[place].find(model)?;
        let feeds = self.later.remove(place).feeds.into_iter();
        Ok(feeds
            .map(|feed| match feed {
                LaterFeed::Located { table, located } => ReadingFeed::Located { table, located },
                LaterFeed::Signs { .. } => unreachable!("all of them are found"),
            })
            .collect())
    }

    /// Whether there are keys whose rows could be found now.
    pub(crate) fn has_later(&self) -> bool {
        let is_left = |feed: &LaterFeed| matches!(feed, LaterFeed::Signs { .. });
        self.later.iter().any(|later| later.feeds.iter().any(is_left))
    }

    /// Finds, or makes, the rows that a later step will ask for.
    pub(crate) fn find_later(&mut self, model: &mut Model) -> Result<(), Error> {
        self.later.iter_mut().try_for_each(|later| later.find(model))
    }

    /// What is to be read for the answer to a push; what the answer of before gave, where that was lost.
    pub(crate) fn take_readings(&mut self, sequence: u64) -> Vec<Reading> {
        let readings = std::mem::take(&mut self.reading);
        if !readings.is_empty() {
            self.given = (sequence, Vec::new());
            return readings;
        }
        if sequence > 0 && self.given.0 == sequence {
            return std::mem::take(&mut self.given.1);
        }
        Vec::new()
    }

    /// Rows as they are now, for the answer; those to be trained stay here under their ticket.
    pub(crate) fn answer(&mut self, mut reading: Reading, model: &Model) -> Result<Vec<AnswerRows>, Error> {
        let ticket = reading.ticket;
        let mut answer = Vec::with_capacity(reading.feeds.len());
        let mut kept = Vec::new();
        let mut given = Vec::with_capacity(reading.feeds.len());
        for feed in std::mem::take(&mut reading.feeds) {
            given.push(match feed {
                ReadingFeed::Located { table, located } => {
                    kept.push(Some(model.fill(table, located)?));
                    let feed = kept.len() - 1;
                    answer.push(AnswerRows::Kept { ticket, feed });
                    ReadingFeed::Kept { feed }
                }
                ReadingFeed::Kept { feed } => {
                    answer.push(AnswerRows::Kept { ticket, feed });
                    ReadingFeed::Kept { feed }
                }
                ReadingFeed::Signs { table, signs } => {
                    answer.push(AnswerRows::Lookup(model.read(table, &signs)?));
                    ReadingFeed::Signs { table, signs }
                }
                ReadingFeed::Full { table, signs } => {
                    let (width, floats) = model.read_full(table, &signs)?;
                    answer.push(AnswerRows::Full {
                        rows: signs.len(),
                        width,
                        floats,
                    });
                    ReadingFeed::Full { table, signs }
                }
            });
        }
        if !kept.is_empty() {
            let given = Given {
                step: model.step,
                feeds: kept,
            };
            self.tickets.insert(ticket, given);
        }
        reading.feeds = given;
        self.given.1.push(reading);
        Ok(answer)
    }

    /// The rows of an answer that was given before and lost on its way.
    pub(crate) fn answer_again(&self, ticket: u64) -> Option<Vec<AnswerRows>> {
        let given = self.tickets.get(&ticket)?;
        let kept = (0..given.feeds.len()).map(|feed| AnswerRows::Kept { ticket, feed });
        Some(kept.collect())
    }

    pub(crate) fn kept(&self, ticket: u64, feed: usize) -> Option<&Lookup> {
        self.tickets.get(&ticket)?.feeds.get(feed)?.as_ref()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use clickmill_table::Table;
    use clickmill_wire::Precision;

    use super::*;
    use crate::model::DenseSlice;

    /// Signs get a row when they come for the second time.
    fn model() -> Model {
        let config = serde_json::json!({
            "spec": {"name": "t", "dim": 2, "seed": 1, "init": {"kind": "uniform", "scale": 1.0}},
            "bucket_bits": 1,
            "admission": {"kind": "count", "at": 2, "sketch_bits": 12},
        });
        let table = Table::new(serde_json::from_value(config).unwrap()).unwrap();
        let rule = serde_json::from_value(serde_json::json!({"kind": "sgd"})).unwrap();
        Model::with_tables(vec![table], DenseSlice::new(rule, Vec::new()), 0)
    }

    fn bytes(signs: &[u64]) -> Vec<u8> {
        signs.iter().flat_map(|sign| sign.to_le_bytes()).collect()
    }

    fn keys<'a>(ticket: u64, when: When, feeds: &[(u16, &'a [u8])]) -> Keys<'a> {
        Keys {
            ticket,
            when,
            wants_dense: false,
            is_training: true,
            wants_full_rows: false,
            precision: Precision::Fp32,
            feeds: feeds
                .iter()
                .map(|&(table, signs)| FeedKeys { table, signs })
                .collect(),
        }
    }

    fn num_answers(session: &mut Session, sequence: u64, model: &Model) -> usize {
        let mut count = 0;
        for reading in session.take_readings(sequence) {
            count += session.answer(reading, model).unwrap().len();
        }
        count
    }

    #[test]
    fn a_step_that_comes_twice_finds_its_rows_once() {
        let (mut session, mut model) = (Session::default(), model());
        let signs = bytes(&[7, 8, 9]);
        for _ in 0..2 {
            let ahead = keys(1, When::Later, &[(0, &signs)]);
            session.read(&ahead, &mut model).unwrap();
            session.find_later(&mut model).unwrap();
        }
        assert!(!session.has_later());
        for _ in 0..2 {
            session.read(&keys(1, When::Found, &[]), &mut model).unwrap();
            assert_eq!(
                num_answers(&mut session, 1, &model),
                1,
                "the answer may have been lost"
            );
        }
        assert_eq!(model.tables[0].len(), 0, "signs were seen once");
        let again = keys(2, When::Now, &[(0, &signs)]);
        session.read(&again, &mut model).unwrap();
        assert_eq!(model.tables[0].len(), 3);
    }

    #[test]
    fn a_batch_without_feeds_may_be_asked_for_twice_too() {
        let (mut session, mut model) = (Session::default(), model());
        session.read(&keys(1, When::Later, &[]), &mut model).unwrap();
        for _ in 0..2 {
            session.read(&keys(1, When::Found, &[]), &mut model).unwrap();
            num_answers(&mut session, 1, &model);
        }
    }

    #[test]
    fn rows_that_cannot_be_found_ahead_fail_when_they_are_asked_for() {
        let (mut session, mut model) = (Session::default(), model());
        let signs = bytes(&[7]);
        let ahead = keys(1, When::Later, &[(0, &signs), (5, &signs)]);
        session.read(&ahead, &mut model).unwrap();
        let early = session.find_later(&mut model).unwrap_err().to_string();
        let asked = session
            .read(&keys(1, When::Found, &[]), &mut model)
            .unwrap_err()
            .to_string();
        assert!(early == asked && asked.contains("table 5"), "{early}; {asked}");
    }
}
