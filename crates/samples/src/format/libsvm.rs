//! libsvm: `label index:value …`, `qid:n` behind the label, `#` starts a comment.

use super::slots::words;
use crate::bad::{Fault, shown};
use crate::fields::Cells;
use crate::number;

/// `features` has every index of the line as a value; an index by its number has its value.
pub(super) const COLUMNS: [&str; 3] = ["label", "features", "qid"];
const LABEL: u32 = 0;
const FEATURES: u32 = 1;
const QID: u32 = 2;

pub(super) fn cells(line: &[u8], refuses_values: bool, cells: &mut Cells) -> Result<(), Fault> {
    let text = &line[..memchr::memchr(b'#', line).unwrap_or(line.len())];
    let mut words = words(text);
    let Some((start, label)) = words.next() else {
        return Err(Fault::new(0, "label is missing"));
    };
    if label.contains(&b':') {
        return Err(Fault::new(
            start,
            format!("label is missing: the line starts with {}", shown(label)),
        ));
    }
    cells.push_line(LABEL, start, start + label.len());
    for (start, word) in words {
        let Some(colon) = memchr::memchr(b':', word).filter(|&at| at > 0) else {
            return Err(Fault::new(
                start,
                format!("{} is not of the form `index:value`", shown(word)),
            ));
        };
        let (index, value) = (&word[..colon], start + colon + 1..start + word.len());
        if index == b"qid" {
            cells.push_line(QID, value.start, value.end);
            continue;
        }
        if number::parse_u64(index).is_none() {
            return Err(Fault::new(
                start,
                format!("index {} is not a number", shown(index)),
            ));
        }
        if let Some(column) = cells.column_of(index) {
            cells.push_line(column, value.start, value.end);
        } else if refuses_values && number::parse(&text[value.clone()]) != Ok(1.0) {
            let reason = format!(
                "index {}: value {} is not 1; `values: ignore` drops the values of `features`",
                shown(index),
                shown(&text[value.clone()])
            );
            return Err(Fault::new(value.start, reason));
        }
        cells.push_line(FEATURES, start, start + colon);
    }
    Ok(())
}
