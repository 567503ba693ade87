//! Keeps count while blocks go by in order: lines, bad lines, columns seen, the place of each row.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::Error;
use crate::bad::{BadLine, BadLines};
use crate::block::Block;
use crate::parser::Parser;
use crate::position::Position;
use crate::source;
use crate::units::Units;

/// Columns that are named in the message about a slot that never occurs.
const MOST_NAMED: usize = 50;

pub(crate) struct Tracker {
    units: Arc<Units>,
    /// Behind everything that has gone by.
    pub(crate) here: Position,
    /// A place of the current unit whose line number in the unit is known: (offset, line).
    anchor: Option<(u64, u64)>,
    /// Lines of the file before the unit; found only when a bad line has to be named.
    lines_before_unit: Option<u64>,
    others: BTreeSet<Vec<u8>>,
    max_bad_lines: Option<u64>,
    raw_before_unit: u64,
    pub(crate) raw_bytes: u64,
}

/// One block with the counts before it.
pub(crate) struct Tracked<'a> {
    block: &'a Block,
    before: Position,
    header_lines: u64,
    /// The log after each fault of the block.
    bad: Vec<BadLines>,
    /// Rows before the bad line that was one too many.
    pub(crate) num_rows: usize,
    pub(crate) error: Option<Error>,
}

impl Tracker {
    pub(crate) fn new(units: Arc<Units>, start: Position, max_bad_lines: Option<u64>) -> Self {
        let raw_before_unit = units
            .order
            .iter()
            .take(start.unit as usize)
            .map(|unit| unit.raw_bytes)
            .sum();
        Self {
            units,
            anchor: None,
            here: start,
            lines_before_unit: None,
            others: BTreeSet::new(),
            max_bad_lines,
            raw_before_unit,
            raw_bytes: raw_before_unit,
        }
    }

    pub(crate) fn track<'a>(&mut self, block: &'a Block) -> Result<Tracked<'a>, Error> {
        self.enter(block);
        let header_lines = u64::from(block.header_bytes > 0);
        let before = self.here.clone();
        let mut bad = Vec::with_capacity(block.faults.len());
        let mut num_rows = block.rows.len();
        let mut error = None;
        for fault in &block.faults {
            let line = before.line + header_lines + u64::from(fault.line);
            let mut details = None;
            if self.here.bad.wants_details() {
                details = Some(BadLine {
                    file: self.file(block.unit).display().to_string(),
                    line: self.lines_before_unit()? + line + 1,
                    column: Some(u64::from(fault.fault.at) + 1),
                    reason: fault.fault.reason.clone(),
                });
            }
            self.here
                .bad
                .add(|| details.expect("made where the log wants it"));
            bad.push(self.here.bad.clone());
            if let Some(limit) = self.max_bad_lines
                && self.here.bad.count > limit
            {
                num_rows = block.rows.lines.partition_point(|&lines| lines <= fault.line);
                error = Some(Error::BadLines {
                    count: self.here.bad.count,
                    limit,
                    first: self.here.bad.first().to_vec(),
                });
                break;
            }
        }
        self.here.offset = block.end;
        self.here.line += u64::from(block.lines);
        self.here.lines += u64::from(block.lines);
        self.here.rows += num_rows as u64;
        for (seen, &is_seen) in self.here.seen.iter_mut().zip(&block.seen) {
            *seen |= is_seen;
        }
        self.others.extend(block.others.iter().cloned());
        self.raw_bytes = self.raw_before_unit + block.raw_bytes;
        Ok(Tracked {
            block,
            before,
            header_lines,
            bad,
            num_rows,
            error,
        })
    }

    fn enter(&mut self, block: &Block) {
        if block.unit == self.here.unit {
            self.anchor.get_or_insert((block.offset, self.here.line));
            return;
        }
        for unit in self.here.unit..block.unit {
            self.raw_before_unit += self.units.order[unit as usize].raw_bytes;
        }
        self.here.unit = block.unit;
        self.here.line = 0;
        self.anchor = Some((block.offset, 0));
        self.lines_before_unit = None;
    }

    fn file(&self, unit: u64) -> &std::path::Path {
        &self.units.files[self.units.order[unit as usize].file].path
    }

    fn lines_before_unit(&mut self) -> Result<u64, Error> {
        if let Some(lines) = self.lines_before_unit {
            return Ok(lines);
        }
        let unit = self.units.order[self.here.unit as usize];
        let lines = match self.anchor {
            Some((offset, line)) if unit.start > 0 => {
                source::count_lines(&self.units.files[unit.file].path, offset)?.saturating_sub(line)
            }
            _ => 0,
        };
        self.lines_before_unit = Some(lines);
        Ok(lines)
    }

    /// A slot whose column has not occurred in the whole pass is an error that names both.
    pub(crate) fn check_slots(&self, parser: &Parser) -> Result<(), Error> {
        let plan = parser.plan();
        let Some((index, slot)) = plan.absent(&self.here.seen).next() else {
            return Ok(());
        };
        let mut known: Vec<String> = plan
            .columns()
            .iter()
            .zip(&self.here.seen)
            .filter(|(_, seen)| **seen)
            .map(|(name, _)| name.clone())
            .chain(
                self.others
                    .iter()
                    .map(|name| String::from_utf8_lossy(name).into_owned()),
            )
            .collect();
        if known.len() > MOST_NAMED {
            known.truncate(MOST_NAMED);
            known.push("…".to_owned());
        }
        Err(Error::AbsentSlot {
            slot: slot.to_owned(),
            reason: format!(
                "column `{}` never occurs in the data; columns that do: {}",
                plan.columns()[index],
                known.join(", ")
            ),
        })
    }
}

impl Tracked<'_> {
    /// Behind row `row` of the block.
    pub(crate) fn after(&self, row: usize, seen: &[bool]) -> Position {
        let lines = self.block.rows.lines[row];
        let passed = self.block.faults.partition_point(|fault| fault.line < lines);
        let bad = match passed.min(self.bad.len()) {
            0 => self.before.bad.clone(),
            count => self.bad[count - 1].clone(),
        };
        Position {
            offset: self.block.offset + self.block.header_bytes as u64 + u64::from(self.block.rows.ends[row]),
            line: self.before.line + self.header_lines + u64::from(lines),
            lines: self.before.lines + self.header_lines + u64::from(lines),
            rows: self.before.rows + row as u64 + 1,
            bad,
            // Columns of later lines of the block may be among them; those lines will be read again.
            seen: seen.to_vec(),
            ..self.before.clone()
        }
    }
}
