//! Show-click text: `show click feasign:slot feasign:slot …`.

use super::slots::words;
use crate::bad::{Fault, shown};
use crate::fields::Cells;
use crate::number::parse_u64;

pub(super) const COLUMNS: [&str; 2] = ["show", "click"];

pub(super) fn cells(line: &[u8], cells: &mut Cells) -> Result<(), Fault> {
    let mut words = words(line);
    for (column, name) in COLUMNS.iter().enumerate() {
        let Some((start, word)) = words.next() else {
            return Err(Fault::new(line.len(), format!("`{name}` is missing")));
        };
        if parse_u64(word).is_none() {
            return Err(Fault::new(
                start,
                format!("{name}: {} is not a count", shown(word)),
            ));
        }
        cells.push_line(column as u32, start, start + word.len());
    }
    for (start, word) in words {
        let Some(colon) = memchr::memrchr(b':', word).filter(|&at| at > 0 && at + 1 < word.len()) else {
            return Err(Fault::new(
                start,
                format!("{} is not of the form `feasign:slot`", shown(word)),
            ));
        };
        match cells.column_of(&word[colon + 1..]) {
            Some(column) if (column as usize) < COLUMNS.len() => {
                let reason = format!(
                    "{} is no slot: it is a column of its own",
                    shown(&word[colon + 1..])
                );
                return Err(Fault::new(start + colon + 1, reason));
            }
            Some(column) => cells.push_line(column, start, start + colon),
            None => {}
        }
    }
    Ok(())
}
