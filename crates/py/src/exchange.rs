//! Training on copies of what servers hold, as Python sees it.

#![expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use clickmill_remote::{Departure, Learnt};
use clickmill_table::dense::DenseOptimizer as Optimizer;
use numpy::{PyArrayMethods, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::Array1;
use crate::batch::Batch;
use crate::dense::DenseOptimizer;
use crate::errors;
use crate::lookup::Lookup;
use crate::push::Push;
use crate::remote::Session;
use crate::table::Table;

/// Rows that are moved in one go: some milliseconds of work.
const PIECE_ROWS: usize = 1 << 14;

/// Tables and dense parameters of a trainer that are copies of what the servers of a session hold.
///
/// The trainer trains them as its own; now and then it exchanges what they have learnt for what other trainers have:
/// `depart` takes it down, `deliver` sends it and moves rows by the answer while training may go on, `arrive` moves
/// the dense part. Rows that are not here yet are brought by `fetch`, before a batch is located.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Exchange {
    reading: Py<Session>,
    sending: Py<Session>,
    tables: Vec<Py<Table>>,
    optimizer: Py<DenseOptimizer>,
    inner: Mutex<clickmill_remote::Exchange>,
    departure: Mutex<Option<Departure>>,
    /// The dense part of an answer.
    arrived: Mutex<Option<Vec<f32>>>,
    /// Updates that the servers had applied at the start.
    #[pyo3(get)]
    first_step: u64,
}

#[pymethods]
impl Exchange {
    /// Begins with what the servers hold: writes the dense part to `parameters` and its state to `optimizer`.
    ///
    /// `tables` are empty, in the order of their numbers; `trainers` is how many share the work. Rows are brought
    /// with the session `reading` while what was learnt is on its way with `sending`.
    #[new]
    fn new(
        py: Python<'_>,
        reading: Py<Session>,
        sending: Py<Session>,
        tables: Vec<Py<Table>>,
        optimizer: Py<DenseOptimizer>,
        parameters: Vec<Array1<'_, f32>>,
        trainers: u32,
    ) -> PyResult<Self> {
        if trainers == 0 {
            return Err(PyValueError::new_err("there is at least one trainer"));
        }
        let share = 1.0 / trainers as f32;
        let mut arrays = writable(&parameters)?;
        let mut parameters = slices(&mut arrays)?;
        let (session_in, optimizer_in) = (reading.get(), optimizer.get());
        let locked: Vec<&Table> = tables.iter().map(Py::get).collect();
        let (inner, first_step) = py
            .detach(|| {
                let guards: Vec<_> = locked.iter().map(|table| table.lock()).collect();
                let (inner, joined) = clickmill_remote::Exchange::join(
                    &session_in.inner,
                    guards.iter().map(|guard| &**guard),
                    share,
                )?;
                let steps = (joined.step as f64 * f64::from(share)).round() as u64;
                let mut optimizer = optimizer_in.lock();
                let states = by_parameter(&joined.states, optimizer.sizes());
                optimizer.load(steps, states)?;
                let mut left = joined.values.as_slice();
                for parameter in &mut parameters {
                    let (own, rest) = left.split_at(parameter.len());
                    parameter.copy_from_slice(own);
                    left = rest;
                }
                Ok((inner, joined.step))
            })
            .map_err(|error| errors::remote(py, &error))?;
        drop(locked);
        Ok(Self {
            reading,
            sending,
            tables,
            optimizer,
            inner: Mutex::new(inner),
            departure: Mutex::default(),
            arrived: Mutex::default(),
            first_step,
        })
    }

    /// Brings the rows of a batch that are not here yet; `feeds` are groups of the batch and table numbers.
    ///
    /// None where all are here; else the updates that the servers have applied and the fence that is wanted.
    fn fetch(
        &self,
        py: Python<'_>,
        batch: &Batch,
        feeds: Vec<(usize, usize)>,
    ) -> PyResult<Option<(u64, u64)>> {
        let wanted = feeds
            .iter()
            .map(|&(group, table)| Ok((table, batch.group(group)?.unique.as_slice())))
            .collect::<PyResult<Vec<(usize, &[u64])>>>()?;
        let missing = self.with(py, |inner, tables| inner.missing(tables, &wanted))?;
        if missing.is_empty() {
            return Ok(None);
        }
        // Nothing is locked here: rows are updated meanwhile.
        let session = self.reading.get();
        let answer = py
            .detach(|| clickmill_remote::fetch(&session.inner, &missing))
            .map_err(|error| errors::remote(py, &error))?;
        self.with(py, |inner, tables| inner.learn(tables, &missing, &answer.rows))?;
        Ok(Some((answer.step, answer.fence)))
    }

    /// The rows of `lookups` are about to be trained on; `numbers` are those of their tables.
    fn touch(&self, py: Python<'_>, numbers: Vec<usize>, lookups: Vec<PyRef<'_, Lookup>>) -> PyResult<()> {
        let lookups: Vec<&clickmill_table::Lookup> = lookups.iter().map(|lookup| &lookup.inner).collect();
        self.with(py, |inner, tables| {
            for (&number, lookup) in numbers.iter().zip(lookups) {
                inner.touch(number, tables[number], lookup)?;
            }
            Ok(())
        })
    }

    /// Whether so much was touched that it should not wait for the next exchange.
    #[getter]
    fn is_full(&self) -> bool {
        self.lock().is_full()
    }

    /// Takes down what was learnt in `batches` batches, to be delivered.
    ///
    /// `push` has entry and scores, and no gradients. Without `is_answered` the servers are only told; what they hold
    /// is asked for with the next exchange.
    fn depart(
        &self,
        py: Python<'_>,
        push: &Push,
        batches: u32,
        parameters: Vec<Array1<'_, f32>>,
        is_answered: bool,
    ) -> PyResult<()> {
        let push = push.take()?;
        let mut arrays = writable(&parameters)?;
        let parameters = slices(&mut arrays)?;
        let (session, optimizer) = (self.sending.get(), self.optimizer.get());
        let departure = self.with(py, |inner, tables| {
            let learnt = Learnt {
                batches,
                tables,
                parameters: &parameters,
                states: by_kind(&optimizer.lock()),
            };
            inner.depart(&session.inner, push, learnt, is_answered)
        })?;
        *lock(&self.departure) = Some(departure);
        Ok(())
    }

    /// Sends what has departed, waits until it is applied, and moves the rows by the answer. From any thread.
    ///
    /// Gives the updates that the servers have applied and the fence that is wanted.
    fn deliver(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let departure = lock(&self.departure)
            .take()
            .ok_or_else(|| PyValueError::new_err("nothing has departed"))?;
        let session = self.sending.get();
        let tables: Vec<&Table> = self.tables.iter().map(Py::get).collect();
        py.detach(|| {
            let answer = departure.deliver(&session.inner)?;
            for (number, rows) in answer.rows.into_iter().enumerate() {
                let (mut values, width) = (rows.values, self.lock().width(number));
                // Training waits for a piece of them, not for all.
                for piece in values.chunks_mut(PIECE_ROWS * width) {
                    let mut table = tables[number].lock();
                    self.lock().settle(number, &mut table, piece)?;
                }
            }
            if !answer.dense.is_empty() {
                *lock(&self.arrived) = Some(answer.dense.concat());
            }
            Ok((answer.step, answer.fence))
        })
        .map_err(|error| errors::remote(py, &error))
    }

    /// Moves dense parameters by the answer to what was delivered, where there was one.
    fn arrive(&self, parameters: Vec<Array1<'_, f32>>) -> PyResult<()> {
        let Some(values) = lock(&self.arrived).take() else {
            return Ok(());
        };
        let mut arrays = writable(&parameters)?;
        self.lock().settle_dense(values, &mut slices(&mut arrays)?);
        Ok(())
    }
}

impl Exchange {
    fn lock(&self) -> MutexGuard<'_, clickmill_remote::Exchange> {
        lock(&self.inner)
    }

    /// Runs detached from the interpreter, with all tables locked.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Send
        + FnOnce(
            &mut clickmill_remote::Exchange,
            &mut [&mut clickmill_table::Table],
        ) -> Result<T, clickmill_remote::Error>,
    ) -> PyResult<T> {
        let tables: Vec<&Table> = self.tables.iter().map(Py::get).collect();
        py.detach(|| {
            let mut guards: Vec<_> = tables.iter().map(|table| table.lock()).collect();
            let mut tables: Vec<_> = guards.iter_mut().map(|guard| &mut **guard).collect();
            work(&mut self.lock(), &mut tables)
        })
        .map_err(|error| errors::remote(py, &error))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn writable<'py>(parameters: &[Array1<'py, f32>]) -> PyResult<Vec<PyReadwriteArray1<'py, f32>>> {
    let arrays = parameters.iter().map(|array| Ok(array.try_readwrite()?));
    arrays.collect()
}

fn slices<'a>(arrays: &'a mut [PyReadwriteArray1<'_, f32>]) -> PyResult<Vec<&'a mut [f32]>> {
    let slices = arrays.iter_mut().map(|array| Ok(array.as_slice_mut()?));
    slices.collect()
}

/// From states by parameter and kind to one array a kind, parameters one behind the other.
fn by_kind(optimizer: &Optimizer) -> Vec<Vec<f32>> {
    let kinds = optimizer.states().len() / optimizer.sizes().len().max(1);
    (0..kinds)
        .map(|kind| {
            let states = optimizer.states().iter().skip(kind).step_by(kinds);
            states.flatten().copied().collect()
        })
        .collect()
}

/// The other way round.
fn by_parameter(kinds: &[Vec<f32>], sizes: &[usize]) -> Vec<Vec<f32>> {
    let mut begin = 0;
    let mut states = Vec::with_capacity(kinds.len() * sizes.len());
    for &size in sizes {
        states.extend(kinds.iter().map(|kind| kind[begin..begin + size].to_vec()));
        begin += size;
    }
    states
}
