//! The reader of text files, as Python sees it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use clickmill_samples::{Position, ReaderConfig};
use pyo3::prelude::*;

use crate::arrivals::Arrivals;
use crate::batch::Batch;
use crate::errors;
use crate::schema::Schema;

/// Between two looks for signals, while a batch is waited for: files may take long to come.
const LOOK: Duration = Duration::from_millis(100);

/// Batches of one pass over text files; see docs/formats/samples.md for the configuration.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Reader {
    inner: Mutex<clickmill_samples::Reader>,
}

impl Reader {
    fn lock(&self) -> MutexGuard<'_, clickmill_samples::Reader> {
        // A reader is consistent between calls, even after a panic in one.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Reader {
    #[new]
    #[pyo3(signature = (schema, config_json, position_json=None, arrivals=None))]
    fn new(
        py: Python<'_>,
        schema: &Schema,
        config_json: &str,
        position_json: Option<&str>,
        arrivals: Option<&Arrivals>,
    ) -> PyResult<Self> {
        let arrivals = arrivals.map(|arrivals| &arrivals.inner);
        let schema = std::sync::Arc::clone(&schema.inner);
        let reader = py.detach(|| {
            let config = ReaderConfig::from_json(config_json)?;
            let position = position_json.map(Position::from_json).transpose()?;
            clickmill_samples::Reader::open_arriving(&schema, &config, position.as_ref(), arrivals)
        });
        Ok(Self {
            inner: Mutex::new(reader.map_err(|error| errors::samples(py, &error))?),
        })
    }

    /// The next batch, waiting for it; None at the end of the pass.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        loop {
            let next = py.detach(|| self.lock().next_within(LOOK));
            match next.map_err(|error| errors::samples(py, &error))? {
                Poll::Ready(batch) => return Ok(batch.map(Batch::new)),
                Poll::Pending => py.check_signals()?,
            }
        }
    }

    /// Slots whose columns have not occurred up to the last batch; empty for formats of fixed columns.
    fn absent_slots(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| {
            self.lock()
                .absent_slots()
                .into_iter()
                .map(str::to_owned)
                .collect()
        })
    }

    /// JSON: `{"count": n, "first": [{"file", "line", "column", "reason"}, …]}`.
    fn bad_lines(&self, py: Python<'_>) -> String {
        let bad = py.detach(|| self.lock().bad_lines().clone());
        serde_json::to_string(&bad).expect("a log of bad lines holds only strings and numbers")
    }

    /// Bytes of the files behind the last batch, and of all.
    fn progress(&self, py: Python<'_>) -> (u64, u64) {
        py.detach(|| self.lock().progress())
    }

    /// Stops the threads; `next` gives None from now on.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.lock().close());
    }
}
