//! Sockets as connections need them.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::{Deadline, Error};

pub(crate) fn connect(address: &str, deadline: Deadline) -> Result<TcpStream, Error> {
    let failed = |source| Error::Connect {
        peer: address.to_owned(),
        source,
    };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for candidate in address.to_socket_addrs().map_err(failed)? {
        let left = deadline.left().ok_or_else(|| Error::Deadline {
            peer: address.to_owned(),
            waited: deadline.waited(),
        })?;
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

/// A frame goes out at once, and a peer whose machine is gone is found without our writing to it. Buffers
/// keep the size that the system gives them: it tunes them, until somebody sets one.
pub(crate) fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let socket = socket2::SockRef::from(socket);
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(Duration::from_secs(10))
        .with_interval(Duration::from_secs(5));
    socket.set_tcp_keepalive(&keepalive)
}
