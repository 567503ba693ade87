//! Statistics of the raw columns of a data set, without a schema.

use std::sync::Arc;

use serde::Serialize;

use crate::Error;
use crate::bad::{BadLine, BadLines, Fault};
use crate::block::{Cut, Cutter};
use crate::buffer::Buffer;
use crate::column_statistics::{ColumnReport, ColumnStatistics};
use crate::config::ReaderConfig;
use crate::fields::Fields;
use crate::format::{Columns, Format, LineVisitor, SplitScratch};
use crate::keys::Keys;
use crate::units::Units;

/// Columns of a `key:value` format that are described; the others are only counted.
const MOST_COLUMNS: usize = 1000;

/// Names under which a label usually goes; the first that is a column is described as such.
const LABELS: [&str; 4] = ["label", "click", "rating", "target"];

#[derive(Clone, Debug, Serialize)]
pub struct Description {
    pub rows: u64,
    /// Decompressed bytes read.
    pub bytes: u64,
    /// Whether `limit_rows` ended it before the data did.
    pub is_partial: bool,
    pub bad_lines: BadLines,
    pub label: Option<LabelReport>,
    pub columns: Vec<ColumnReport>,
    /// Columns beyond the described ones.
    pub num_other_columns: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct LabelReport {
    pub column: String,
    /// Mean of its values: the share of positives where it is 0 or 1.
    pub rate: f64,
}

/// Describes up to `limit_rows` good rows of the files of `config`; its bad-line limit holds here too. Files in
/// which every line is bad have no columns; files without a line are an error.
pub fn describe(config: &ReaderConfig, limit_rows: Option<u64>) -> Result<Description, Error> {
    config.check()?;
    let units = Arc::new(Units::new(config)?);
    let first_file = units.files.first().map(|file| file.path.as_path());
    // Side files are joined where they exist.
    let format = match Format::open(&config.format, first_file, &|_| true) {
        Err(Error::Io { .. }) => Format::open(&config.format, first_file, &|_| false)?,
        other => other?,
    };
    let (names, keys) = match format.columns() {
        Columns::Fixed(names) => (names, Keys::new(&[])),
        Columns::Named(names) => {
            let keys = Keys::discovering(&names, MOST_COLUMNS);
            (names, keys)
        }
    };
    let mut scratch = SplitScratch::new(names.len(), keys);
    let mut census = Census {
        columns: names.iter().map(|_| ColumnStatistics::default()).collect(),
        faults: Vec::new(),
        rows: 0,
        limit: limit_rows.unwrap_or(u64::MAX),
    };
    let mut bad_lines = BadLines::default();
    let bytes = walk(config, &units, &format, &mut scratch, &mut census, &mut bad_lines)?;
    if census.rows == 0 && bad_lines.count == 0 {
        return Err(Error::NoSamples {
            reason: format!("no sample in {} files", config.files.len()),
        });
    }
    let names = if census.rows == 0 {
        Vec::new() // only bad lines: they are what there is to tell
    } else if matches!(format.columns(), Columns::Fixed(_)) {
        names
    } else {
        scratch
            .cells
            .keys
            .names()
            .take(scratch.cells.keys.num_columns())
            .collect()
    };
    let columns: Vec<ColumnReport> = names
        .iter()
        .zip(&census.columns)
        .map(|(name, column)| column.report(name, census.rows))
        .collect();
    let label = LABELS.iter().find_map(|label| {
        let column = columns.iter().find(|column| column.name == *label)?;
        Some(LabelReport {
            column: column.name.clone(),
            rate: column.numbers.as_ref()?.mean,
        })
    });
    Ok(Description {
        rows: census.rows,
        bytes,
        is_partial: census.rows >= census.limit,
        bad_lines,
        label,
        columns,
        num_other_columns: scratch.cells.keys.num_others(),
    })
}

fn walk(
    config: &ReaderConfig,
    units: &Units,
    format: &Format,
    scratch: &mut SplitScratch,
    census: &mut Census,
    bad_lines: &mut BadLines,
) -> Result<u64, Error> {
    let mut data = Buffer::default();
    let mut bytes = 0;
    for unit in &units.order {
        let file = &units.files[unit.file];
        let mut cutter = Cutter::open(file, *unit, None, config.max_line_bytes)?;
        let mut has_header = unit.start == 0 && format.header().is_some();
        let mut line = if unit.start == 0 {
            0
        } else {
            crate::source::count_lines(&file.path, cutter.offset())?
        };
        loop {
            if census.rows >= census.limit {
                return Ok(bytes);
            }
            let lines = match cutter.next(&mut data)? {
                Cut::End => break,
                Cut::Lines => {
                    bytes += data.len() as u64;
                    let mut start = 0;
                    if has_header {
                        start = memchr::memchr(b'\n', &data).map_or(data.len(), |at| at + 1);
                        has_header = false;
                        line += 1;
                    }
                    format.visit_block(&data[start..], config.max_line_bytes, scratch, census)
                }
                Cut::TooLong(fault) => {
                    census.faults.push((0, fault));
                    1
                }
            };
            for (at, fault) in census.faults.drain(..) {
                bad_lines.add(|| BadLine {
                    file: file.path.display().to_string(),
                    line: line + u64::from(at) + 1,
                    column: Some(u64::from(fault.at) + 1),
                    reason: fault.reason,
                });
            }
            if let Some(limit) = config.max_bad_lines
                && bad_lines.count > limit
            {
                return Err(Error::BadLines {
                    count: bad_lines.count,
                    limit,
                    first: bad_lines.first().to_vec(),
                });
            }
            line += u64::from(lines);
        }
    }
    Ok(bytes)
}

/// Counts the lines of a data set.
struct Census {
    columns: Vec<ColumnStatistics>,
    faults: Vec<(u32, Fault)>,
    rows: u64,
    limit: u64,
}

impl LineVisitor for Census {
    fn line<F: Fields>(&mut self, fields: &F, _end: u32, _line: u32) {
        if self.rows >= self.limit {
            return;
        }
        self.rows += 1;
        self.columns.resize_with(
            self.columns.len().max(fields.num_columns()),
            ColumnStatistics::default,
        );
        for (index, column) in self.columns.iter_mut().enumerate() {
            let mut cursor = fields.first(index as u32);
            let mut length = 0;
            while let Some(at) = cursor {
                let value = fields.value(at).bytes;
                if !value.is_empty() {
                    column.add(value);
                    length += 1;
                }
                cursor = fields.next(at);
            }
            column.end_row(length);
        }
    }

    fn fault(&mut self, fault: Fault, line: u32) {
        if self.rows < self.limit {
            self.faults.push((line, fault));
        }
    }
}
