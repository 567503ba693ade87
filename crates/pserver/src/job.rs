//! What a server reads of a job: tables, the dense part, metrics.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clickmill_coordinator::{Job, Strategy};
use clickmill_table::TableConfig;
use clickmill_table::dense::DenseRule;
use serde::Deserialize;

use crate::Error;
use crate::life::Together;
use crate::metrics::States;
use crate::origin::TableOrigin;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableEntry {
    pub config: TableConfig,
    /// It is empty at the start of every pass.
    pub restarts: bool,
    /// None: it is empty at the start of the run.
    #[serde(default)]
    pub initial: Option<TableOrigin>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DenseEntry {
    pub rule: DenseRule,
    pub size: usize,
    /// Parameters at the start: base64 of little-endian floats.
    initial: String,
    /// A checkpoint's file with the state of the optimizer at the start. None: it starts anew.
    #[serde(default)]
    pub initial_state: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricsEntry {
    /// States of empty accumulators, in base64.
    pub train: BTreeMap<String, String>,
    pub validation: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub tables: Vec<TableEntry>,
    pub dense: DenseEntry,
    pub metrics: MetricsEntry,
    pub together: Together,
}

impl Contents {
    pub(crate) fn of(job: &Job) -> Result<Self, Error> {
        Ok(Self {
            tables: read("tables", &job.tables)?,
            dense: read("dense", &job.dense)?,
            metrics: read("metrics", &job.metrics)?,
            together: match job.strategy {
                Strategy::Async | Strategy::HalfAsync | Strategy::Geo => Together::Never,
                Strategy::Sync => Together::Rounds,
                Strategy::Hybrid => Together::DenseRounds,
            },
        })
    }
}

impl DenseEntry {
    pub(crate) fn initial(&self) -> Result<Vec<f32>, Error> {
        let bytes = unpack_base64(&self.initial)?;
        let numbers: Vec<f32> = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        if numbers.len() != self.size {
            return Err(Error::protocol(format!(
                "{} dense numbers at the start, the job has {}",
                numbers.len(),
                self.size
            )));
        }
        Ok(numbers)
    }
}

fn read<T: serde::de::DeserializeOwned>(what: &str, value: &serde_json::Value) -> Result<T, Error> {
    T::deserialize(value).map_err(|error| Error::protocol(format!("`{what}` of the job: {error}")))
}

pub(crate) fn unpack_base64(text: &str) -> Result<Vec<u8>, Error> {
    BASE64
        .decode(text)
        .map_err(|error| Error::protocol(format!("not base64: {error}")))
}

pub(crate) fn states_of(texts: &BTreeMap<String, String>) -> Result<States, Error> {
    texts
        .iter()
        .map(|(name, text)| Ok((name.clone(), unpack_base64(text)?)))
        .collect()
}

pub(crate) fn texts_of(states: &States) -> BTreeMap<String, String> {
    states
        .iter()
        .map(|(name, state)| (name.clone(), BASE64.encode(state)))
        .collect()
}
