//! The thread that answers.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

use crate::access::Access;
use crate::pages::{Page, Pages, Turn, answered};
use crate::readiness::Readiness;
use crate::routes::{Route, Routes};
use crate::{Answer, Error, Metrics};

/// From the first byte of a request to the last of its answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// More are closed at once: a few scrapers and probes are all that come here.
const MAX_CONNECTIONS: usize = 16;
/// Of a request, line and headers together.
const MAX_REQUEST_BYTES: usize = 8 << 10;
const MAX_HEADERS: usize = 64;
/// Pages of the process's own that are being asked for at the same time, each on a thread.
const MAX_QUESTIONS: usize = 4;
/// A system without descriptors has them again later.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers `/metrics`, `/healthz` and `/readyz` until it is dropped.
pub struct Monitor {
    address: SocketAddr,
    pages: Arc<Pages>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// Port 0 takes a free one. An address beyond this machine needs a token, unless `is_insecure`. The
    /// process is not ready until `set_ready` says so.
    pub fn start(
        address: &str,
        token: Option<&str>,
        is_insecure: bool,
        metrics: Metrics,
    ) -> Result<Self, Error> {
        let access = Access::new(token)?;
        let candidates = access.addresses(address, is_insecure)?;
        let failed = |source: io::Error| Error::Listen {
            address: address.to_owned(),
            source,
        };
        let listener = StdListener::bind(&candidates[..]).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(failed)?;
        let pages = Arc::new(Pages {
            access,
            metrics,
            readiness: Readiness::default(),
            routes: Routes::default(),
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let served = Arc::clone(&pages);
        let thread = std::thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    if let Ok(listener) = TcpListener::from_std(listener) {
                        tokio::spawn(accept(listener, served));
                        // The runtime ends with the sender, and all connections with the runtime.
                        let _ = stopped.await;
                    }
                });
                // Whoever still asks the process gets no answer; the end does not wait for it.
                runtime.shutdown_background();
            })
            .map_err(failed)?;
        Ok(Self {
            address: bound,
            pages,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn metrics(&self) -> &Metrics {
        &self.pages.metrics
    }

    /// `GET path` is answered by `read` from now on, for those who have the token. It runs on another thread than
    /// probes and metrics, which do not wait for it.
    pub fn tell(&self, path: &'static str, read: impl Fn() -> Answer + Send + Sync + 'static) {
        let handler = move |_: &str| read();
        self.pages.routes.set(path, Route::Reading(Arc::new(handler)));
    }

    /// `POST path` makes `order` happen from now on, which is given the query of the request. Only for those who have
    /// the token: where there is none, nobody may.
    pub fn obey(&self, path: &'static str, order: impl Fn(&str) -> Answer + Send + Sync + 'static) {
        self.pages.routes.set(path, Route::Order(Arc::new(order)));
    }

    pub fn set_ready(&self) {
        self.pages.readiness.set(None);
    }

    /// `reason` is for people: what the process waits for.
    pub fn set_not_ready(&self, reason: &str) {
        self.pages.readiness.set(Some(reason.to_owned()));
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, pages: Arc<Pages>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let questions = Arc::new(Semaphore::new(MAX_QUESTIONS));
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let (pages, questions) = (Arc::clone(&pages), Arc::clone(&questions));
        tokio::spawn(async move {
            // A peer that is slow or speaks no HTTP is dropped without a word.
            let _ = tokio::time::timeout(DEADLINE, serve(socket, &pages, &questions)).await;
            drop(place);
        });
    }
}

async fn serve(socket: TcpStream, pages: &Pages, questions: &Arc<Semaphore>) -> Result<(), hyper::Error> {
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(&request, pages, questions).await));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(DEADLINE)
        .max_buf_size(MAX_REQUEST_BYTES)
        .max_headers(MAX_HEADERS)
        // A place is for one request: idle connections would keep others out.
        .keep_alive(false)
        .serve_connection(TokioIo::new(socket), service)
        .await
}

async fn answer<B>(request: &Request<B>, pages: &Pages, questions: &Arc<Semaphore>) -> Page {
    let handler = match pages.turn(request) {
        Turn::Page(page) => return page,
        Turn::Ask(handler) => handler,
    };
    let query = request.uri().query().unwrap_or_default().to_owned();
    let turn = Arc::clone(questions).acquire_owned().await;
    let asked = tokio::task::spawn_blocking(move || {
        let answer = handler(&query);
        // Only now: one that nobody waits for any more still takes its thread.
        drop(turn);
        answer
    });
    let answer = asked.await;
    answered(answer.unwrap_or_else(|_| Answer::Absent("the process could not answer".to_owned())))
}
