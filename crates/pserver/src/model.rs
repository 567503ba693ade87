//! The parameters of one server: its rows of all tables and its slice of the dense part.
//!
//! One lock guards them all, so that a push is seen whole or not at all and steps are counted in one order.
//! It is held for what touches rows and nothing else: numbers are packed and unpacked outside.

use clickmill_table::dense::{DenseOptimizer, DenseRule};
use clickmill_table::{Buffers, Located, Lookup, Rate, Table};

use crate::Error;
use crate::push::{DensePush, Held, RowsPush};

pub(crate) struct Model {
    pub tables: Vec<Table>,
    buffers: Buffers,
    pub dense: DenseSlice,
    /// Updates applied; every table is in the step `first + step`.
    pub step: u64,
    /// Steps of each table before the first of this run.
    first_steps: Vec<u64>,
}

/// Gradients of one feed, of one push or of several, each by its share.
struct FeedUpdate<'a> {
    feed: usize,
    table: usize,
    learning_rate: f32,
    lookups: Vec<(&'a Lookup, f32)>,
}

/// A contiguous part of all dense parameters, one behind the other.
pub(crate) struct DenseSlice {
    pub values: Vec<f32>,
    pub optimizer: DenseOptimizer,
}

impl DenseSlice {
    pub(crate) fn new(rule: DenseRule, values: Vec<f32>) -> Self {
        let optimizer = DenseOptimizer::new(rule, vec![values.len()]);
        Self { values, optimizer }
    }

    /// Numbers of the optimizer's state.
    fn state_len(&self) -> usize {
        self.optimizer.states().iter().map(Vec::len).sum()
    }

    /// Adds differences; the state behind them moves this one's by the share of the trainer that it is from.
    ///
    /// A trainer's optimizer has made its share of the run's `step` updates.
    fn add(&mut self, numbers: &[f32], share: f32, step: u64) -> Result<(), Error> {
        let (differences, state) = numbers.split_at(numbers.len().min(self.values.len()));
        for (own, more) in self.values.iter_mut().zip(differences) {
            *own += more;
        }
        if !state.is_empty() {
            let steps = (step as f64 * f64::from(share)).round() as u64;
            self.optimizer.blend(state, share, steps)?;
        }
        Ok(())
    }

    /// Values, and the optimizer's state behind them.
    pub(crate) fn with_state(&self) -> Vec<f32> {
        let mut numbers = self.values.clone();
        for state in self.optimizer.states() {
            numbers.extend_from_slice(state);
        }
        numbers
    }
}

impl Model {
    /// Tables, new or loaded, `step` updates into the run.
    pub(crate) fn with_tables(tables: Vec<Table>, dense: DenseSlice, step: u64) -> Self {
        let first_steps = tables
            .iter()
            .map(|table| u64::from(table.step()).saturating_sub(step))
            .collect();
        Self {
            first_steps,
            tables,
            buffers: Buffers::default(),
            dense,
            step,
        }
    }

    /// Empties a table; its steps count on.
    pub(crate) fn restart_table(&mut self, number: usize) -> Result<(), Error> {
        let config = self.table(number)?.config().clone();
        let mut table = Table::new(config)?;
        table.begin_step(self.first_steps[number] + self.step)?;
        self.tables[number] = table;
        Ok(())
    }

    fn table(&self, number: usize) -> Result<&Table, Error> {
        self.tables
            .get(number)
            .ok_or_else(|| Error::protocol(format!("table {number} of {}", self.tables.len())))
    }

    fn table_mut(&mut self, number: usize) -> Result<&mut Table, Error> {
        let count = self.tables.len();
        self.tables
            .get_mut(number)
            .ok_or_else(|| Error::protocol(format!("table {number} of {count}")))
    }

    /// Finds, or makes, the rows of `signs` for training.
    pub(crate) fn locate(&mut self, number: usize, signs: &[u64]) -> Result<Located, Error> {
        let buffers = self.buffers.clone();
        Ok(Located::new(self.table_mut(number)?, signs, &buffers)?)
    }

    /// Reads what was located, as it is now.
    pub(crate) fn fill(&self, number: usize, located: Located) -> Result<Lookup, Error> {
        Ok(located.fill(self.table(number)?)?)
    }

    /// Rows to score with: nothing is made.
    pub(crate) fn read(&self, number: usize, signs: &[u64]) -> Result<Lookup, Error> {
        Ok(Lookup::read(self.table(number)?, signs, &self.buffers)?)
    }

    /// Whole rows, with state and statistics; returns their width too.
    pub(crate) fn read_full(&self, number: usize, signs: &[u64]) -> Result<(usize, Vec<f32>), Error> {
        let table = self.table(number)?;
        let width = table.row_floats();
        let mut floats = vec![0.0; signs.len() * width];
        table.read_full(signs, &mut floats)?;
        Ok((width, floats))
    }

    /// One update with the gradients of one push, or of several that belong together, each by its share.
    ///
    /// Nothing is changed where a push does not fit.
    pub(crate) fn apply(&mut self, pushes: &mut [(&mut Held, f32)]) -> Result<(), Error> {
        self.check(pushes)?;
        // Parts of a round are one update.
        let updates = match pushes {
            [(only, _)] => only.updates,
            _ => 1,
        };
        self.begin_steps(updates)?;
        self.apply_dense(pushes)?;
        self.apply_rows(pushes)
    }

    /// One update of the rows of one push; the dense part waits for others.
    pub(crate) fn apply_rows_alone(&mut self, push: &mut Held) -> Result<(), Error> {
        let pushes = &mut [(push, 1.0)];
        self.check(pushes)?;
        self.begin_steps(1)?;
        self.apply_rows(pushes)
    }

    fn begin_steps(&mut self, count: u64) -> Result<(), Error> {
        self.step += count;
        for (table, first) in self.tables.iter_mut().zip(&self.first_steps) {
            table.begin_step(first + self.step)?;
        }
        Ok(())
    }

    fn check(&self, pushes: &[(&mut Held, f32)]) -> Result<(), Error> {
        let expected = self.dense.values.len();
        for (push, _) in pushes {
            let (values, with_state) = match &push.dense {
                DensePush::Gradients { values, .. } => (values, expected),
                DensePush::Differences { values, .. } => (values, expected + self.dense.state_len()),
            };
            if ![0, expected, with_state].contains(&values.len()) {
                return Err(Error::protocol(format!(
                    "{} dense numbers, this server has {expected}",
                    values.len()
                )));
            }
            for rows in &push.rows {
                match rows {
                    RowsPush::Gradients { table, .. } => {
                        self.table(*table)?;
                    }
                    RowsPush::Differences { table, signs, floats } => {
                        let width = self.table(*table)?.row_floats();
                        if floats.len() != signs.len() * width {
                            return Err(Error::protocol(format!(
                                "{} numbers for {} rows of {width}",
                                floats.len(),
                                signs.len()
                            )));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The dense part of `apply`: a weighted sum, one step of the optimizer.
    pub(crate) fn apply_dense(&mut self, pushes: &mut [(&mut Held, f32)]) -> Result<(), Error> {
        let mut rates = None;
        let mut gradients: Vec<&[f32]> = Vec::with_capacity(pushes.len());
        let is_alone = pushes.len() == 1;
        for (push, weight) in pushes.iter_mut() {
            match &mut push.dense {
                DensePush::Differences { values, share } => self.dense.add(values, *share, self.step)?,
                DensePush::Gradients { values, .. } if values.is_empty() => {}
                DensePush::Gradients { values, rate, scale } => {
                    let factor = *scale * *weight;
                    rates.get_or_insert((*rate, if is_alone { factor } else { 1.0 }));
                    if !is_alone && (factor - 1.0).abs() > 0.0 {
                        for value in values.iter_mut() {
                            *value *= factor;
                        }
                    }
                    gradients.push(values);
                }
            }
        }
        if let Some((rate, scale)) = rates {
            let step = self.dense.optimizer.begin(rate, scale)?;
            self.dense
                .optimizer
                .update(step, 0, &mut self.dense.values, &gradients)?;
        }
        Ok(())
    }

    /// The rows of `apply`; rows that several pushes touch are updated once.
    pub(crate) fn apply_rows(&mut self, pushes: &mut [(&mut Held, f32)]) -> Result<(), Error> {
        let mut feeds: Vec<FeedUpdate<'_>> = Vec::new();
        for (push, weight) in pushes.iter() {
            for rows in &push.rows {
                match rows {
                    RowsPush::Differences { table, signs, floats } => {
                        self.tables[*table].add_full(signs, floats)?;
                    }
                    RowsPush::Gradients {
                        feed,
                        table,
                        lookup,
                        rate,
                        scale,
                    } => {
                        let entry = (lookup, *scale * *weight);
                        if let Some(found) = feeds.iter_mut().find(|found| found.feed == *feed) {
                            found.lookups.push(entry);
                        } else {
                            feeds.push(FeedUpdate {
                                feed: *feed,
                                table: *table,
                                learning_rate: *rate,
                                lookups: vec![entry],
                            });
                        }
                    }
                }
            }
        }
        for update in feeds {
            let learning_rate = update.learning_rate;
            let table = &mut self.tables[update.table];
            match update.lookups.as_slice() {
                [(lookup, scale)] => table.apply(
                    lookup,
                    Rate {
                        learning_rate,
                        scale: *scale,
                    },
                )?,
                several => table.apply_merged(
                    several,
                    Rate {
                        learning_rate,
                        scale: 1.0,
                    },
                )?,
            }
        }
        Ok(())
    }
}
