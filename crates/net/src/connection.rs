//! Frames over a stream, plain or encrypted, with a deadline for every wait.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clickmill_wire::hello::{Hello, Refusal};
use clickmill_wire::{Frame, HEADER_BYTES, Header, Kind, MAX_PAYLOAD};
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use crate::hello;
use crate::{Deadline, Error, Security};

/// How often a wait looks whether the process is to stop.
const LOOK: Duration = Duration::from_millis(200);
/// Steps are megabytes; with the default a server sends them in many small pieces.
const SOCKET_BUFFER: usize = 4 << 20;

enum Stream {
    Plain(TcpStream),
    Client(Box<StreamOwned<ClientConnection, TcpStream>>),
    Server(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Client(stream) => &stream.sock,
            Self::Server(stream) => &stream.sock,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Client(stream) => stream.read(buffer),
            Self::Server(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Client(stream) => stream.write(bytes),
            Self::Server(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Client(stream) => stream.flush(),
            Self::Server(stream) => stream.flush(),
        }
    }
}

/// Bytes of frames, in both directions; shared by all connections that count into it.
#[derive(Debug, Default)]
pub struct Traffic {
    pub sent: AtomicU64,
    pub received: AtomicU64,
    pub frames_sent: AtomicU64,
}

/// One peer, after hello. Not shared: a request and its answer are one thread's business.
pub struct Connection {
    stream: Stream,
    peer: String,
    hello: Hello,
    traffic: Arc<Traffic>,
    stop: Arc<AtomicBool>,
}

impl Connection {
    /// Connects to `address` and says hello; all of it within `deadline`.
    pub fn open(
        address: &str,
        own: &Hello,
        security: &Security,
        deadline: Deadline,
        traffic: Arc<Traffic>,
    ) -> Result<Self, Error> {
        let socket = connect(address, deadline)?;
        let peer = address.to_owned();
        let stream = match &security.tls {
            None => Stream::Plain(socket),
            Some(tls) => {
                let session = ClientConnection::new(Arc::clone(&tls.client), tls.server_name.clone())
                    .map_err(|source| Error::Tls {
                        peer: peer.clone(),
                        source,
                    })?;
                Stream::Client(Box::new(StreamOwned::new(session, socket)))
            }
        };
        let mut connection = Self {
            stream,
            peer,
            hello: own.clone(),
            traffic,
            stop: Arc::default(),
        };
        connection.hello = hello::greet(&mut connection, own, security, deadline)?;
        Ok(connection)
    }

    /// Takes a connection that was accepted and hears its hello.
    pub(crate) fn accept(
        socket: TcpStream,
        own: &Hello,
        security: &Security,
        deadline: Deadline,
        traffic: Arc<Traffic>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let peer = socket.peer_addr().map_or_else(
            |_| "a peer that has gone".to_owned(),
            |address| address.to_string(),
        );
        prepare(&socket).map_err(|source| Error::Io {
            peer: peer.clone(),
            source,
        })?;
        let stream = match &security.tls {
            None => Stream::Plain(socket),
            Some(tls) => {
                let session =
                    ServerConnection::new(Arc::clone(&tls.server)).map_err(|source| Error::Tls {
                        peer: peer.clone(),
                        source,
                    })?;
                Stream::Server(Box::new(StreamOwned::new(session, socket)))
            }
        };
        let mut connection = Self {
            stream,
            peer,
            hello: own.clone(),
            traffic,
            stop,
        };
        connection.hello = hello::answer(&mut connection, own, security, deadline)?;
        Ok(connection)
    }

    /// What the peer said of itself.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// How errors name this peer from now on.
    pub fn rename(&mut self, peer: String) {
        self.peer = peer;
    }

    /// Waits on this connection end when `stop` is set.
    pub fn stop_with(&mut self, stop: Arc<AtomicBool>) {
        self.stop = stop;
    }

    pub fn send(
        &mut self,
        frame: &mut Frame,
        kind: Kind,
        request: u64,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let bytes = frame.finish(kind, request).map_err(|source| self.wire(source))?;
        let mut left = bytes;
        while !left.is_empty() {
            let wait = self.next_wait(deadline)?;
            self.io(self.stream.socket().set_write_timeout(Some(wait)))?;
            match self.stream.write(left) {
                Ok(0) => return Err(self.closed()),
                Ok(count) => left = &left[count..],
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(self.broken(error)),
            }
        }
        let flushed = self.stream.flush();
        self.io(flushed)?;
        self.traffic.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.traffic.frames_sent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    pub fn send_json(
        &mut self,
        message: &impl serde::Serialize,
        kind: Kind,
        request: u64,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let mut frame = Frame::default();
        let json = serde_json::to_vec(message).expect("messages are plain data");
        frame.begin().bytes(&json);
        self.send(&mut frame, kind, request, deadline)
    }

    /// The next frame; its payload is in `frame`.
    pub fn receive(&mut self, frame: &mut Frame, deadline: Deadline) -> Result<Header, Error> {
        self.receive_up_to(MAX_PAYLOAD, frame, deadline)
    }

    /// As `receive`; a frame of more than `allowed` bytes is refused before it is read.
    pub(crate) fn receive_up_to(
        &mut self,
        allowed: u32,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<Header, Error> {
        let mut head = [0; HEADER_BYTES];
        self.read_all(&mut head, deadline)?;
        let header = Header::decode(&head).map_err(|source| self.wire(source))?;
        if header.length > allowed {
            return Err(self.wire(clickmill_wire::Error::Length {
                found: u64::from(header.length),
                allowed: u64::from(allowed),
            }));
        }
        let mut arrived = 0;
        loop {
            let room = frame.receive(&header, arrived);
            if room.is_empty() {
                break;
            }
            arrived += room.len();
            self.read_all(room, deadline)?;
        }
        header
            .check(frame.payload())
            .map_err(|source| self.wire(source))?;
        let total = HEADER_BYTES as u64 + u64::from(header.length);
        self.traffic.received.fetch_add(total, Ordering::Relaxed);
        Ok(header)
    }

    /// As `receive`, for a message in JSON of the kind that is expected here.
    pub fn receive_json<T: serde::de::DeserializeOwned>(
        &mut self,
        frame: &mut Frame,
        kind: Kind,
        deadline: Deadline,
    ) -> Result<(u64, T), Error> {
        let header = self.receive(frame, deadline)?;
        if header.kind != kind {
            return Err(self.unexpected(header.kind, frame));
        }
        Ok((header.request, self.json(frame.payload())?))
    }

    pub fn json<T: serde::de::DeserializeOwned>(&self, payload: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(payload).map_err(|error| {
            self.wire(clickmill_wire::Error::Json {
                reason: error.to_string(),
            })
        })
    }

    /// The error for a frame that is not the answer: a refusal in the peer's words, or a broken protocol.
    pub fn unexpected(&self, kind: Kind, frame: &Frame) -> Error {
        if kind == Kind::Refused
            && let Ok(refusal) = serde_json::from_slice::<Refusal>(frame.payload())
        {
            return Error::Refused {
                peer: self.peer.clone(),
                code: refusal.code,
                reason: refusal.reason,
            };
        }
        self.wire(clickmill_wire::Error::Json {
            reason: format!("a frame of kind {kind:?} is no answer here"),
        })
    }

    /// Tells the peer why its request is not granted.
    pub fn refuse(
        &mut self,
        code: &str,
        reason: &str,
        request: u64,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let refusal = Refusal {
            code: code.to_owned(),
            reason: reason.to_owned(),
        };
        self.send_json(&refusal, Kind::Refused, request, deadline)
    }

    fn read_all(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<(), Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            let wait = self.next_wait(deadline)?;
            self.io(self.stream.socket().set_read_timeout(Some(wait)))?;
            match self.stream.read(&mut buffer[filled..]) {
                Ok(0) => return Err(self.closed()),
                Ok(count) => filled += count,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(self.broken(error)),
            }
        }
        Ok(())
    }

    fn next_wait(&self, deadline: Deadline) -> Result<Duration, Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let left = deadline.left().ok_or_else(|| Error::Deadline {
            peer: self.peer.clone(),
            waited: deadline.waited(),
        })?;
        Ok(left.min(LOOK))
    }

    fn io<T>(&self, outcome: io::Result<T>) -> Result<T, Error> {
        outcome.map_err(|error| self.broken(error))
    }

    fn broken(&self, source: io::Error) -> Error {
        let is_gone = matches!(
            source.kind(),
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::UnexpectedEof
        );
        if is_gone {
            return self.closed();
        }
        Error::Io {
            peer: self.peer.clone(),
            source,
        }
    }

    fn closed(&self) -> Error {
        Error::Closed {
            peer: self.peer.clone(),
        }
    }

    pub(crate) fn wire(&self, source: clickmill_wire::Error) -> Error {
        Error::Wire {
            peer: self.peer.clone(),
            source,
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn connect(address: &str, deadline: Deadline) -> Result<TcpStream, Error> {
    let failed = |source| Error::Connect {
        peer: address.to_owned(),
        source,
    };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for candidate in address.to_socket_addrs().map_err(failed)? {
        let Some(left) = deadline.left() else { break };
        match TcpStream::connect_timeout(&candidate, left) {
            Ok(socket) => {
                prepare(&socket).map_err(failed)?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

/// A frame goes out at once, and a peer whose machine is gone is found without our writing to it.
fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let socket = socket2::SockRef::from(socket);
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(Duration::from_secs(10))
        .with_interval(Duration::from_secs(5));
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)
}
