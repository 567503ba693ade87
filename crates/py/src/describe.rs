//! Questions about a data set that are answered by reading it once.

use std::sync::Arc;

use clickmill_samples::ReaderConfig;
use pyo3::prelude::*;

use crate::arrivals::Arrivals;
use crate::errors;
use crate::schema::Schema;

/// JSON statistics of the raw columns of the files of a reader's configuration.
#[pyfunction]
#[pyo3(signature = (config_json, limit_rows=None))]
pub(crate) fn describe(py: Python<'_>, config_json: &str, limit_rows: Option<u64>) -> PyResult<String> {
    let made = py.detach(|| {
        let config = ReaderConfig::from_json(config_json)?;
        clickmill_samples::describe(&config, limit_rows)
    });
    let description = made.map_err(|error| errors::samples(py, &error))?;
    Ok(serde_json::to_string(&description).expect("a description holds only strings and numbers"))
}

/// The schema with mean and std of every slot that standardises without them, from one pass over the data.
#[pyfunction]
#[pyo3(signature = (schema, config_json, arrivals=None))]
pub(crate) fn fit_schema(
    py: Python<'_>,
    schema: &Schema,
    config_json: &str,
    arrivals: Option<&Arrivals>,
) -> PyResult<Schema> {
    let arrivals = arrivals.map(|arrivals| &arrivals.inner);
    let made = py.detach(|| {
        let config = ReaderConfig::from_json(config_json)?;
        clickmill_samples::fit_standardise(&schema.inner, &config, arrivals)
    });
    Ok(Schema {
        inner: Arc::new(made.map_err(|error| errors::samples(py, &error))?),
    })
}
