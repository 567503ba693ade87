//! Bad lines: counted, and the first ones kept with their place.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Bad lines that are kept with their place and reason; the others are only counted.
const KEPT: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BadLine {
    /// What the line stands in; empty where records come from nowhere in particular.
    pub file: String,
    /// 1-based; of a record its 0-based number.
    pub line: u64,
    /// 1-based byte column of the field; none for a record, whose fields have names instead.
    pub column: Option<u64>,
    pub reason: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            reason,
        } = self;
        match column {
            Some(column) => write!(out, "{file}:{line}:{column}: {reason}"),
            None if file.is_empty() => write!(out, "record {line}: {reason}"),
            None => write!(out, "{file}: record {line}: {reason}"),
        }
    }
}

/// Cheap to clone: every batch carries the state of the log after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BadLines {
    pub count: u64,
    first: Arc<Vec<BadLine>>,
}

impl BadLines {
    pub fn first(&self) -> &[BadLine] {
        &self.first
    }

    pub(crate) fn replace(&mut self, count: u64, first: &[BadLine]) {
        self.count = count;
        self.first = Arc::new(first.to_vec());
    }

    pub(crate) fn wants_details(&self) -> bool {
        self.first.len() < KEPT
    }

    /// `line` is made only while there is room for it: finding a line number may need a scan of the file.
    pub(crate) fn add(&mut self, line: impl FnOnce() -> BadLine) {
        self.count += 1;
        if self.wants_details() {
            Arc::make_mut(&mut self.first).push(line());
        }
    }
}

/// Why a line is bad, and where in it: what a parser knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// 0-based byte in the line.
    pub at: u32,
    /// Index of the column among those of the plan, where the fault is one of its value.
    pub column: Option<u32>,
    pub reason: String,
}

impl Fault {
    pub(crate) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self {
            at: u32::try_from(at).unwrap_or(u32::MAX),
            column: None,
            reason: reason.into(),
        }
    }

    pub(crate) fn of_column(self, column: u32) -> Self {
        Self {
            column: Some(column),
            ..self
        }
    }
}

/// Text of a value for a message: short, printable.
pub(crate) fn shown(value: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text: String = value
        .iter()
        .take(LONGEST)
        .flat_map(|&byte| std::ascii::escape_default(byte))
        .map(char::from)
        .collect();
    if value.len() > LONGEST {
        format!("`{text}…` ({} bytes)", value.len())
    } else {
        format!("`{text}`")
    }
}
