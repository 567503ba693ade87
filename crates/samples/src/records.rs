//! Samples that do not come from text: records of keys and values, and columns of text values.
//!
//! Both go through the plan that text goes through, so that equal text gives equal signs.

use std::sync::Arc;

use clickmill_types::Schema;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::assemble::Assembler;
use crate::bad::{BadLine, BadLines, Fault};
use crate::batch::Batch;
use crate::config::Shuffle;
use crate::fields::{CellView, Cells};
use crate::format::Columns;
use crate::keys::Keys;
use crate::plan::{PartSigns, Plan};
use crate::position::Position;
use crate::rows::Rows;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordConfig {
    pub batch_size: usize,
    #[serde(default)]
    pub shuffle: Shuffle,
    #[serde(default)]
    pub pass: u64,
    #[serde(default = "yes")]
    pub keep_last: bool,
    #[serde(default = "yes")]
    pub require_slots: bool,
    /// Bad records that are tolerated; null: any number.
    #[serde(default = "no_bad_records")]
    pub max_bad_lines: Option<u64>,
    /// What the records come from, for messages: names and their numbers of records, in order.
    #[serde(default)]
    pub sources: Vec<(String, u64)>,
    /// Whether the first label, the one that a model learns, must be 0 or 1.
    #[serde(default)]
    pub binary_label: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::unnecessary_wraps, reason = "serde wants the type of the field")]
fn no_bad_records() -> Option<u64> {
    Some(0)
}

impl RecordConfig {
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let config: Self =
            serde_json::from_str(text).map_err(|error| Error::config("records", error.to_string()))?;
        if config.batch_size == 0 {
            return Err(Error::config("records: `batch_size`", "is 0; allowed: 1 or more"));
        }
        match config.shuffle {
            Shuffle::Buffer { rows: 0, .. } => {
                return Err(Error::config(
                    "records: `shuffle.rows`",
                    "is 0; allowed: 1 or more",
                ));
            }
            Shuffle::None | Shuffle::Buffer { .. } => {}
            Shuffle::Block { .. } => {
                return Err(Error::config(
                    "records: `shuffle`",
                    "is `block`; records have no blocks",
                ));
            }
        }
        Ok(config)
    }

    /// Name of the source that record `number` of all comes from, and its number there.
    fn source_of(&self, mut number: u64) -> (&str, u64) {
        let mut name = "";
        for (source, count) in &self.sources {
            name = source;
            if number < *count {
                break;
            }
            number -= count;
        }
        (name, number)
    }
}

/// Values of records in, batches out.
///
/// A position counts records in `lines`: a source that is resumed skips that many before it goes on.
pub struct RecordBatcher {
    plan: Plan,
    config: RecordConfig,
    cells: Cells,
    text: Vec<u8>,
    parts: PartSigns,
    rows: Rows,
    /// Records since `here`, bad ones included.
    num_records: u32,
    /// Bad records since `here`: how many records there were with it, and the log after it.
    bad: Vec<(u32, BadLines)>,
    assembler: Assembler,
    /// Behind everything that has been given to the assembler.
    here: Position,
    batches: Vec<Batch>,
}

/// Rows that are collected before they are given to the assembler.
const ROWS_AT_ONCE: usize = 1024;

impl RecordBatcher {
    pub fn new(
        schema: &Arc<Schema>,
        config: RecordConfig,
        position: Option<&Position>,
    ) -> Result<Self, Error> {
        let plan = Plan::new(schema, &Columns::Named(Vec::new()))?.with_binary_label(config.binary_label);
        let num_columns = plan.columns().len();
        let here = match position {
            Some(position) if position.seen.len() != num_columns => {
                return Err(Error::Position {
                    reason: "was made with another schema".to_owned(),
                });
            }
            Some(position) => position.clone(),
            None => Position {
                seen: vec![false; num_columns],
                ..Position::default()
            },
        };
        let assembler = Assembler::new(
            plan.shape(),
            config.batch_size,
            &config.shuffle,
            config.pass,
            &here,
        );
        Ok(Self {
            cells: Cells::new(num_columns, Keys::new(&[])),
            text: Vec::new(),
            parts: PartSigns::default(),
            rows: Rows::new(plan.shape()),
            num_records: 0,
            bad: Vec::new(),
            assembler,
            here: Position { emitted: 0, ..here },
            batches: Vec::new(),
            plan,
            config,
        })
    }

    /// Keys that the schema reads, in the order of `push`'s columns.
    pub fn columns(&self) -> &[String] {
        self.plan.columns()
    }

    /// 0-based number of the record that is being filled.
    pub fn record(&self) -> u64 {
        self.here.lines + u64::from(self.num_records)
    }

    /// Bad records so far.
    pub fn bad_lines(&self) -> &BadLines {
        self.bad.last().map_or(&self.here.bad, |(_, bad)| bad)
    }

    /// Starts a record; the values of the last one are forgotten.
    pub fn start(&mut self) {
        self.cells.start();
        self.text.clear();
    }

    /// Adds a value of the current record; a column may have several.
    pub fn push(&mut self, column: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        write(&mut self.text);
        self.cells.push_line(column as u32, start, self.text.len());
    }

    /// Ends the current record; an error where it is one bad record too many.
    pub fn commit(&mut self) -> Result<(), Error> {
        let view = CellView {
            cells: &self.cells,
            line: &self.text,
            sides: &[],
        };
        if let Err(fault) = self.plan.evaluate(&view, &mut self.parts, &mut self.rows) {
            self.rows.roll_back(self.plan.shape());
            return self.count_bad(&fault);
        }
        self.num_records += 1;
        self.rows.commit(0, self.num_records);
        if self.rows.len() >= ROWS_AT_ONCE {
            self.flush();
        }
        Ok(())
    }

    #[cold]
    fn count_bad(&mut self, fault: &Fault) -> Result<(), Error> {
        let mut bad = self.bad_lines().clone();
        bad.add(|| {
            let (file, line) = self.config.source_of(self.record());
            let reason = match fault.column {
                Some(column) => format!("key `{}`: {}", self.plan.columns()[column as usize], fault.reason),
                None => fault.reason.clone(),
            };
            BadLine {
                file: file.to_owned(),
                line,
                column: None,
                reason,
            }
        });
        self.num_records += 1;
        let error = match self.config.max_bad_lines {
            Some(limit) if bad.count > limit => Err(Error::BadLines {
                count: bad.count,
                limit,
                first: bad.first().to_vec(),
            }),
            _ => Ok(()),
        };
        self.bad.push((self.num_records, bad));
        error
    }

    /// Batches that are complete.
    pub fn take(&mut self) -> Vec<Batch> {
        self.flush();
        std::mem::take(&mut self.batches)
    }

    /// Everything that is left; an error where there was no record at all.
    pub fn finish(&mut self) -> Result<Vec<Batch>, Error> {
        self.flush();
        let batches = &mut self.batches;
        let finished = self
            .assembler
            .finish(&self.here, self.config.keep_last, &mut |batch| {
                batches.push(batch);
                true
            });
        debug_assert!(finished.is_ok(), "a list takes every batch");
        if self.here.rows == 0 {
            let reason = match self.here.bad.first() {
                [] => "the reader gave no record".to_owned(),
                [first, ..] => format!("all {} records were bad, the first: {first}", self.here.bad.count),
            };
            return Err(Error::NoSamples { reason });
        }
        Ok(std::mem::take(&mut self.batches))
    }

    /// Slots whose keys have not occurred in the records so far; none where nobody requires them.
    pub fn absent_slots(&self) -> Vec<&str> {
        if !self.config.require_slots {
            return Vec::new();
        }
        self.plan.absent(&self.here.seen).map(|(_, slot)| slot).collect()
    }

    /// For the end of a pass: a key that has not occurred in any record is an error.
    pub fn check_slots(&self) -> Result<(), Error> {
        if !self.config.require_slots {
            return Ok(());
        }
        match self.plan.absent(&self.here.seen).next() {
            None => Ok(()),
            Some((index, slot)) => Err(Error::AbsentSlot {
                slot: slot.to_owned(),
                reason: format!(
                    "key `{}` never occurs in {} records",
                    self.plan.columns()[index],
                    self.here.rows
                ),
            }),
        }
    }

    fn flush(&mut self) {
        for (seen, &is_seen) in self.here.seen.iter_mut().zip(&self.cells.seen) {
            *seen |= is_seen;
        }
        let (here, batches) = (&self.here, &mut self.batches);
        let after = |row: usize| {
            let records = self.rows.lines[row];
            let passed = self.bad.partition_point(|(count, _)| *count < records);
            Position {
                lines: here.lines + u64::from(records),
                rows: here.rows + row as u64 + 1,
                bad: match passed {
                    0 => here.bad.clone(),
                    count => self.bad[count - 1].1.clone(),
                },
                ..here.clone()
            }
        };
        let pushed = self
            .assembler
            .push(&self.rows, 0..self.rows.len(), &after, &mut |batch| {
                batches.push(batch);
                true
            });
        debug_assert!(pushed.is_ok(), "a list takes every batch");
        self.here.lines += u64::from(self.num_records);
        self.here.rows += self.rows.len() as u64;
        if let Some((_, bad)) = self.bad.pop() {
            self.here.bad = bad;
        }
        self.bad.clear();
        self.num_records = 0;
        self.rows.clear();
    }
}

/// A column of text values, as Arrow lays it out; borrowed.
pub struct TextColumn<'a> {
    /// `values[offsets[i]..offsets[i + 1]]` is value `i`.
    pub offsets: &'a [i64],
    pub values: &'a [u8],
    /// For a column of lists: row `r` has the values `lists[r]..lists[r + 1]`.
    pub lists: Option<&'a [i64]>,
}

impl TextColumn<'_> {
    /// Number of rows, once every offset is known to be inside its list.
    pub fn check(&self) -> Result<usize, String> {
        let ascends = |offsets: &[i64], most: usize| {
            offsets.first().is_some_and(|&first| first >= 0)
                && offsets.windows(2).all(|pair| pair[0] <= pair[1])
                && offsets
                    .last()
                    .is_some_and(|&last| usize::try_from(last).is_ok_and(|last| last <= most))
        };
        if !ascends(self.offsets, self.values.len()) {
            return Err(format!(
                "offsets do not ascend from 0 to at most {}, the number of bytes",
                self.values.len()
            ));
        }
        let num_values = self.offsets.len() - 1;
        match self.lists {
            None => Ok(num_values),
            Some(lists) if ascends(lists, num_values) => Ok(lists.len() - 1),
            Some(_) => Err(format!(
                "list offsets do not ascend from 0 to at most {num_values}, the number of values"
            )),
        }
    }

    fn of_row(&self, row: usize) -> impl Iterator<Item = &[u8]> {
        let range = match self.lists {
            Some(lists) => lists[row] as usize..lists[row + 1] as usize,
            None => row..row + 1,
        };
        range.map(|value| &self.values[self.offsets[value] as usize..self.offsets[value + 1] as usize])
    }
}

impl RecordBatcher {
    /// Adds rows given by columns, one for each of `columns()`; a column that is absent has no values.
    pub fn push_columns(&mut self, columns: &[Option<TextColumn<'_>>]) -> Result<(), Error> {
        let mut num_rows = None;
        for (column, name) in columns.iter().zip(self.plan.columns()) {
            let Some(column) = column else { continue };
            let fail = |reason: String| Error::config(format!("column `{name}`"), reason);
            let found = column.check().map_err(fail)?;
            if *num_rows.get_or_insert(found) != found {
                return Err(fail(format!(
                    "has {found} rows, another has {}",
                    num_rows.unwrap_or_default()
                )));
            }
        }
        for row in 0..num_rows.unwrap_or(0) {
            self.start();
            for (index, column) in columns.iter().enumerate() {
                for value in column.iter().flat_map(|column| column.of_row(row)) {
                    self.push(index, |text| text.extend_from_slice(value));
                }
            }
            self.commit()?;
        }
        Ok(())
    }
}
