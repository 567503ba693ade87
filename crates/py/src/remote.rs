//! A trainer's side of the wire, as Python sees it: control messages as JSON, steps as arrays.

#![expect(
    clippy::needless_pass_by_value,
    reason = "arguments from Python arrive by value"
)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clickmill_net::{Hello, Role, Security, Tls, TlsFiles, Token, Traffic};
use clickmill_remote::{Control, KeysRequest, Partition, Place, Settings, When};
use clickmill_table::Buffers;
use numpy::{PyArrayMethods, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::arrays::{Array1, Reads1};
use crate::batch::Batch;
use crate::errors;
use crate::lookup::{Lookup, Source};
use crate::push::Push;
use crate::signals;

/// How to speak to a cluster.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireSettings {
    name: String,
    role: Role,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    tls: Option<TlsSettings>,
    #[serde(default = "default_precision")]
    precision: clickmill_wire::Precision,
    deadline_ms: u64,
    #[serde(default)]
    retries: u32,
    #[serde(default = "default_threads")]
    num_threads: usize,
    #[serde(default = "default_shared_memory")]
    shared_memory: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsSettings {
    certificate: PathBuf,
    key: PathBuf,
    authority: PathBuf,
    server_name: String,
}

fn default_precision() -> clickmill_wire::Precision {
    clickmill_wire::Precision::Fp32
}

fn default_threads() -> usize {
    1
}

fn default_shared_memory() -> bool {
    true
}

impl WireSettings {
    pub(crate) fn read(py: Python<'_>, json: &str) -> PyResult<Self> {
        serde_json::from_str(json).map_err(|error| errors::config(py, format!("wire settings: {error}")))
    }

    pub(crate) fn security(&self, py: Python<'_>) -> PyResult<Security> {
        let token = self.token.as_deref().map(Token::new).transpose();
        let token = token.map_err(|reason| errors::config(py, reason))?;
        let tls = self.tls.as_ref().map(|files| {
            Tls::read(&TlsFiles {
                certificate: files.certificate.clone(),
                key: files.key.clone(),
                authority: files.authority.clone(),
                server_name: files.server_name.clone(),
            })
        });
        let tls = tls.transpose().map_err(|error| errors::net(py, &error))?;
        Ok(Security { token, tls })
    }

    fn settings(&self, py: Python<'_>) -> PyResult<Settings> {
        Ok(Settings {
            hello: Hello {
                role: self.role,
                name: self.name.clone(),
                features: std::collections::BTreeSet::new(),
            },
            security: self.security(py)?,
            precision: self.precision,
            deadline: Duration::from_millis(self.deadline_ms),
            retries: self.retries,
            num_threads: self.num_threads,
            shares_memory: self.shared_memory,
        })
    }
}

/// A connection for control messages, one at a time; made again when it breaks.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct ControlLink {
    inner: Mutex<Control>,
}

#[pymethods]
impl ControlLink {
    #[new]
    fn new(py: Python<'_>, settings_json: &str, address: String) -> PyResult<Self> {
        let settings = WireSettings::read(py, settings_json)?.settings(py)?;
        Ok(Self {
            inner: Mutex::new(Control::new(&settings, address)),
        })
    }

    /// Sends a request, JSON, and gives its answer.
    fn ask(&self, py: Python<'_>, request: &str, deadline_ms: u64) -> PyResult<String> {
        signals::waiting(py, || {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.ask(request, Duration::from_millis(deadline_ms))
        })
    }
}

/// The rows of a batch, to be asked for and later pushed to.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Ticket {
    pub number: u64,
    /// Absent where plain signs are asked for.
    batch: Option<Arc<clickmill_samples::Batch>>,
    pub feeds: Vec<TicketFeed>,
    /// The servers have its keys.
    is_known: AtomicBool,
}

pub(crate) struct TicketFeed {
    group: usize,
    pub table: u16,
    signs: Arc<Vec<u64>>,
    pub partition: Arc<Partition>,
}

/// All servers of a cluster in one epoch.
#[pyclass(frozen, module = "clickmill._core")]
pub(crate) struct Session {
    pub(crate) inner: clickmill_remote::Session,
    buffers: Buffers,
    traffic: Arc<Traffic>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaceSettings {
    epoch: u64,
    incarnation: u64,
    servers: Vec<String>,
    route: Vec<u16>,
    num_dense: usize,
}

#[pymethods]
impl Session {
    /// `place_json`: epoch, incarnation, addresses of the servers, route and the size of the dense part.
    #[new]
    fn new(py: Python<'_>, settings_json: &str, place_json: &str) -> PyResult<Self> {
        let settings = WireSettings::read(py, settings_json)?.settings(py)?;
        let place: PlaceSettings = serde_json::from_str(place_json)
            .map_err(|error| errors::config(py, format!("place: {error}")))?;
        let is_complete = place.route.len() == 1 << clickmill_remote::BUCKET_BITS;
        let num_servers = place.servers.len();
        if !is_complete
            || place
                .route
                .iter()
                .any(|&server| usize::from(server) >= num_servers)
        {
            return Err(errors::config(
                py,
                format!(
                    "the route names {} buckets on {num_servers} servers",
                    place.route.len()
                ),
            ));
        }
        let traffic = Arc::new(Traffic::default());
        let place = Place {
            epoch: place.epoch,
            incarnation: place.incarnation,
            servers: place.servers,
            route: place.route,
            num_dense: place.num_dense,
        };
        Ok(Self {
            inner: clickmill_remote::Session::new(settings, place, &traffic),
            buffers: Buffers::default(),
            traffic,
        })
    }

    /// Finds out which servers hold the rows of a batch; `feeds` are groups of the batch and table numbers.
    fn locate(&self, py: Python<'_>, batch: &Batch, feeds: Vec<(usize, u16)>) -> PyResult<Ticket> {
        let place = self.inner.place();
        let mut located = Vec::with_capacity(feeds.len());
        for (group, table) in feeds {
            let signs = Arc::new(batch.group(group)?.unique.clone());
            let partition = py.detach(|| Partition::new(&signs, &place.route, place.servers.len()));
            located.push(TicketFeed {
                group,
                table,
                signs,
                partition: Arc::new(partition),
            });
        }
        Ok(Ticket {
            number: self.inner.next_ticket(),
            batch: Some(Arc::clone(&batch.inner)),
            feeds: located,
            is_known: AtomicBool::new(false),
        })
    }

    /// As `locate`, for distinct signs of one table.
    fn locate_signs(&self, py: Python<'_>, table: u16, signs: Reads1<'_, u64>) -> PyResult<Ticket> {
        let place = self.inner.place();
        let signs = Arc::new(signs.as_slice()?.to_vec());
        let partition = py.detach(|| Partition::new(&signs, &place.route, place.servers.len()));
        Ok(Ticket {
            number: self.inner.next_ticket(),
            batch: None,
            feeds: vec![TicketFeed {
                group: 0,
                table,
                signs,
                partition: Arc::new(partition),
            }],
            is_known: AtomicBool::new(false),
        })
    }

    /// One frame to every server: pushes, and the keys of `tickets`, whose rows come back as lookups.
    ///
    /// The dense part is written to `parameters` where they are given. Gives the updates that the servers have
    /// applied, the fence that is wanted, and the lookups of each ticket. A step after this one asks for the rows of
    /// `later`, to be trained on; the servers find them in the meantime.
    #[pyo3(signature = (pushes, tickets, train = true, parameters = None, later = Vec::new()))]
    fn step(
        &self,
        py: Python<'_>,
        pushes: Vec<PyRef<'_, Push>>,
        tickets: Vec<PyRef<'_, Ticket>>,
        train: bool,
        parameters: Option<Vec<Array1<'_, f32>>>,
        later: Vec<PyRef<'_, Ticket>>,
    ) -> PyResult<(u64, u64, Vec<Vec<Lookup>>)> {
        let pushes = pushes
            .iter()
            .map(|push| push.take())
            .collect::<PyResult<Vec<_>>>()?;
        let wants_dense = parameters.is_some();
        let keys = tickets.iter().map(|ticket| {
            let when = if ticket.is_known.load(Ordering::Relaxed) {
                When::Found
            } else {
                When::Now
            };
            ticket.keys(when, train, wants_dense)
        });
        let keys = keys
            .chain(later.iter().map(|ticket| ticket.keys(When::Later, true, false)))
            .collect();
        let mut parameters = parameters.unwrap_or_default();
        let mut arrays = parameters
            .iter_mut()
            .map(|array| Ok(array.try_readwrite()?))
            .collect::<PyResult<Vec<PyReadwriteArray1<'_, f32>>>>()?;
        let mut out = arrays
            .iter_mut()
            .map(|array| Ok(array.as_slice_mut()?))
            .collect::<PyResult<Vec<&mut [f32]>>>()?;
        let expected = self.inner.place().num_dense;
        let found: usize = out.iter().map(|array| array.len()).sum();
        if wants_dense && found != expected {
            return Err(PyValueError::new_err(format!(
                "parameters of {found} numbers, the servers hold {expected}"
            )));
        }
        let answer = signals::waiting(py, || self.inner.step_into(pushes, keys, &mut out))?;
        for ticket in &later {
            ticket.is_known.store(true, Ordering::Relaxed);
        }
        let mut rows = answer.rows.into_iter();
        let mut lookups = Vec::with_capacity(tickets.len());
        for ticket in &tickets {
            let of_ticket = ticket.feeds.iter().zip(rows.by_ref());
            let of_ticket = of_ticket.map(|(feed, rows)| self.lookup(py, ticket, feed, rows));
            lookups.push(of_ticket.collect::<PyResult<Vec<_>>>()?);
        }
        Ok((answer.step, answer.fence, lookups))
    }

    /// Ends the step under way, and all to come, with an `EpochError`. From any thread.
    fn abandon(&self) {
        self.inner.abandon();
    }

    /// Seconds that steps have taken since the last call: to the servers (`push`), back from them (`pull`), and
    /// for other trainers (`wait`).
    fn take_seconds(&self) -> (f64, f64, f64) {
        let spent = self.inner.take_spent();
        (
            spent.push.as_secs_f64(),
            spent.pull.as_secs_f64(),
            spent.wait.as_secs_f64(),
        )
    }

    /// Bytes sent and received, and frames sent.
    fn traffic(&self) -> (u64, u64, u64) {
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let traffic = &self.traffic;
        (
            read(&traffic.sent),
            read(&traffic.received),
            read(&traffic.frames_sent),
        )
    }
}

impl Session {
    fn lookup(
        &self,
        py: Python<'_>,
        ticket: &Ticket,
        feed: &TicketFeed,
        rows: clickmill_remote::FeedRows,
    ) -> PyResult<Lookup> {
        let inner = clickmill_table::Lookup::from_values(rows.width, rows.values, &self.buffers)
            .map_err(|error| errors::table(py, &error))?;
        Ok(Lookup {
            inner,
            source: ticket.batch.as_ref().map(|batch| Source {
                batch: Arc::clone(batch),
                group: feed.group,
            }),
        })
    }
}

impl Ticket {
    fn keys(&self, when: When, is_training: bool, wants_dense: bool) -> KeysRequest {
        KeysRequest {
            ticket: self.number,
            when,
            wants_dense,
            is_training,
            wants_full_rows: false,
            feeds: self
                .feeds
                .iter()
                .map(|feed| (feed.table, Arc::clone(&feed.signs), Arc::clone(&feed.partition)))
                .collect(),
        }
    }
}
