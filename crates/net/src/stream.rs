//! Bytes to and from a socket, plain or encrypted.
//!
//! A call does one operation on the socket at most, and loses nothing when that runs into the socket's
//! timeout: the caller looks at its deadline and calls again.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rustls::Connection as Session;

/// Read ahead: the header of a frame comes with all of a short payload, or the begin of a long one.
const PLAIN_AHEAD: usize = 8 << 10;
/// A session takes 4 KiB at a time; these shall not be system calls.
const TLS_AHEAD: usize = 128 << 10;
/// Sealed and not yet sent.
const TLS_BEHIND: usize = 256 << 10;

#[derive(Debug)]
pub(crate) enum Failure {
    Io(io::Error),
    Tls(rustls::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub(crate) struct Stream {
    socket: TcpStream,
    session: Option<Box<Session>>,
    ahead: Ahead,
    timeout: Option<Duration>,
}

impl Stream {
    pub(crate) fn new(socket: TcpStream, session: Option<Session>) -> Self {
        let ahead = if session.is_some() { TLS_AHEAD } else { PLAIN_AHEAD };
        let mut session = session.map(Box::new);
        if let Some(session) = &mut session {
            session.set_buffer_limit(Some(TLS_BEHIND));
        }
        Self {
            socket,
            session,
            ahead: Ahead::new(ahead),
            timeout: None,
        }
    }

    /// For both directions: a session may have to write in order to read, and to read in order to write.
    pub(crate) fn set_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        // Nearly every wait has the same timeout, and the system is asked for each otherwise.
        if self.timeout != Some(timeout) {
            self.socket.set_read_timeout(Some(timeout))?;
            self.socket.set_write_timeout(Some(timeout))?;
            self.timeout = Some(timeout);
        }
        Ok(())
    }

    /// Whether nothing is encrypted, and the peer is, as far as addresses tell, a process of this host.
    pub(crate) fn is_plain_within_host(&self) -> bool {
        let addresses = self
            .socket
            .local_addr()
            .and_then(|own| Ok((own, self.socket.peer_addr()?)));
        let is_near = addresses.is_ok_and(|(own, peer)| own.ip() == peer.ip() || peer.ip().is_loopback());
        self.session.is_none() && is_near
    }

    /// Whether the session still has to be agreed on.
    pub(crate) fn is_handshaking(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.is_handshaking() || session.wants_write())
    }

    /// Whether the handshake waits for our own bytes to go out.
    pub(crate) fn wants_write(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.wants_write())
    }

    /// The first byte that the peer has sent and nobody has read; none: the peer has closed.
    pub(crate) fn first(&mut self) -> io::Result<Option<u8>> {
        if self.ahead.is_empty() {
            self.ahead.fill(&mut self.socket)?;
        }
        Ok((!self.ahead.is_empty()).then(|| self.ahead.bytes[self.ahead.begin]))
    }

    /// Gives the session up before anything was agreed on: what comes and goes is not encrypted.
    pub(crate) fn speak_plainly(&mut self) {
        self.session = None;
    }

    /// The next operation of the handshake.
    pub(crate) fn handshake(&mut self) -> Result<(), Failure> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        if session.wants_write() {
            write_session(session, &mut self.socket)?;
        } else if take_session(session, &mut self.ahead, &mut self.socket)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }

    /// None: call again. 0: the peer has closed.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Failure> {
        let Some(session) = &mut self.session else {
            return Ok(Some(self.ahead.read(&mut self.socket, buffer)?));
        };
        let mut is_socket_read = false;
        loop {
            match session.reader().read(buffer) {
                Ok(count) => return Ok(Some(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The peer has gone without a word of farewell.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(0)),
                Err(error) => return Err(error.into()),
            }
            if session.wants_write() {
                write_session(session, &mut self.socket)?;
                return Ok(None);
            }
            if self.ahead.is_empty() && std::mem::replace(&mut is_socket_read, true) {
                return Ok(None);
            }
            take_session(session, &mut self.ahead, &mut self.socket)?;
        }
    }

    /// How many bytes were taken; they may still be on their way until `flush` has nothing left.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        let Some(session) = &mut self.session else {
            return Ok(self.socket.write(bytes)?);
        };
        if session.wants_write() {
            write_session(session, &mut self.socket)?;
        }
        if session.wants_write() {
            return Err(io::Error::from(io::ErrorKind::WouldBlock).into());
        }
        Ok(session.writer().write(bytes)?)
    }

    /// Sends what was sealed; whether all of it is sent.
    pub(crate) fn flush(&mut self) -> Result<bool, Failure> {
        let Some(session) = &mut self.session else {
            return Ok(true);
        };
        if session.wants_write() {
            write_session(session, &mut self.socket)?;
        }
        Ok(!session.wants_write())
    }

    /// Nothing more goes out; what the peer still sends is read and thrown away by `drain`.
    pub(crate) fn end(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Whether the peer has closed.
    pub(crate) fn drain(&mut self) -> io::Result<bool> {
        Ok(self.socket.read(&mut self.ahead.bytes)? == 0)
    }

    /// The connection is over, for the peer too.
    pub(crate) fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

fn write_session(session: &mut Session, socket: &mut TcpStream) -> io::Result<()> {
    if session.write_tls(socket)? == 0 {
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(())
}

/// Gives the session what has arrived; 0 when the peer has closed.
fn take_session(session: &mut Session, ahead: &mut Ahead, socket: &mut TcpStream) -> Result<usize, Failure> {
    if ahead.is_empty() {
        ahead.fill(socket)?;
    }
    let count = session.read_tls(ahead)?;
    if let Err(error) = session.process_new_packets() {
        // It wants to tell the peer why; that the peer does not hear it changes nothing here.
        let _ = write_session(session, socket);
        return Err(Failure::Tls(error));
    }
    Ok(count)
}

/// Bytes that came with those that were asked for.
struct Ahead {
    bytes: Box<[u8]>,
    begin: usize,
    end: usize,
}

impl Ahead {
    fn new(capacity: usize) -> Self {
        Self {
            bytes: vec![0; capacity].into_boxed_slice(),
            begin: 0,
            end: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    fn fill(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        self.begin = 0;
        self.end = 0;
        self.end = socket.read(&mut self.bytes)?;
        Ok(())
    }

    fn read(&mut self, socket: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_empty() {
            if buffer.len() >= self.bytes.len() {
                return socket.read(buffer);
            }
            self.fill(socket)?;
        }
        Read::read(self, buffer)
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.end - self.begin);
        buffer[..count].copy_from_slice(&self.bytes[self.begin..self.begin + count]);
        self.begin += count;
        Ok(count)
    }
}
