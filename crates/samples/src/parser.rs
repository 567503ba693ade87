//! Lines to rows: a format that splits and a plan that gives the fields their meaning.
//!
//! A predictor uses it on raw lines without any reader.

use std::path::Path;
use std::sync::Arc;

use clickmill_types::Schema;

use crate::Error;
use crate::bad::Fault;
use crate::config::FormatConfig;
use crate::fields::Fields;
use crate::format::{Columns, Format, LineVisitor, SplitScratch};
use crate::keys::Keys;
use crate::plan::{PartSigns, Plan};
use crate::rows::Rows;

#[derive(Debug)]
pub struct Parser {
    pub(crate) format: Format,
    plan: Plan,
}

/// Buffers of one parsing thread.
pub struct ParseScratch {
    pub(crate) split: SplitScratch,
    parts: PartSigns,
}

/// A bad line of a block, by its 0-based number there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFault {
    pub line: u32,
    pub fault: Fault,
}

impl Parser {
    /// `first_file` is where a CSV header or the side files of `MovieLens` are looked for.
    pub fn new(
        schema: &Arc<Schema>,
        format: &FormatConfig,
        first_file: Option<&Path>,
    ) -> Result<Self, Error> {
        let wants = |column: &str| schema.slots.iter().any(|slot| slot.column() == Some(column));
        let format = Format::open(format, first_file, &wants)?;
        let plan = Plan::new(schema, &format.columns())?;
        Ok(Self { format, plan })
    }

    /// The parser, with any number but 0 and 1 refused in the first label.
    pub(crate) fn with_binary_label(self, is_binary: bool) -> Self {
        Self {
            plan: self.plan.with_binary_label(is_binary),
            ..self
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn scratch(&self) -> ParseScratch {
        let columns = self.plan.columns();
        let keys = match self.format.columns() {
            Columns::Fixed(_) => Keys::new(&[]),
            Columns::Named(_) => Keys::new(columns),
        };
        ParseScratch {
            split: SplitScratch::new(columns.len(), keys),
            parts: PartSigns::default(),
        }
    }

    /// Appends the row of one line, with or without its end; a bad line leaves `rows` as they were.
    pub fn parse_line(&self, line: &[u8], scratch: &mut ParseScratch, rows: &mut Rows) -> Result<(), Fault> {
        let mut faults = Vec::new();
        let mut sink = RowSink {
            plan: &self.plan,
            parts: &mut scratch.parts,
            rows,
            faults: &mut faults,
        };
        self.format.visit_line(line, &mut scratch.split, &mut sink);
        match faults.pop() {
            Some(bad) => Err(bad.fault),
            None => Ok(()),
        }
    }

    /// Appends the rows of a block of whole lines; the number of lines.
    pub fn parse_block(
        &self,
        block: &[u8],
        max_line_bytes: usize,
        scratch: &mut ParseScratch,
        rows: &mut Rows,
        faults: &mut Vec<LineFault>,
    ) -> u32 {
        let mut sink = RowSink {
            plan: &self.plan,
            parts: &mut scratch.parts,
            rows,
            faults,
        };
        self.format
            .visit_block(block, max_line_bytes, &mut scratch.split, &mut sink)
    }
}

struct RowSink<'a> {
    plan: &'a Plan,
    parts: &'a mut PartSigns,
    rows: &'a mut Rows,
    faults: &'a mut Vec<LineFault>,
}

impl LineVisitor for RowSink<'_> {
    #[inline]
    fn line<F: Fields>(&mut self, fields: &F, end: u32, line: u32) {
        match self.plan.evaluate(fields, self.parts, self.rows) {
            Ok(()) => self.rows.commit(end, line + 1),
            Err(fault) => {
                self.rows.roll_back(self.plan.shape());
                self.fault(fault, line);
            }
        }
    }

    fn fault(&mut self, fault: Fault, line: u32) {
        self.faults.push(LineFault { line, fault });
    }
}
