//! A parameter server in this process, as Python sees it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clickmill_coordinator::Settings;
use clickmill_pserver::{Server, ServerSettings};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors;
use crate::monitor::Monitor;
use crate::remote::WireSettings;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PserverSettings {
    address: String,
    announced: Option<String>,
    is_insecure: bool,
    index: Option<u32>,
    coordinator: Option<String>,
    snapshots: PathBuf,
    memory_budget: Option<u64>,
    /// Servers that the cluster starts with.
    servers: u32,
    dead_after_s: f64,
    /// A member that has closed its connection may come back within so long.
    closed_after_s: f64,
    wait_for_members_s: f64,
    gather_s: f64,
    wire: serde_json::Value,
}

/// A server that listens from the moment it is made, on threads of its own.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Pserver {
    inner: Server,
    happenings: Arc<Mutex<Vec<String>>>,
}

#[pymethods]
impl Pserver {
    #[new]
    fn new(py: Python<'_>, settings_json: &str) -> PyResult<Self> {
        let settings: PserverSettings = serde_json::from_str(settings_json)
            .map_err(|error| errors::config(py, format!("server settings: {error}")))?;
        let wire = WireSettings::read(py, &settings.wire.to_string())?;
        let seconds = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, 1e9));
        let coordinator_settings = Settings {
            servers: settings.servers,
            snapshots: std::path::absolute(&settings.snapshots)
                .unwrap_or_else(|_| settings.snapshots.clone())
                .to_string_lossy()
                .into_owned(),
            heartbeat_deadline: seconds(settings.dead_after_s),
            closed_deadline: seconds(settings.closed_after_s),
            start_deadline: seconds(settings.wait_for_members_s),
            wait_deadline: seconds(settings.wait_for_members_s),
            gather_deadline: seconds(settings.gather_s),
            retry_interval: seconds((settings.wait_for_members_s / 60.0).min(10.0)),
            ..Settings::default()
        };
        let settings = ServerSettings {
            address: settings.address,
            announced: settings.announced,
            is_insecure: settings.is_insecure,
            index: settings.index,
            coordinator: settings.coordinator,
            coordinator_settings,
            snapshots: settings.snapshots,
            memory_budget: settings.memory_budget,
            security: wire.security(py)?,
        };
        let happenings: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&happenings);
        let tell = Arc::new(move |event: &clickmill_coordinator::Happening| {
            let text = serde_json::to_string(event).expect("happenings are plain data");
            told.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        });
        let inner = py
            .detach(|| Server::start(settings, tell))
            .map_err(|error| errors::pserver(py, &error))?;
        Ok(Self { inner, happenings })
    }

    /// Where it listens.
    #[getter]
    fn address(&self) -> String {
        self.inner.address().to_owned()
    }

    /// Waits for the end of the run, at most so long: exit code and words, or None.
    fn wait(&self, py: Python<'_>, seconds: f64) -> Option<(i32, String)> {
        let outcome = py.detach(|| self.inner.wait(Duration::from_secs_f64(seconds.clamp(0.0, 1e6))))?;
        Some((outcome.exit_code, outcome.words))
    }

    /// What has happened since the last call, each as JSON.
    fn happenings(&self) -> Vec<String> {
        std::mem::take(&mut *self.happenings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How it is, JSON.
    fn health(&self, py: Python<'_>) -> String {
        let health = py.detach(|| self.inner.health());
        serde_json::to_string(&health).expect("numbers and texts")
    }

    /// Lets `monitor` answer `/status`, `/scale`, `/snapshot` and `/stop` for the coordinator, where that is in
    /// this process.
    fn answer_on(&self, monitor: &Monitor) {
        monitor.with(|monitor| self.inner.answer_on(monitor));
    }

    /// Ends all connections.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.inner.stop());
    }
}
