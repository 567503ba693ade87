//! The thread that answers.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

use crate::access::Access;
use crate::pages::Pages;
use crate::readiness::Readiness;
use crate::{Error, Metrics};

/// From the first byte of a request to the last of its answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// More are closed at once: a few scrapers and probes are all that come here.
const MAX_CONNECTIONS: usize = 16;
/// Of a request, line and headers together.
const MAX_REQUEST_BYTES: usize = 8 << 10;
const MAX_HEADERS: usize = 64;
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
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let pages = Arc::clone(&pages);
        tokio::spawn(async move {
            // A peer that is slow or speaks no HTTP is dropped without a word.
            let _ = tokio::time::timeout(DEADLINE, serve(socket, pages)).await;
            drop(place);
        });
    }
}

async fn serve(socket: TcpStream, pages: Arc<Pages>) -> Result<(), hyper::Error> {
    let service = service_fn(|request| {
        let page = pages.answer(&request);
        async { Ok::<_, Infallible>(page) }
    });
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
