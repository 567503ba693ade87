//! Slot text: `click:0 dense_feature:0.05 1:737395`, in any order, a slot as often as it has values.

use crate::bad::{Fault, shown};
use crate::fields::Cells;

/// Words of a line between blanks and tabs, with their start.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    std::iter::from_fn(move || {
        while matches!(line.get(start), Some(b' ' | b'\t')) {
            start += 1;
        }
        if start >= line.len() {
            return None;
        }
        let end = memchr::memchr2(b' ', b'\t', &line[start..]).map_or(line.len(), |at| start + at);
        let word = (start, &line[start..end]);
        start = end;
        Some(word)
    })
}

pub(super) fn cells(line: &[u8], cells: &mut Cells) -> Result<(), Fault> {
    for (start, word) in words(line) {
        let Some(colon) = memchr::memchr(b':', word).filter(|&at| at > 0) else {
            return Err(Fault::new(
                start,
                format!("{} is not of the form `slot:value`", shown(word)),
            ));
        };
        if let Some(column) = cells.column_of(&word[..colon]) {
            cells.push_line(column, start + colon + 1, start + word.len());
        }
    }
    Ok(())
}
