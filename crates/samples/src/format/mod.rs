//! The text formats: how a line becomes fields. What the fields mean is the plan's business.

mod csv;
mod delimited;
mod libsvm;
mod movielens;
mod show_click;
mod slots;
mod split;

use std::path::Path;

use crate::Error;
use crate::bad::Fault;
use crate::config::{FormatConfig, LibsvmValues};
use crate::fields::{CellView, Cells, Fields};
use crate::keys::Keys;
use crate::scan::Index;

pub(crate) use csv::Csv;
use delimited::Delimited;
use movielens::Movielens;
use split::Split;

/// Which columns the lines of a format have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Every line has exactly these.
    Fixed(Vec<String>),
    /// Lines name their columns; these stand beside the named ones.
    Named(Vec<String>),
}

/// A format, ready to split lines: header and side files have been read.
#[derive(Debug)]
pub(crate) enum Format {
    Split(Split),
    Delimited(Delimited),
    Csv(Csv),
    Movielens(Movielens),
    Slots,
    ShowClick,
    Libsvm { refuses_values: bool },
}

/// Takes the lines of a block, one by one and in order.
pub(crate) trait LineVisitor {
    /// `end` is the byte after the line in the block, `line` its 0-based number there.
    fn line<F: Fields>(&mut self, fields: &F, end: u32, line: u32);
    fn fault(&mut self, fault: Fault, line: u32);
}

/// What splitting needs besides the line; one for each thread.
pub(crate) struct SplitScratch {
    index: Index,
    pub(crate) cells: Cells,
}

impl SplitScratch {
    pub(crate) fn new(num_columns: usize, keys: Keys) -> Self {
        Self {
            index: Index::default(),
            cells: Cells::new(num_columns, keys),
        }
    }
}

impl Format {
    /// `first_file` is where a header or side files are looked for; `wants` says which columns are used.
    pub(crate) fn open(
        config: &FormatConfig,
        first_file: Option<&Path>,
        wants: &dyn Fn(&str) -> bool,
    ) -> Result<Self, Error> {
        Ok(match config {
            FormatConfig::Criteo { has_label } => Self::Split(Split::criteo(*has_label, wants("label"))),
            FormatConfig::Slots {} => Self::Slots,
            FormatConfig::ShowClick {} => Self::ShowClick,
            FormatConfig::Libsvm { values } => Self::Libsvm {
                refuses_values: *values == LibsvmValues::Error && wants("features"),
            },
            FormatConfig::Csv { delimiter } => Self::Csv(Csv::open(delimiter, first_file)?),
            FormatConfig::Movielens { folder } => {
                Self::Movielens(Movielens::open(folder.as_deref(), first_file, wants)?)
            }
            FormatConfig::Delimited { delimiter, columns } => delimited::open(delimiter, columns)?,
        })
    }

    pub(crate) fn columns(&self) -> Columns {
        let named = |names: &[&str]| Columns::Named(names.iter().map(|&name| name.to_owned()).collect());
        match self {
            Self::Split(split) => Columns::Fixed(split.columns.clone()),
            Self::Delimited(delimited) => Columns::Fixed(delimited.columns.clone()),
            Self::Csv(csv) => Columns::Fixed(csv.columns.clone()),
            Self::Movielens(_) => {
                Columns::Fixed(movielens::COLUMNS.iter().map(|&name| name.to_owned()).collect())
            }
            Self::Slots => named(&[]),
            Self::ShowClick => named(&show_click::COLUMNS),
            Self::Libsvm { .. } => named(&libsvm::COLUMNS),
        }
    }

    /// The first line that every file must have, if the format has a header.
    pub(crate) fn header(&self) -> Option<&[u8]> {
        if let Self::Csv(csv) = self {
            Some(&csv.header)
        } else {
            None
        }
    }

    pub(crate) fn sides(&self) -> &[Vec<u8>] {
        if let Self::Movielens(movielens) = self {
            &movielens.sides
        } else {
            &[]
        }
    }

    /// Cells of one line without its end; not for `Split`, whose lines are found by the block.
    fn cells(&self, line: &[u8], cells: &mut Cells) -> Result<(), Fault> {
        cells.start();
        match self {
            Self::Split(split) => split.cells(line, cells),
            Self::Delimited(delimited) => delimited.cells(line, cells),
            Self::Csv(csv) => csv.cells(line, cells),
            Self::Movielens(movielens) => movielens.cells(line, cells),
            Self::Slots => slots::cells(line, cells),
            Self::ShowClick => show_click::cells(line, cells),
            Self::Libsvm { refuses_values } => libsvm::cells(line, *refuses_values, cells),
        }
    }

    /// Visits one line, with or without its end.
    pub(crate) fn visit_line<V: LineVisitor>(
        &self,
        line: &[u8],
        scratch: &mut SplitScratch,
        visitor: &mut V,
    ) {
        let end = line.len() as u32;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.cells(line, &mut scratch.cells) {
            Ok(()) => {
                let view = CellView {
                    cells: &scratch.cells,
                    line,
                    sides: self.sides(),
                };
                visitor.line(&view, end, 0);
            }
            Err(fault) => visitor.fault(fault, 0),
        }
    }

    /// Visits every line of a block that is not blank; the number of lines, blank ones included.
    pub(crate) fn visit_block<V: LineVisitor>(
        &self,
        block: &[u8],
        max_line_bytes: usize,
        scratch: &mut SplitScratch,
        visitor: &mut V,
    ) -> u32 {
        let guard = Guard {
            has_nul: memchr::memchr(0, block).is_some(),
            max_line_bytes,
        };
        let split = match self {
            Self::Split(split) => Some(split),
            // Without any quote a CSV block is a plain one.
            Self::Csv(csv) if memchr::memchr(b'"', block).is_none() => csv.split.as_ref(),
            Self::Csv(_)
            | Self::Delimited(_)
            | Self::Movielens(_)
            | Self::Slots
            | Self::ShowClick
            | Self::Libsvm { .. } => None,
        };
        match split {
            Some(split) => split.visit_block(block, &guard, &mut scratch.index, visitor),
            None => self.visit_lines(block, &guard, scratch, visitor),
        }
    }

    fn visit_lines<V: LineVisitor>(
        &self,
        block: &[u8],
        guard: &Guard,
        scratch: &mut SplitScratch,
        visitor: &mut V,
    ) -> u32 {
        let mut start = 0;
        let mut number = 0;
        while start < block.len() {
            let end = memchr::memchr(b'\n', &block[start..]).map_or(block.len(), |at| start + at);
            let line = &block[start..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() {
                let outcome = guard
                    .check(line)
                    .and_then(|()| self.cells(line, &mut scratch.cells));
                match outcome {
                    Ok(()) => {
                        let view = CellView {
                            cells: &scratch.cells,
                            line,
                            sides: self.sides(),
                        };
                        visitor.line(&view, (end + 1).min(block.len()) as u32, number);
                    }
                    Err(fault) => visitor.fault(fault, number),
                }
            }
            number += 1;
            start = end + 1;
        }
        number
    }
}

/// Refuses lines that no format may have.
pub(crate) struct Guard {
    has_nul: bool,
    max_line_bytes: usize,
}

impl Guard {
    #[inline]
    fn check(&self, line: &[u8]) -> Result<(), Fault> {
        if line.len() > self.max_line_bytes {
            return Err(too_long(line.len() as u64, self.max_line_bytes));
        }
        if self.has_nul
            && let Some(at) = memchr::memchr(0, line)
        {
            return Err(Fault::new(at, "NUL byte: this is not text"));
        }
        Ok(())
    }
}

pub(crate) fn too_long(length: u64, max_line_bytes: usize) -> Fault {
    Fault::new(
        0,
        format!("line of {length} bytes is longer than max_line_bytes: {max_line_bytes}"),
    )
}

/// The fault of a line with the wrong number of columns; `at` is where the first excess column starts.
fn wrong_columns(at: usize, expected: &str, found: usize) -> Fault {
    Fault::new(at, format!("expected {expected} columns, found {found}"))
}
