//! CSV with a header line, quotes as in RFC 4180. A quoted field ends on its line.

use std::path::Path;

use super::delimited::check_columns;
use super::{Split, wrong_columns};
use crate::Error;
use crate::bad::Fault;
use crate::fields::{Cells, Source};
use crate::keys::Keys;
use crate::source;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Longest header that is looked for.
const MAX_HEADER_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct Csv {
    delimiter: u8,
    pub(crate) columns: Vec<String>,
    /// The header line as it stands in the first file, without its end.
    pub(crate) header: Vec<u8>,
    pub(crate) split: Option<Split>,
}

impl Csv {
    pub(crate) fn open(delimiter: &str, first_file: Option<&Path>) -> Result<Self, Error> {
        let &[delimiter] = delimiter.as_bytes() else {
            return Err(Error::config(
                "format: `delimiter`",
                format!("is `{delimiter}`; allowed: one byte; use the format `delimited` for longer ones"),
            ));
        };
        if matches!(delimiter, b'"' | b'\n' | b'\r') {
            return Err(Error::config("format: `delimiter`", "is a quote or a line end"));
        }
        let path = first_file.ok_or_else(|| Error::config("format: `csv`", "needs a file with a header"))?;
        let header = source::first_line(path, MAX_HEADER_BYTES)?;
        let columns = header_columns(delimiter, &header).map_err(|reason| Error::Header {
            path: path.display().to_string(),
            reason,
        })?;
        Ok(Self {
            delimiter,
            split: Some(Split::new(delimiter, columns.clone())),
            columns,
            header,
        })
    }

    pub(crate) fn cells(&self, line: &[u8], cells: &mut Cells) -> Result<(), Fault> {
        let expected = self.columns.len();
        let found = split(self.delimiter, line, expected, cells)?;
        if found == expected {
            Ok(())
        } else {
            Err(wrong_columns(line.len(), &expected.to_string(), found))
        }
    }
}

fn header_columns(delimiter: u8, header: &[u8]) -> Result<Vec<String>, String> {
    let line = header.strip_prefix(BYTE_ORDER_MARK).unwrap_or(header);
    if line.is_empty() {
        return Err("the file has no header line".to_owned());
    }
    let most = line.len() + 1;
    let mut cells = Cells::new(most, Keys::new(&[]));
    let count = split(delimiter, line, most, &mut cells).map_err(|fault| fault.reason)?;
    let view = crate::fields::CellView {
        cells: &cells,
        line,
        sides: &[],
    };
    let mut columns = Vec::with_capacity(count);
    for column in 0..count as u32 {
        let name = crate::fields::Fields::first(&view, column).map_or(&b""[..], |cursor| {
            crate::fields::Fields::value(&view, cursor).bytes
        });
        columns.push(String::from_utf8_lossy(name).trim().to_owned());
    }
    check_columns(&columns).map_err(|reason| format!("the header {reason}"))?;
    Ok(columns)
}

/// Pushes the first `most` fields; the number of all.
fn split(delimiter: u8, line: &[u8], most: usize, cells: &mut Cells) -> Result<usize, Fault> {
    let mut start = 0;
    let mut column = 0;
    loop {
        let is_wanted = column < most;
        let end = if line.get(start) == Some(&b'"') {
            quoted(delimiter, line, start, is_wanted.then_some(column as u32), cells)?
        } else {
            let end = memchr::memchr(delimiter, &line[start..]).map_or(line.len(), |at| start + at);
            if is_wanted {
                cells.push_line(column as u32, start, end);
            }
            end
        };
        column += 1;
        if end == line.len() {
            return Ok(column);
        }
        start = end + 1;
    }
}

/// A quoted field that starts at `open`; where the field ends.
fn quoted(
    delimiter: u8,
    line: &[u8],
    open: usize,
    column: Option<u32>,
    cells: &mut Cells,
) -> Result<usize, Fault> {
    let mut from = open + 1;
    let kept = cells.scratch.len();
    loop {
        let Some(at) = memchr::memchr(b'"', &line[from..]).map(|at| from + at) else {
            return Err(Fault::new(
                open,
                "quote is not closed on its line (line ends inside quotes are not supported)",
            ));
        };
        cells.scratch.extend_from_slice(&line[from..at]);
        match line.get(at + 1) {
            Some(b'"') => {
                cells.scratch.push(b'"');
                from = at + 2;
            }
            next if next.is_none() || next == Some(&delimiter) => {
                if let Some(column) = column {
                    cells.push(column, Source::Scratch, kept, cells.scratch.len(), open);
                }
                return Ok(at + 1);
            }
            _ => return Err(Fault::new(at + 1, "text after a closing quote")),
        }
    }
}
