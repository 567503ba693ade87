//! Rows that are no longer numbers: found before they are saved, and named.

use crate::bucket::Bucket;
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
        Err(self.not_finite(bucket.sign(row), floats))
    }

    #[cold]
    fn not_finite(&self, sign: u64, floats: &[f32]) -> Error {
        let place = floats.iter().position(|float| !float.is_finite()).unwrap_or(0);
        let first_state = self.layout.statistics_len;
        let first_weight = first_state + self.layout.state_len;
        let what = if place < first_state {
            "a count".to_owned()
        } else if place < first_weight {
            "its optimizer state".to_owned()
        } else {
            format!("weight {}", place - first_weight)
        };
        Error::NotFinite {
            table: self.config.spec.name.clone(),
            sign,
            what,
            value: floats[place],
        }
    }
}
