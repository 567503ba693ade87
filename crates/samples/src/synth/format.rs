//! A row as text: the raw Criteo line, or one of the two forms that other trainers want ready-made.

use std::io::Write as _;

use clickmill_types::sign::{sign, vocabulary_seed};
use serde::{Deserialize, Serialize};

use super::columns::{NUM_DENSE, NUM_SPARSE};
use super::model::Row;

/// Min–max constants of the classic Criteo reader.
const DENSE_LOWEST: [f32; NUM_DENSE] = [0.0, -3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
const DENSE_WIDTH: [f32; NUM_DENSE] = [
    20.0, 603.0, 100.0, 50.0, 64_000.0, 500.0, 100.0, 50.0, 500.0, 10.0, 10.0, 10.0, 50.0,
];
/// Size of the classic shared table.
const HASH_SIZE: u64 = 1_000_001;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Label, I1–I13, C1–C26, separated by tabs.
    #[default]
    Criteo,
    /// `click:0 dense_feature:0.05 … 1:737395 … 26:306163`: numbers scaled, values as sign modulo 1000001.
    Slots,
    /// The same samples as `1 0 13 0.05 … 1 737395 …`: each slot is its length and its values.
    MultiSlot,
}

pub(super) struct Writer {
    format: Format,
    seeds: [u64; NUM_SPARSE],
}

impl Writer {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            seeds: std::array::from_fn(|column| vocabulary_seed(&format!("C{}", column + 1))),
        }
    }

    /// Appends the line of a row to `text`.
    pub(super) fn append(&self, row: &Row, text: &mut Vec<u8>) {
        match self.format {
            Format::Criteo => criteo(row, text),
            Format::Slots => self.slots(row, text),
            Format::MultiSlot => self.multi_slot(row, text),
        }
        text.push(b'\n');
    }

    fn slots(&self, row: &Row, text: &mut Vec<u8>) {
        text.extend_from_slice(if row.clicked { b"click:1" } else { b"click:0" });
        for number in scaled(row) {
            text.extend_from_slice(b" dense_feature:");
            float(number, text);
        }
        for (column, id) in self.ids(row).into_iter().enumerate() {
            text.push(b' ');
            integer(column as u64 + 1, text);
            text.push(b':');
            integer(id, text);
        }
    }

    fn multi_slot(&self, row: &Row, text: &mut Vec<u8>) {
        text.extend_from_slice(if row.clicked { b"1 1 13" } else { b"1 0 13" });
        for number in scaled(row) {
            text.push(b' ');
            float(number, text);
        }
        for id in self.ids(row) {
            text.extend_from_slice(b" 1 ");
            integer(id, text);
        }
    }

    fn ids(&self, row: &Row) -> [u64; NUM_SPARSE] {
        std::array::from_fn(|column| {
            let digits = row.values[column].map(hexadecimal);
            let value: &[u8] = digits.as_ref().map_or(b"", |digits| digits);
            sign(value, self.seeds[column]) % HASH_SIZE
        })
    }
}

fn criteo(row: &Row, text: &mut Vec<u8>) {
    text.push(if row.clicked { b'1' } else { b'0' });
    for number in &row.numbers {
        text.push(b'\t');
        if let Some(number) = *number {
            if number < 0 {
                text.push(b'-');
            }
            integer(number.unsigned_abs(), text);
        }
    }
    for value in &row.values {
        text.push(b'\t');
        if let Some(value) = *value {
            text.extend_from_slice(&hexadecimal(value));
        }
    }
}

fn scaled(row: &Row) -> [f32; NUM_DENSE] {
    std::array::from_fn(|column| {
        row.numbers[column].map_or(0.0, |number| {
            (number as f32 - DENSE_LOWEST[column]) / DENSE_WIDTH[column]
        })
    })
}

fn float(number: f32, text: &mut Vec<u8>) {
    write!(text, "{number}").expect("a vector takes every byte");
}

fn integer(mut number: u64, text: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[start..]);
}

fn hexadecimal(value: u32) -> [u8; 8] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    std::array::from_fn(|place| DIGITS[(value >> (28 - 4 * place)) as usize & 15])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let mut numbers = [Some(5); NUM_DENSE];
        numbers[0] = None;
        numbers[1] = Some(-2);
        let mut values = [Some(0xab); NUM_SPARSE];
        values[25] = None;
        Row {
            numbers,
            values,
            step: 0,
            clicked: true,
        }
    }

    fn line(format: Format) -> String {
        let mut text = Vec::new();
        Writer::new(format).append(&row(), &mut text);
        String::from_utf8(text).expect("the line is ASCII")
    }

    #[test]
    fn a_criteo_line_has_forty_fields_with_empties_and_negatives() {
        let text = line(Format::Criteo);
        let fields: Vec<&str> = text.trim_end_matches('\n').split('\t').collect();
        assert_eq!(fields.len(), 40);
        assert_eq!(
            (fields[0], fields[1], fields[2], fields[14], fields[39]),
            ("1", "", "-2", "000000ab", "")
        );
    }

    #[test]
    fn both_slot_forms_hold_the_same_sample() {
        let slots: Vec<String> = line(Format::Slots)
            .split_whitespace()
            .map(|field| field.split_once(':').expect("name and value").1.to_owned())
            .collect();
        let multi: Vec<String> = line(Format::MultiSlot)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        assert_eq!(multi[0..3], ["1", slots[0].as_str(), "13"]);
        assert_eq!(multi[3..16], slots[1..14]);
        let ids: Vec<&String> = multi[16..].iter().skip(1).step_by(2).collect();
        assert_eq!(ids, slots[14..].iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_value_becomes_the_sign_that_the_trainer_would_give_it() {
        let expected = sign(b"000000ab", vocabulary_seed("C1")) % HASH_SIZE;
        assert!(line(Format::Slots).contains(&format!(" 1:{expected} ")));
    }
}
