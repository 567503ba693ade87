//! One server: a connection that is made again when it breaks, and requests that may be sent twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clickmill_net::{Connection, Deadline, Hello, Security, Traffic};
use clickmill_wire::{Frame, Header, Kind};

use crate::Error;

/// Longest pause before a broken connection is made again.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Longer than this nobody takes who is there.
const OPENING: Duration = Duration::from_secs(10);

/// The number of the request that was sent, or why it was not.
pub(crate) type Sent = Result<u64, clickmill_net::Error>;

pub(crate) struct Link {
    pub address: String,
    pub name: String,
    hello: Hello,
    security: Security,
    traffic: Arc<Traffic>,
    connection: Option<Connection>,
    next_request: u64,
    pub retries: u32,
    /// With a server on this host.
    pub shares_memory: bool,
    /// Nobody waits for answers any more.
    pub stop: Arc<AtomicBool>,
}

impl Link {
    pub(crate) fn new(
        name: String,
        address: String,
        hello: Hello,
        security: Security,
        traffic: Arc<Traffic>,
        retries: u32,
    ) -> Self {
        Self {
            address,
            name,
            hello,
            security,
            traffic,
            connection: None,
            next_request: 1,
            retries,
            shares_memory: false,
            stop: Arc::default(),
        }
    }

    /// Sends a frame and waits for its answer; on a broken connection the same frame goes out again.
    pub(crate) fn ask(
        &mut self,
        frame: &mut Frame,
        kind: Kind,
        answer: &mut Frame,
        deadline: Deadline,
    ) -> Result<Header, Error> {
        let sent = self.send(frame, kind, deadline);
        self.receive(sent, frame, kind, answer, deadline)
    }

    /// Memory from which the server can read the next frame, where it shares some.
    pub(crate) fn lend(&self, frame: &mut Frame) {
        if let Some(connection) = &self.connection {
            connection.lend(frame);
        }
    }

    /// The first half of `ask`, so that frames to several servers are under way at once.
    pub(crate) fn send(&mut self, frame: &mut Frame, kind: Kind, deadline: Deadline) -> Sent {
        let request = self.next_request;
        self.next_request += 1;
        let connection = self.connection(deadline)?;
        connection.send(frame, kind, request, deadline)?;
        Ok(request)
    }

    /// The second half, with the same frame.
    pub(crate) fn receive(
        &mut self,
        mut sent: Sent,
        frame: &mut Frame,
        kind: Kind,
        answer: &mut Frame,
        deadline: Deadline,
    ) -> Result<Header, Error> {
        let mut pause = Duration::from_millis(10);
        let mut left = self.retries;
        loop {
            match sent.and_then(|request| self.try_receive(request, answer, deadline)) {
                Err(error)
                    if error.is_retryable()
                        && left > 0
                        && deadline.left().is_some()
                        && !self.stop.load(Ordering::Relaxed) =>
                {
                    self.connection = None;
                    left -= 1;
                    std::thread::sleep(pause.min(deadline.left().unwrap_or_default()));
                    pause = (pause * 4).min(MAX_PAUSE);
                }
                Err(error) => {
                    // Whatever comes on it later is not the answer to what is asked next.
                    self.connection = None;
                    return Err(error.into());
                }
                Ok(header) => return Ok(header),
            }
            sent = self.send(frame, kind, deadline);
        }
    }

    fn try_receive(
        &mut self,
        request: u64,
        answer: &mut Frame,
        deadline: Deadline,
    ) -> Result<Header, clickmill_net::Error> {
        let closed = || clickmill_net::Error::Closed {
            peer: self.name.clone(),
        };
        let connection = self.connection.as_mut().ok_or_else(closed)?;
        loop {
            let header = connection.receive(answer, deadline)?;
            if header.kind == Kind::Refused {
                return Err(connection.unexpected(header.kind, answer));
            }
            if header.request == request {
                return Ok(header);
            }
        }
    }

    /// The connection, made where there is none.
    fn connection(&mut self, deadline: Deadline) -> Result<&mut Connection, clickmill_net::Error> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            empty => {
                let traffic = Arc::clone(&self.traffic);
                let within = Deadline::after(deadline.left().unwrap_or_default().min(OPENING));
                let (hello, security, stop) = (&self.hello, &self.security, Arc::clone(&self.stop));
                let mut opened =
                    Connection::open_until(&self.address, hello, security, within, traffic, stop)?;
                if self.shares_memory {
                    opened.share_memory();
                }
                opened.rename(format!("{} ({})", self.name, self.address));
                Ok(empty.insert(opened))
            }
        }
    }
}
