//! Fields between a delimiter of any length, without header.

use std::collections::HashSet;

use super::{Format, Split, wrong_columns};
use crate::Error;
use crate::bad::Fault;
use crate::fields::Cells;

#[derive(Clone, Debug)]
pub(crate) struct Delimited {
    finder: memchr::memmem::Finder<'static>,
    pub(crate) columns: Vec<String>,
}

/// Columns need distinct names, and there must be one.
pub(super) fn check_columns(columns: &[String]) -> Result<(), String> {
    let mut names = HashSet::new();
    if columns.is_empty() {
        return Err("names no column".to_owned());
    }
    match columns.iter().find(|name| !names.insert(name.as_str())) {
        Some(name) => Err(format!("names column `{name}` twice")),
        None => Ok(()),
    }
}

pub(super) fn open(delimiter: &str, columns: &[String]) -> Result<Format, Error> {
    check_columns(columns).map_err(|reason| Error::config("format: `columns`", reason))?;
    match delimiter.as_bytes() {
        [] => Err(Error::config("format: `delimiter`", "is empty")),
        text if text.contains(&b'\n') => Err(Error::config("format: `delimiter`", "has a line end")),
        [byte] => Ok(Format::Split(Split::new(*byte, columns.to_vec()))),
        text => Ok(Format::Delimited(Delimited {
            finder: memchr::memmem::Finder::new(text).into_owned(),
            columns: columns.to_vec(),
        })),
    }
}

impl Delimited {
    pub(crate) fn cells(&self, line: &[u8], cells: &mut Cells) -> Result<(), Fault> {
        let expected = self.columns.len();
        let mut start = 0;
        let mut column = 0;
        for end in self.finder.find_iter(line).chain([line.len()]) {
            if column < expected {
                cells.push_line(column as u32, start, end);
            }
            column += 1;
            start = end + self.finder.needle().len();
        }
        if column == expected {
            Ok(())
        } else {
            Err(wrong_columns(line.len(), &expected.to_string(), column))
        }
    }
}
