//! Rows that are no longer numbers: found before they are saved, and named.

use crate::bucket::Bucket;
use crate::layout::{HEAD_BYTES, Layout};
use crate::{Error, Table};

impl Table {
    /// An error that names the first row with a NaN or an infinite number in it.
    pub fn check_finite(&self) -> Result<(), Error> {
        for bucket in &self.buckets {
            for row in 0..bucket.len() {
                self.check_row(bucket, row)?;
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn check_row(&self, bucket: &Bucket, row: u32) -> Result<(), Error> {
        let floats = bucket.floats(row);
        // Without an early exit the numbers are looked at several at once: nearly all rows are sound.
        if floats
            .iter()
            .fold(true, |is_finite, float| is_finite & float.is_finite())
        {
            return Ok(());
        }
        Err(not_finite(
            &self.config.spec.name,
            self.layout,
            bucket.sign(row),
            floats,
        ))
    }
}

/// As `Table::check_finite`, for whole rows of a table `name` as they are in a file.
pub(crate) fn check_bytes(name: &str, layout: Layout, rows: &[u8]) -> Result<(), Error> {
    for row in rows.chunks_exact(layout.row_bytes()) {
        let (head, floats) = row.split_at(HEAD_BYTES);
        let floats = floats
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes));
        if !floats
            .clone()
            .fold(true, |is_finite, float| is_finite & float.is_finite())
        {
            let sign = u64::from_le_bytes(std::array::from_fn(|at| head[at]));
            return Err(not_finite(name, layout, sign, &floats.collect::<Vec<_>>()));
        }
    }
    Ok(())
}

#[cold]
fn not_finite(name: &str, layout: Layout, sign: u64, floats: &[f32]) -> Error {
    let place = floats.iter().position(|float| !float.is_finite()).unwrap_or(0);
    let first_state = layout.statistics_len;
    let first_weight = first_state + layout.state_len;
    let what = if place < first_state {
        "a count".to_owned()
    } else if place < first_weight {
        "its optimizer state".to_owned()
    } else {
        format!("weight {}", place - first_weight)
    };
    Error::NotFinite {
        table: name.to_owned(),
        sign,
        what,
        value: floats[place],
    }
}
