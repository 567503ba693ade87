//! Samples from Python objects: records of keys and values, and columns of text.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clickmill_samples::{Position, RecordConfig, TextColumn};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::arrays::Reads1;
use crate::batch::Batch;
use crate::errors;
use crate::schema::Schema;

/// Batches from dicts: `str`, `bytes`, `int`, `float`, `bool`, None, and lists or tuples of these.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct RecordBatcher {
    inner: Mutex<clickmill_samples::RecordBatcher>,
}

/// Batches from columns of text values, laid out as Arrow does.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct ColumnBatcher {
    inner: Mutex<clickmill_samples::RecordBatcher>,
}

fn open(
    py: Python<'_>,
    schema: &Schema,
    config_json: &str,
    position_json: Option<&str>,
) -> PyResult<Mutex<clickmill_samples::RecordBatcher>> {
    let made = || {
        let config = RecordConfig::from_json(config_json)?;
        let position = position_json.map(Position::from_json).transpose()?;
        clickmill_samples::RecordBatcher::new(&Arc::clone(&schema.inner), config, position.as_ref())
    };
    Ok(Mutex::new(made().map_err(|error| errors::samples(py, &error))?))
}

fn lock(inner: &Mutex<clickmill_samples::RecordBatcher>) -> MutexGuard<'_, clickmill_samples::RecordBatcher> {
    // A record is added whole or not at all.
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

fn batches(made: Vec<clickmill_samples::Batch>) -> Vec<Batch> {
    made.into_iter().map(Batch::new).collect()
}

fn finish(py: Python<'_>, inner: &Mutex<clickmill_samples::RecordBatcher>) -> PyResult<Vec<Batch>> {
    let made = py.detach(|| lock(inner).finish());
    made.map(batches).map_err(|error| errors::samples(py, &error))
}

fn absent_slots(inner: &Mutex<clickmill_samples::RecordBatcher>) -> Vec<String> {
    lock(inner)
        .absent_slots()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn bad_lines(py: Python<'_>, inner: &Mutex<clickmill_samples::RecordBatcher>) -> String {
    let bad = py.detach(|| lock(inner).bad_lines().clone());
    serde_json::to_string(&bad).expect("a log of bad lines holds only strings and numbers")
}

/// Writes the text of a value; false where it has none.
fn write_text(value: &Bound<'_, PyAny>, text: &mut Vec<u8>) -> PyResult<bool> {
    if let Ok(value) = value.cast::<PyString>() {
        text.extend_from_slice(value.to_cow()?.as_bytes());
    } else if let Ok(value) = value.cast::<PyBytes>() {
        text.extend_from_slice(value.as_bytes());
    } else if let Ok(value) = value.cast::<PyBool>() {
        text.push(if value.is_true() { b'1' } else { b'0' });
    } else if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        // The shortest text that reads back as the same number.
        text.extend_from_slice(value.str()?.to_cow()?.as_bytes());
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Adds the values of one key; None where one of them is of a type that has no text.
fn push_values(
    batcher: &mut clickmill_samples::RecordBatcher,
    column: usize,
    value: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    if value.is_none() {
        return Ok(true);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        for item in value.try_iter()? {
            let item = item?;
            if !item.is_none() && !push_one(batcher, column, &item)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    push_one(batcher, column, value)
}

fn push_one(
    batcher: &mut clickmill_samples::RecordBatcher,
    column: usize,
    value: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let mut outcome = Ok(false);
    batcher.push(column, |text| outcome = write_text(value, text));
    outcome
}

#[pymethods]
impl RecordBatcher {
    #[new]
    #[pyo3(signature = (schema, config_json, position_json=None))]
    fn new(
        py: Python<'_>,
        schema: &Schema,
        config_json: &str,
        position_json: Option<&str>,
    ) -> PyResult<Self> {
        Ok(Self {
            inner: open(py, schema, config_json, position_json)?,
        })
    }

    /// Adds records; the batches that they complete.
    #[pyo3(signature = (records: "list[dict[str, object]]"))]
    fn add(&self, py: Python<'_>, records: &Bound<'_, PyList>) -> PyResult<Vec<Batch>> {
        // Waits detached: the thread that holds the lock may need the interpreter.
        let mut batcher = self
            .inner
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<Bound<'_, PyString>> = batcher
            .columns()
            .iter()
            .map(|column| PyString::intern(py, column))
            .collect();
        for record in records {
            let fail = |batcher: &clickmill_samples::RecordBatcher, key: Option<String>, reason: String| {
                let record = batcher.record();
                errors::samples(py, &clickmill_samples::Error::Record { record, key, reason })
            };
            let Ok(record) = record.cast::<PyDict>() else {
                let reason = format!("is a {}, not a dict", record.get_type().name()?);
                return Err(fail(&batcher, None, reason));
            };
            batcher.start();
            for (column, key) in keys.iter().enumerate() {
                let Some(value) = record.get_item(key)? else {
                    continue;
                };
                if !push_values(&mut batcher, column, &value)? {
                    let reason = format!(
                        "has a value of type {}; allowed: str, bytes, int, float, bool, None and lists of these",
                        value.get_type().name()?
                    );
                    return Err(fail(&batcher, Some(key.to_string()), reason));
                }
            }
            batcher.commit().map_err(|error| errors::samples(py, &error))?;
        }
        Ok(batches(batcher.take()))
    }

    /// The batches that are left; an error where there was no record at all.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<Batch>> {
        finish(py, &self.inner)
    }

    /// Slots whose keys have not occurred so far; empty where nobody requires them.
    fn absent_slots(&self) -> Vec<String> {
        absent_slots(&self.inner)
    }

    /// For the end of a pass: a key that has not occurred in any record is an error.
    fn check_slots(&self, py: Python<'_>) -> PyResult<()> {
        lock(&self.inner)
            .check_slots()
            .map_err(|error| errors::samples(py, &error))
    }

    /// JSON: `{"count": n, "first": [{"file", "line", "column", "reason"}, …]}`, records for lines.
    fn bad_lines(&self, py: Python<'_>) -> String {
        bad_lines(py, &self.inner)
    }
}

/// Name, offsets `[N + 1]`, bytes, and for a column of lists the offsets `[B + 1]` of each row's values.
type ColumnArgument<'py> = (
    String,
    Reads1<'py, i64>,
    Reads1<'py, u8>,
    Option<Reads1<'py, i64>>,
);

#[pymethods]
impl ColumnBatcher {
    #[new]
    #[pyo3(signature = (schema, config_json, position_json=None))]
    fn new(
        py: Python<'_>,
        schema: &Schema,
        config_json: &str,
        position_json: Option<&str>,
    ) -> PyResult<Self> {
        Ok(Self {
            inner: open(py, schema, config_json, position_json)?,
        })
    }

    /// Columns that the schema reads.
    fn columns(&self) -> Vec<String> {
        lock(&self.inner).columns().to_vec()
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "arguments from Python come by value"
    )]
    /// Adds rows given by columns of equal length; the batches that they complete. An empty value is a null.
    fn add(&self, py: Python<'_>, columns: Vec<ColumnArgument<'_>>) -> PyResult<Vec<Batch>> {
        let mut views: Vec<(&str, TextColumn<'_>)> = Vec::with_capacity(columns.len());
        for (name, offsets, values, lists) in &columns {
            let column = TextColumn {
                offsets: offsets.as_slice()?,
                values: values.as_slice()?,
                lists: lists.as_ref().map(|lists| lists.as_slice()).transpose()?,
            };
            views.push((name, column));
        }
        let made = py.detach(|| {
            let mut batcher = lock(&self.inner);
            let mut ordered: Vec<Option<TextColumn<'_>>> = batcher.columns().iter().map(|_| None).collect();
            for (name, column) in views {
                let place = batcher.columns().iter().position(|known| known == name);
                if let Some(place) = place {
                    ordered[place] = Some(column);
                }
            }
            batcher.push_columns(&ordered)?;
            Ok(batcher.take())
        });
        made.map(batches).map_err(|error| errors::samples(py, &error))
    }

    /// The batches that are left; an error where there was no record at all.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<Batch>> {
        finish(py, &self.inner)
    }

    /// Slots whose keys have not occurred so far; empty where nobody requires them.
    fn absent_slots(&self) -> Vec<String> {
        absent_slots(&self.inner)
    }

    /// For the end of a pass: a key that has not occurred in any record is an error.
    fn check_slots(&self, py: Python<'_>) -> PyResult<()> {
        lock(&self.inner)
            .check_slots()
            .map_err(|error| errors::samples(py, &error))
    }

    /// JSON: `{"count": n, "first": [{"file", "line", "column", "reason"}, …]}`, records for lines.
    fn bad_lines(&self, py: Python<'_>) -> String {
        bad_lines(py, &self.inner)
    }
}
