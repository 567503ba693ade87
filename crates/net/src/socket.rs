//! Sockets as connections need them.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::{Deadline, Error};

pub(crate) fn connect(address: &str, deadline: Deadline) -> Result<TcpStream, Error> {
    let failed = |source| Error::Connect {
        peer: address.to_owned(),
        source,
    };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let late = || Error::Deadline {
        peer: address.to_owned(),
        waited: deadline.waited(),
    };
    let found = look_up(address, deadline).map_err(failed)?;
    for candidate in found.ok_or_else(late)? {
        let left = deadline.left().ok_or_else(late)?;
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

/// None: nobody knows yet what the name stands for.
fn look_up(address: &str, deadline: Deadline) -> io::Result<Option<Vec<SocketAddr>>> {
    if let Ok(numbers) = address.parse() {
        return Ok(Some(vec![numbers]));
    }
    let name = address.to_owned();
    within(deadline, move || name.to_socket_addrs().map(Iterator::collect))?.transpose()
}

/// Waits for what cannot be told when to end; none when it has not ended by then. Its thread ends when it does.
fn within<T: Send + 'static>(
    deadline: Deadline,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let (sender, receiver) = channel();
    thread::Builder::new()
        .name("name lookup".to_owned())
        .spawn(move || {
            // Whoever has given up does not hear it.
            let _ = sender.send(work());
        })?;
    Ok(receiver.recv_timeout(deadline.left().unwrap_or_default()).ok())
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_found_out_in_time_is_not_waited_for() {
        let (sender, receiver) = channel::<()>();
        let deadline = Deadline::after(Duration::from_millis(20));
        let outcome = within(deadline, move || receiver.recv().is_ok());
        assert_eq!(outcome.unwrap(), None);
        drop(sender);
    }

    #[test]
    fn names_and_numbers_are_found() {
        let deadline = Deadline::after(Duration::from_secs(60));
        for address in ["127.0.0.1:80", "localhost:80"] {
            let found = look_up(address, deadline).unwrap().unwrap();
            assert!(found.iter().any(|found| found.ip().is_loopback()), "{address}");
        }
        assert!(look_up("no port", deadline).is_err());
    }
}
