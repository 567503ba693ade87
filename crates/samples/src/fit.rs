//! Mean and standard deviation of the slots that are to be standardised, measured on the data.

use std::sync::Arc;

use clickmill_types::Schema;
use clickmill_types::schema::{DenseTransform, Slot};

use crate::Error;
use crate::arrivals::Arrivals;
use crate::config::{ReaderConfig, Shuffle};
use crate::plan::is_unfitted;
use crate::reader::Reader;

/// Running mean and sum of squared differences (Welford), in f64.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    pub(crate) count: u64,
    pub(crate) mean: f64,
    squares: f64,
}

impl Moments {
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (value - self.mean);
    }

    /// Of the whole population, not of a sample of it.
    pub(crate) fn std(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            (self.squares / self.count as f64).sqrt()
        }
    }
}

/// The schema with mean and std of every unfitted slot, from one pass over the files.
///
/// Missing values do not count. A constant slot gets std 1, so that it becomes 0 and not an error.
pub fn fit_standardise(
    schema: &Schema,
    config: &ReaderConfig,
    arrivals: Option<&Arc<Arrivals>>,
) -> Result<Schema, Error> {
    let mut fitted = schema.clone();
    if !fitted
        .slots
        .iter()
        .any(|slot| matches!(slot, Slot::Dense(dense) if is_unfitted(&dense.transform)))
    {
        return Ok(fitted);
    }
    let moments = measure(schema, config, arrivals)?;
    let mut measured = moments.into_iter();
    for slot in &mut fitted.slots {
        let Slot::Dense(dense) = slot else { continue };
        if !is_unfitted(&dense.transform) {
            continue;
        }
        let columns: Vec<Moments> = measured.by_ref().take(dense.width as usize).collect();
        if columns.iter().any(|moments| moments.count == 0) {
            return Err(Error::slot(
                &dense.name,
                "has no value in the data: nothing to standardise by",
            ));
        }
        dense.transform = DenseTransform::Standardise {
            mean: columns.iter().map(|moments| moments.mean as f32).collect(),
            std: columns
                .iter()
                .map(|moments| match moments.std() as f32 {
                    std if std > 0.0 && std.is_finite() => std,
                    _ => 1.0,
                })
                .collect(),
        };
    }
    fitted.check()?;
    Ok(fitted)
}

/// Moments of every element of the unfitted slots, in slot order.
fn measure(
    schema: &Schema,
    config: &ReaderConfig,
    arrivals: Option<&Arc<Arrivals>>,
) -> Result<Vec<Moments>, Error> {
    // Only the slots in question are read, as they stand; a value that no data has marks the missing ones.
    const MISSING: f32 = f32::MIN;
    let mut raw = schema.clone();
    raw.slots.retain_mut(|slot| match slot {
        Slot::Dense(dense) if is_unfitted(&dense.transform) => {
            dense.transform = DenseTransform::Identity;
            dense.default = MISSING;
            true
        }
        Slot::Sparse(_) | Slot::Dense(_) | Slot::Label(_) | Slot::Weight(_) | Slot::Group(_) => false,
    });
    let width = raw.num_dense();
    let mut config = config.clone();
    config.shuffle = Shuffle::None;
    config.keep_last = true;
    let mut reader = Reader::open_arriving(&Arc::new(raw), &config, None, arrivals)?;
    let mut moments = vec![Moments::default(); width];
    while let Some(batch) = reader.next()? {
        for row in batch.dense.chunks_exact(width) {
            for (moments, &value) in moments.iter_mut().zip(row) {
                if value > MISSING {
                    moments.add(f64::from(value));
                }
            }
        }
    }
    Ok(moments)
}
