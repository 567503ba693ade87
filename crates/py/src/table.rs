//! Tables, as Python sees them: signs and arrays in, arrays out, one lock a table held for one call.

#![expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clickmill_table::{Buffers, Rate, Share, TableConfig};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Array, Array1, Array2, Reads1, Reads2};
use crate::batch::Batch;
use crate::errors;
use crate::lookup::{Located, Lookup, Source};

/// Rows by sign, with their optimizer; may be used from several threads.
///
/// Letters in shapes: U unique signs, D width of a row.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Table {
    inner: Mutex<clickmill_table::Table>,
    buffers: Buffers,
    dim: usize,
}

impl Table {
    fn wrap(inner: clickmill_table::Table) -> Self {
        Self {
            dim: inner.dim(),
            inner: Mutex::new(inner),
            buffers: Buffers::default(),
        }
    }

    /// Only ever taken detached from the interpreter: a holder may be in the middle of a save.
    ///
    /// Kernels check their arguments before they write: a panic leaves rows whole.
    pub(crate) fn lock(&self) -> MutexGuard<'_, clickmill_table::Table> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs detached from the interpreter, with the table locked.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Send + FnOnce(&mut clickmill_table::Table) -> Result<T, clickmill_table::Error>,
    ) -> PyResult<T> {
        py.detach(|| work(&mut self.lock()))
            .map_err(|error| errors::table(py, &error))
    }

    /// Pulls the rows of `signs`; the one way to a lookup.
    pub(crate) fn look_up(&self, py: Python<'_>, signs: &[u64], train: bool) -> PyResult<Lookup> {
        let inner = self.with(py, |table| {
            if train {
                clickmill_table::Lookup::train(table, signs, &self.buffers)
            } else {
                clickmill_table::Lookup::read(table, signs, &self.buffers)
            }
        })?;
        Ok(Lookup { inner, source: None })
    }
}

#[pymethods]
impl Table {
    #[new]
    fn new(py: Python<'_>, config_json: &str) -> PyResult<Self> {
        TableConfig::from_json(config_json)
            .and_then(clickmill_table::Table::new)
            .map(Self::wrap)
            .map_err(|error| errors::table(py, &error))
    }

    /// The configuration with every default, as JSON.
    fn config(&self, py: Python<'_>) -> String {
        py.detach(|| self.lock().config().to_json())
    }

    #[getter]
    fn dim(&self) -> usize {
        self.dim
    }

    /// Whether rows keep counts of shows and clicks.
    #[getter]
    fn has_statistics(&self, py: Python<'_>) -> bool {
        py.detach(|| self.lock().config().has_statistics())
    }

    #[getter]
    fn step(&self, py: Python<'_>) -> u32 {
        py.detach(|| self.lock().step())
    }

    /// Rows in the table.
    fn rows(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().len())
    }

    /// Bytes of memory for rows, index and admission.
    fn bytes(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().bytes())
    }

    /// Training is now in `step`; steps count from 1 and never go back.
    fn begin_step(&self, py: Python<'_>, step: u64) -> PyResult<()> {
        self.with(py, |table| table.begin_step(step))
    }

    /// Pulls the rows of unique `signs` [U]. With `train`, admitted signs get a row and `apply` is possible.
    #[pyo3(signature = (signs, train))]
    fn lookup(&self, py: Python<'_>, signs: Reads1<'_, u64>, train: bool) -> PyResult<Lookup> {
        self.look_up(py, signs.as_slice()?, train)
    }

    /// Pulls the rows of the distinct signs of a group of `batch`; the lookup then speaks of that batch.
    #[pyo3(signature = (batch, group, train))]
    fn lookup_batch(&self, py: Python<'_>, batch: &Batch, group: usize, train: bool) -> PyResult<Lookup> {
        let signs = &batch.group(group)?.unique;
        let mut lookup = self.look_up(py, signs, train)?;
        lookup.source = Some(Source {
            batch: Arc::clone(&batch.inner),
            group,
        });
        Ok(lookup)
    }

    /// Finds the rows of a group of `batch` for training, and makes those that are admitted, without reading.
    fn locate_batch(&self, py: Python<'_>, batch: &Batch, group: usize) -> PyResult<Located> {
        let signs = &batch.group(group)?.unique;
        let located = self.with(py, |table| {
            clickmill_table::Located::new(table, signs, &self.buffers)
        })?;
        let source = Source {
            batch: Arc::clone(&batch.inner),
            group,
        };
        Ok(Located {
            inner: Mutex::new(Some((located, Some(source)))),
        })
    }

    /// Finds the rows of unique `signs` [U] for training, and makes those that are admitted, without reading.
    fn locate(&self, py: Python<'_>, signs: Reads1<'_, u64>) -> PyResult<Located> {
        let signs = signs.as_slice()?;
        let located = self.with(py, |table| {
            clickmill_table::Located::new(table, signs, &self.buffers)
        })?;
        Ok(Located {
            inner: Mutex::new(Some((located, None))),
        })
    }

    /// Reads the rows of `located` as they are now; once.
    fn fill(&self, py: Python<'_>, located: &Located) -> PyResult<Lookup> {
        let taken = located
            .inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some((located, source)) = taken else {
            return Err(PyValueError::new_err("these rows have been read before"));
        };
        let inner = self.with(py, |table| located.fill(table))?;
        Ok(Lookup { inner, source })
    }

    /// Applies the gradients gathered in `lookup`, each multiplied by `scale`; once a lookup.
    #[pyo3(signature = (lookup, learning_rate, scale = 1.0))]
    fn apply(&self, py: Python<'_>, lookup: &Lookup, learning_rate: f32, scale: f32) -> PyResult<()> {
        let rate = Rate { learning_rate, scale };
        self.with(py, |table| table.apply(&lookup.inner, rate))
    }

    /// Weights [U,D] of `signs`; with `train`, admitted signs get a row.
    #[pyo3(signature = (signs, train))]
    fn pull<'py>(&self, py: Python<'py>, signs: Reads1<'_, u64>, train: bool) -> PyResult<Array2<'py, f32>> {
        let signs = signs.as_slice()?;
        let mut values = vec![0.0; signs.len() * self.dim];
        self.with(py, |table| {
            if train {
                table.pull(signs, &mut values)
            } else {
                table.peek(signs, &mut values)
            }
        })?;
        PyArray1::from_vec(py, values)
            .reshape([signs.len(), self.dim])
            .map(Array)
    }

    /// Weights [U,D] of `signs`, without any effect on the table.
    fn peek<'py>(&self, py: Python<'py>, signs: Reads1<'_, u64>) -> PyResult<Array2<'py, f32>> {
        self.pull(py, signs, false)
    }

    /// Applies gradients [U,D] to the rows of `signs`; signs without a row are dropped and counted.
    #[pyo3(signature = (signs, gradients, learning_rate, shows = None, clicks = None, scale = 1.0))]
    #[expect(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn push(
        &self,
        py: Python<'_>,
        signs: Reads1<'_, u64>,
        gradients: Reads2<'_, f32>,
        learning_rate: f32,
        shows: Option<Reads1<'_, f32>>,
        clicks: Option<Reads1<'_, f32>>,
        scale: f32,
    ) -> PyResult<()> {
        let (signs, gradients) = (signs.as_slice()?, gradients.as_slice()?);
        let shows = shows.as_ref().map_or(Ok(&[][..]), |shows| shows.as_slice())?;
        let clicks = clicks.as_ref().map_or(Ok(&[][..]), |clicks| clicks.as_slice())?;
        let rate = Rate { learning_rate, scale };
        self.with(py, |table| table.push(signs, gradients, shows, clicks, rate))
    }

    /// Applies the eviction rules at a fence; gives a report as JSON.
    ///
    /// Lookups made before can no longer be applied if any row went.
    fn evict(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, clickmill_table::Table::evict)
            .map(|report| json(&report))
    }

    /// Writes the table to `path`, atomically; with `base`, the id of the last save, only what changed.
    ///
    /// Gives a report as JSON; its `id` is what the next increment builds on. A row that is not finite is a
    /// `DivergedError` that names it, and nothing is written.
    #[pyo3(signature = (path, base = None))]
    fn save(&self, py: Python<'_>, path: PathBuf, base: Option<&str>) -> PyResult<String> {
        self.with(py, |table| table.save(&path, base))
            .map(|report| json(&report))
    }

    /// Reads a full save and the increments that follow it, in order.
    ///
    /// `config_json` replaces the stored configuration; what shapes a row must stay. `share`, an index and a
    /// count, takes only the rows that `split_signs` gives to that index.
    #[staticmethod]
    #[pyo3(signature = (paths, config_json = None, share = None))]
    fn load(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        config_json: Option<&str>,
        share: Option<(usize, usize)>,
    ) -> PyResult<Self> {
        py.detach(|| {
            let config = config_json.map(TableConfig::from_json).transpose()?;
            match share_of(share)? {
                Some(share) => {
                    clickmill_table::Table::load_parts(&[paths], config.as_ref(), |sign| share.holds(sign))
                }
                None => clickmill_table::Table::load(&paths, config),
            }
        })
        .map(Self::wrap)
        .map_err(|error| errors::table(py, &error))
    }

    /// Puts a table together from the parts that servers have saved; each chain is what `load` takes.
    #[staticmethod]
    #[pyo3(signature = (chains, config_json = None))]
    fn load_parts(py: Python<'_>, chains: Vec<Vec<PathBuf>>, config_json: Option<&str>) -> PyResult<Self> {
        py.detach(|| {
            let config = config_json.map(TableConfig::from_json).transpose()?;
            clickmill_table::Table::load_parts(&chains, config.as_ref(), |_| true)
        })
        .map(Self::wrap)
        .map_err(|error| errors::table(py, &error))
    }

    /// A table of `config_json` with the weights of a save; its optimizer starts anew and may be another.
    ///
    /// `learning_rate` is the one that training starts with; `share` is as for `load`.
    #[staticmethod]
    #[pyo3(signature = (paths, config_json, learning_rate, share = None))]
    fn load_weights(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        config_json: &str,
        learning_rate: f32,
        share: Option<(usize, usize)>,
    ) -> PyResult<Self> {
        py.detach(|| {
            let config = TableConfig::from_json(config_json)?;
            let share = share_of(share)?;
            let keep = |sign| share.is_none_or(|share| share.holds(sign));
            clickmill_table::Table::load_weights(&paths, config, learning_rate, keep)
        })
        .map(Self::wrap)
        .map_err(|error| errors::table(py, &error))
    }

    /// `DivergedError` that names the first row with a NaN or an infinite number in it.
    fn check_finite(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock().check_finite())
            .map_err(|error| errors::table(py, &error))
    }

    /// Hexadecimal digest of all rows and counters, equal for equal tables whatever their buckets.
    fn digest(&self, py: Python<'_>) -> String {
        py.detach(|| self.lock().digest())
    }

    /// Rows, bytes, counters and a memory forecast, as JSON.
    fn stats(&self, py: Python<'_>) -> String {
        json(&py.detach(|| self.lock().stats()))
    }

    /// Bytes that this table would need for `rows` rows, all told.
    fn forecast_bytes(&self, py: Python<'_>, rows: u64) -> u64 {
        py.detach(|| self.lock().forecast_bytes(rows))
    }
}

fn share_of(share: Option<(usize, usize)>) -> Result<Option<Share>, clickmill_table::Error> {
    share.map(|(index, count)| Share::new(index, count)).transpose()
}

/// Positions [U] of `signs` by owner, in the order that they had, and how many each of `count` owners has.
#[pyfunction]
pub(crate) fn split_signs<'py>(
    py: Python<'py>,
    signs: Reads1<'_, u64>,
    count: usize,
) -> PyResult<(Array1<'py, u32>, Array1<'py, u32>)> {
    let signs = signs.as_slice()?;
    let (order, counts) = py
        .detach(|| clickmill_table::split(signs, count))
        .map_err(|error| errors::table(py, &error))?;
    Ok((
        Array(PyArray1::from_vec(py, order)),
        Array(PyArray1::from_vec(py, counts)),
    ))
}

/// The distinct signs of `signs` in order of first occurrence, and for each sign its position among them.
#[pyfunction]
pub(crate) fn unite_signs<'py>(
    py: Python<'py>,
    signs: Reads1<'_, u64>,
) -> PyResult<(Array1<'py, u64>, Array1<'py, u32>)> {
    let signs = signs.as_slice()?;
    let (unique, inverse) = py.detach(|| {
        let (mut unique, mut inverse) = (Vec::new(), Vec::new());
        clickmill_samples::Dedup::new().push(signs, &mut unique, &mut inverse);
        (unique, inverse)
    });
    Ok((
        Array(PyArray1::from_vec(py, unique)),
        Array(PyArray1::from_vec(py, inverse)),
    ))
}

/// Writes to `out`, atomically, one full save of the rows of `parts`, the saves of the shares of a table.
#[pyfunction]
pub(crate) fn join_saves(py: Python<'_>, parts: Vec<PathBuf>, out: PathBuf) -> PyResult<String> {
    py.detach(|| clickmill_table::join_saves(&parts, &out))
        .map(|report| json(&report))
        .map_err(|error| errors::table(py, &error))
}

fn json(report: &impl serde::Serialize) -> String {
    serde_json::to_string(report).expect("reports hold only numbers and strings")
}
