//! Where a server waits for connections.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::{Connection, Deadline, Error, Hello, Security, Traffic};

/// A peer that does not finish its hello by then is not one of ours.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);

pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Port 0 takes a free one. Addresses beyond this machine need a token, unless `is_insecure`.
    pub fn bind(address: &str, security: &Security, is_insecure: bool) -> Result<Self, Error> {
        let failed = |source| Error::Listen {
            address: address.to_owned(),
            source,
        };
        let socket = TcpListener::bind(address).map_err(failed)?;
        let bound = socket.local_addr().map_err(failed)?;
        if !bound.ip().is_loopback() && security.token.is_none() && !is_insecure {
            return Err(Error::Open {
                address: bound.to_string(),
            });
        }
        Ok(Self {
            socket,
            address: bound,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next connection; its hello is heard by `Acceptance::welcome`, on another thread.
    pub fn accept(&self) -> Result<Acceptance, Error> {
        let (socket, _) = self.socket.accept().map_err(|source| Error::Listen {
            address: self.address.to_string(),
            source,
        })?;
        Ok(Acceptance { socket })
    }
}

/// A connection whose peer has not said who it is.
pub struct Acceptance {
    socket: TcpStream,
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
        Connection::accept(self.socket, own, security, deadline, traffic, stop)
    }
}
