//! Where a server waits for connections.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::connection::LOOK;
use crate::strangers::{Place, Strangers};
use crate::{Connection, Deadline, Error, Hello, Security, Traffic};

/// A peer that does not finish its hello by then is not one of ours.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);

pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    strangers: Arc<Strangers>,
    stop: Arc<AtomicBool>,
}

impl Listener {
    /// Port 0 takes a free one. Addresses beyond this machine need a token, unless `is_insecure`.
    pub fn bind(address: &str, security: &Security, is_insecure: bool) -> Result<Self, Error> {
        let failed = |source| Error::Listen {
            address: address.to_owned(),
            source,
        };
        let candidates: Vec<SocketAddr> = address.to_socket_addrs().map_err(failed)?.collect();
        let is_open = candidates.iter().any(|candidate| !candidate.ip().is_loopback());
        if is_open && security.token.is_none() && !is_insecure {
            return Err(Error::Open {
                address: address.to_owned(),
            });
        }
        let socket = TcpListener::bind(&candidates[..]).map_err(failed)?;
        // An `accept` without end would not see that the process stops.
        let reference = socket2::SockRef::from(&socket);
        reference.set_read_timeout(Some(LOOK)).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self {
            socket,
            address,
            strangers: Arc::default(),
            stop: Arc::default(),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `accept` ends when `stop` is set.
    pub fn stop_with(&mut self, stop: Arc<AtomicBool>) {
        self.stop = stop;
    }

    /// Waits for the next connection; its hello is heard by `Acceptance::welcome`, on another thread.
    pub fn accept(&self) -> Result<Acceptance, Error> {
        while !self.stop.load(Ordering::Relaxed) {
            match self.socket.accept() {
                Ok((socket, peer)) => {
                    // Without a place it is closed, and a peer of ours tries again.
                    if let Ok(place) = self.strangers.take_place(&socket, peer.ip()) {
                        return Ok(Acceptance {
                            socket,
                            _place: place,
                        });
                    }
                }
                // Nobody came, or somebody came and has gone.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::Interrupted
                            | io::ErrorKind::ConnectionAborted
                            | io::ErrorKind::ConnectionReset
                    ) => {}
                Err(source) => {
                    return Err(Error::Listen {
                        address: self.address.to_string(),
                        source,
                    });
                }
            }
        }
        Err(Error::Stopped)
    }
}

/// A connection whose peer has not said who it is.
pub struct Acceptance {
    socket: TcpStream,
    _place: Place,
}

impl Acceptance {
    pub fn welcome(
        self,
        own: &Hello,
        security: &Security,
        traffic: Arc<Traffic>,
        stop: Arc<AtomicBool>,
    ) -> Result<Connection, Error> {
        let deadline = Deadline::after(HELLO_DEADLINE);
        self.welcome_by(deadline, own, security, traffic, stop)
    }

    /// As `welcome`, with a deadline of the caller's own.
    pub fn welcome_by(
        self,
        deadline: Deadline,
        own: &Hello,
        security: &Security,
        traffic: Arc<Traffic>,
        stop: Arc<AtomicBool>,
    ) -> Result<Connection, Error> {
        Connection::accept(self.socket, own, security, deadline, traffic, stop)
    }
}
