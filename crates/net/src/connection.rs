//! Frames over a stream, plain or encrypted, with a deadline for every wait.

mod shared;

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clickmill_wire::hello::{Hello, MAX_HELLO_BYTES, Refusal};
use clickmill_wire::{FIRST_BYTE, Frame, HEADER_BYTES, Header, Kind, MAX_PAYLOAD};
use rustls::{ClientConnection, ServerConnection};

use crate::error::ENCRYPTION;
use crate::sharing::Sharing;
use crate::socket::{connect, prepare};
use crate::stream::{Failure, Stream};
use crate::{Deadline, Error, Security, hello, interrupt};

/// How often a wait looks whether the process is to stop.
pub(crate) const LOOK: Duration = Duration::from_millis(200);
/// How long a peer may take to read why it is sent away.
const FAREWELL: Duration = Duration::from_secs(2);

/// With which a handshake of TLS begins.
const TLS_FIRST_BYTE: u8 = 0x16;

const EXPECTS_TLS: &str = "this server expects TLS: set `cluster.tls` in the configuration of this process, or \
                           --tls-certificate, --tls-key and --tls-authority on its command line";
const KNOWS_NO_TLS: &str = "this server does not use TLS: start it with --tls-certificate, --tls-key and --tls-authority, \
                            or leave `cluster.tls` out of the configuration of this process";

/// Bytes of frames, in both directions; shared by all connections that count into it.
#[derive(Debug, Default)]
pub struct Traffic {
    pub sent: AtomicU64,
    pub received: AtomicU64,
    pub frames_sent: AtomicU64,
    /// Of the bytes of both directions, those that went through memory.
    pub shared: AtomicU64,
}

impl Traffic {
    fn count_shared(&self, is_shared: bool, bytes: u64) {
        if is_shared {
            self.shared.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// One peer, after hello. Not shared: a request and its answer are one thread's business.
///
/// A wait that ends between two frames, by its deadline or because the process stops, leaves the connection
/// as it was. One that ends within a frame closes it: nobody could tell where the next frame begins.
pub struct Connection {
    stream: Stream,
    peer: String,
    /// And was not connected to.
    has_connected: bool,
    /// A frame was begun, in either direction, and is not finished.
    is_within_frame: bool,
    hello: Hello,
    sharing: Sharing,
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
        Self::open_until(address, own, security, deadline, traffic, Arc::default())
    }

    /// As `open`; it and all waits on the connection end when `stop` is set.
    pub fn open_until(
        address: &str,
        own: &Hello,
        security: &Security,
        deadline: Deadline,
        traffic: Arc<Traffic>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let socket = connect(address, deadline, &stop)?;
        let session = security.tls.as_ref().map(|tls| {
            ClientConnection::new(Arc::clone(&tls.client), tls.server_name.clone()).map_err(|source| {
                Error::Tls {
                    peer: address.to_owned(),
                    source,
                }
            })
        });
        let session = session.transpose()?.map(Into::into);
        let mut connection = Self {
            stream: Stream::new(socket, session),
            peer: address.to_owned(),
            has_connected: true,
            is_within_frame: false,
            hello: own.clone(),
            sharing: Sharing::default(),
            traffic,
            stop,
        };
        connection.handshake(deadline)?;
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
        let session = security.tls.as_ref().map(|tls| {
            ServerConnection::new(Arc::clone(&tls.server)).map_err(|source| Error::Tls {
                peer: peer.clone(),
                source,
            })
        });
        let session = session.transpose()?.map(Into::into);
        let mut connection = Self {
            stream: Stream::new(socket, session),
            peer,
            has_connected: false,
            is_within_frame: false,
            hello: own.clone(),
            sharing: Sharing::default(),
            traffic,
            stop,
        };
        match connection.answer(own, security, deadline) {
            Ok(hello) => connection.hello = hello,
            Err(error) => {
                connection.part(deadline);
                return Err(error);
            }
        }
        Ok(connection)
    }

    fn answer(&mut self, own: &Hello, security: &Security, deadline: Deadline) -> Result<Hello, Error> {
        let (first, is_encrypted) = (self.first_byte(deadline)?, security.tls.is_some());
        if is_encrypted && first == FIRST_BYTE {
            self.stream.speak_plainly();
            self.refuse(ENCRYPTION, EXPECTS_TLS, 0, deadline)?;
            return Err(self.misfit("does not use TLS, and this process expects it"));
        }
        if !is_encrypted && first == TLS_FIRST_BYTE {
            self.refuse(ENCRYPTION, KNOWS_NO_TLS, 0, deadline)?;
            return Err(self.misfit("uses TLS, and this process does not"));
        }
        self.handshake(deadline)?;
        hello::answer(self, own, security, deadline)
    }

    fn misfit(&self, reason: &'static str) -> Error {
        Error::Encryption {
            peer: self.peer.clone(),
            reason,
        }
    }

    /// Leaves a stranger time to read our last words: a socket that is closed while bytes of the peer lie
    /// unread in it takes back what it has sent.
    fn part(&mut self, deadline: Deadline) {
        self.stream.end();
        let farewell = Deadline::after(FAREWELL);
        while let (Some(left), Some(_)) = (farewell.left(), deadline.left()) {
            if self.stop.load(Ordering::Relaxed) || self.stream.set_timeout(left.min(LOOK)).is_err() {
                return;
            }
            match self.stream.drain() {
                Ok(false) => {}
                Err(error) if is_timeout(&error) => {}
                Ok(true) | Err(_) => return,
            }
        }
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
        let length = frame.payload().len();
        self.offer_memory(HEADER_BYTES + length, deadline)?;
        let is_shared = self.sharing.put(frame.bytes());
        let outcome = if is_shared {
            let header = Header::shared(kind, request, length as u32);
            self.send_all(&header.encode(), deadline)
        } else {
            let bytes = frame.finish(kind, request).map_err(|source| self.wire(source))?;
            self.send_all(bytes, deadline)
        };
        self.close_within_frame(outcome)?;
        let total = (HEADER_BYTES + length) as u64;
        self.traffic.sent.fetch_add(total, Ordering::Relaxed);
        self.traffic.frames_sent.fetch_add(1, Ordering::Relaxed);
        self.traffic.count_shared(is_shared, total);
        Ok(())
    }

    fn send_all(&mut self, bytes: &[u8], deadline: Deadline) -> Result<(), Error> {
        self.check_is_between_frames()?;
        let mut left = bytes;
        while !left.is_empty() {
            self.begin_wait(deadline)?;
            let taken = self.stream.write(left);
            match self.unless_timeout(taken)? {
                Some(0) => return Err(self.closed()),
                Some(count) => left = &left[count..],
                None if interrupt::is_interrupted() => return Err(Error::Stopped),
                None => continue,
            }
            self.is_within_frame = true;
        }
        loop {
            let is_sent = self.stream.flush();
            if self.unless_timeout(is_sent)? == Some(true) {
                break;
            }
            self.begin_wait(deadline)?;
        }
        self.is_within_frame = false;
        Ok(())
    }

    pub fn send_json(
        &mut self,
        message: &impl serde::Serialize,
        kind: Kind,
        request: u64,
        deadline: Deadline,
    ) -> Result<(), Error> {
        self.send(&mut json_frame(message), kind, request, deadline)
    }

    /// The next frame; its payload is in `frame`.
    pub fn receive(&mut self, frame: &mut Frame, deadline: Deadline) -> Result<Header, Error> {
        loop {
            let header = self.receive_up_to(MAX_PAYLOAD, frame, deadline)?;
            if header.kind != Kind::Memory || self.has_connected {
                self.sharing.note(HEADER_BYTES + header.length as usize);
                return Ok(header);
            }
            self.find_memory(frame)?;
        }
    }

    /// As `receive`; a frame of more than `allowed` bytes is refused before it is read.
    pub(crate) fn receive_up_to(
        &mut self,
        allowed: u32,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<Header, Error> {
        let outcome = self.receive_all(allowed, frame, deadline);
        let header = self.close_within_frame(outcome)?;
        // Where memory lies is no message of anybody.
        if header.kind != Kind::Memory {
            let total = HEADER_BYTES as u64 + u64::from(header.length);
            self.traffic.received.fetch_add(total, Ordering::Relaxed);
            self.traffic.count_shared(header.is_shared, total);
        }
        Ok(header)
    }

    fn receive_all(&mut self, allowed: u32, frame: &mut Frame, deadline: Deadline) -> Result<Header, Error> {
        self.check_is_between_frames()?;
        let mut head = [0; HEADER_BYTES];
        let mut arrived = 0;
        while arrived < HEADER_BYTES {
            arrived += self.read(&mut head[arrived..], deadline)?;
            self.is_within_frame = true;
        }
        let header = Header::decode(&head).map_err(|source| self.wire(source))?;
        if header.length > allowed {
            return Err(self.wire(clickmill_wire::Error::Length {
                found: u64::from(header.length),
                allowed: u64::from(allowed),
            }));
        }
        if header.is_shared {
            self.take_shared(&header, frame)
                .map_err(|source| self.wire(source))?;
            self.is_within_frame = false;
            return Ok(header);
        }
        let mut arrived = 0;
        let mut checksum = header.checksum();
        loop {
            let room = frame.receive(&header, arrived);
            if room.is_empty() {
                break;
            }
            let count = self.read(room, deadline)?;
            checksum.update(&room[..count]);
            arrived += count;
        }
        checksum.check().map_err(|source| self.wire(source))?;
        self.is_within_frame = false;
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

    fn handshake(&mut self, deadline: Deadline) -> Result<(), Error> {
        let mut is_heard = false;
        while self.stream.is_handshaking() {
            self.begin_wait(deadline)?;
            if !self.stream.wants_write() && !is_heard {
                if self.first_byte(deadline)? == FIRST_BYTE {
                    return Err(self.plain_refusal(deadline));
                }
                is_heard = true;
            }
            let outcome = self.stream.handshake();
            self.unless_timeout(outcome)?;
        }
        Ok(())
    }

    /// What a server says that does not encrypt. Nothing of it is believed but that it refuses.
    fn plain_refusal(&mut self, deadline: Deadline) -> Error {
        self.stream.speak_plainly();
        let mut frame = Frame::default();
        match self.receive_up_to(MAX_HELLO_BYTES, &mut frame, deadline) {
            Ok(header) => self.unexpected(header.kind, &frame),
            Err(error) => error,
        }
    }

    /// The first byte of all that the peer says; it stays where it is.
    fn first_byte(&mut self, deadline: Deadline) -> Result<u8, Error> {
        loop {
            self.begin_wait(deadline)?;
            let first = self.stream.first().map_err(Failure::from);
            match self.unless_timeout(first)? {
                Some(Some(first)) => return Ok(first),
                Some(None) => return Err(self.closed()),
                None => {}
            }
        }
    }

    /// At least one byte.
    fn read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<usize, Error> {
        loop {
            self.begin_wait(deadline)?;
            let read = self.stream.read(buffer);
            match self.unless_timeout(read)?.flatten() {
                Some(0) => return Err(self.closed()),
                Some(count) => return Ok(count),
                None if interrupt::is_interrupted() => return Err(Error::Stopped),
                None => {}
            }
        }
    }

    /// The next operation on the stream ends by the deadline, and in time to see that the process stops.
    fn begin_wait(&mut self, deadline: Deadline) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let left = deadline.left().ok_or_else(|| Error::Deadline {
            peer: self.peer.clone(),
            waited: deadline.waited(),
        })?;
        let outcome = self.stream.set_timeout(left.min(LOOK));
        outcome.map_err(|error| self.broken(error))
    }

    fn check_is_between_frames(&self) -> Result<(), Error> {
        if !self.is_within_frame {
            return Ok(());
        }
        let words = "it was given up in the middle of a frame";
        Err(self.broken(io::Error::new(io::ErrorKind::NotConnected, words)))
    }

    fn close_within_frame<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        if outcome.is_err() && self.is_within_frame {
            self.stream.close();
        }
        outcome
    }

    /// None: nothing is wrong but that nothing has happened yet.
    fn unless_timeout<T>(&self, outcome: Result<T, Failure>) -> Result<Option<T>, Error> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(Failure::Io(error)) if is_timeout(&error) => Ok(None),
            Err(Failure::Io(error)) => Err(self.broken(error)),
            Err(Failure::Tls(source)) => Err(Error::Tls {
                peer: self.peer.clone(),
                source,
            }),
        }
    }

    fn broken(&self, source: io::Error) -> Error {
        let is_gone = matches!(
            source.kind(),
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::UnexpectedEof
                // Of the system, which found nobody at the other end; our own timeouts are `WouldBlock`.
                | io::ErrorKind::TimedOut
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

fn json_frame(message: &impl serde::Serialize) -> Frame {
    let mut frame = Frame::default();
    let json = serde_json::to_vec(message).expect("messages are plain data");
    frame.begin().bytes(&json);
    frame
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
