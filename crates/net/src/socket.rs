//! Sockets as connections need them.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::{Deadline, Error, interrupt};

/// How often who waits looks whether it is to go on: often, for whoever stops it waits for that.
const LOOK: Duration = Duration::from_millis(20);

/// Connects to the first address of a name that answers; ends early, with `Error::Stopped`, when `stop` is set.
///
/// The name is looked up each time: in a cluster that starts processes anew it may stand for another address by now. And
/// the address that it stood for may belong to nobody, so that not even a refusal comes back.
pub(crate) fn connect(address: &str, deadline: Deadline, stop: &AtomicBool) -> Result<TcpStream, Error> {
    let failed = |source| Error::Connect {
        peer: address.to_owned(),
        source,
    };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let late = || Error::Deadline {
        peer: address.to_owned(),
        waited: deadline.waited(),
    };
    let found = look_up(address, deadline, stop).map_err(|ended| ended.error(failed, late))?;
    for candidate in found.map_err(failed)? {
        let left = deadline.left().ok_or_else(late)?;
        let connected = within(deadline, stop, move || {
            TcpStream::connect_timeout(&candidate, left)
        });
        match connected.map_err(|ended| ended.error(failed, late))? {
            Ok(socket) => {
                prepare(&socket).map_err(failed)?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

fn look_up(
    address: &str,
    deadline: Deadline,
    stop: &AtomicBool,
) -> Result<io::Result<Vec<SocketAddr>>, Ended> {
    if let Ok(numbers) = address.parse() {
        return Ok(Ok(vec![numbers]));
    }
    let name = address.to_owned();
    within(deadline, stop, move || {
        name.to_socket_addrs().map(Iterator::collect)
    })
}

/// Why something was not waited for to its end.
#[derive(Debug)]
enum Ended {
    Late,
    Stopped,
    /// There is no thread to be had.
    System(io::Error),
}

impl Ended {
    fn error(self, failed: impl FnOnce(io::Error) -> Error, late: impl FnOnce() -> Error) -> Error {
        match self {
            Self::Late => late(),
            Self::Stopped => Error::Stopped,
            Self::System(error) => failed(error),
        }
    }
}

/// Waits for what cannot be told when to end. Its thread ends when it does.
fn within<T: Send + 'static>(
    deadline: Deadline,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Ended> {
    let (sender, receiver) = channel();
    thread::Builder::new()
        .name("connect".to_owned())
        .spawn(move || {
            // Whoever has given up does not hear it.
            let _ = sender.send(work());
        })
        .map_err(Ended::System)?;
    loop {
        let left = deadline.left().ok_or(Ended::Late)?;
        match receiver.recv_timeout(left.min(LOOK)) {
            Ok(found) => return Ok(found),
            Err(RecvTimeoutError::Disconnected) => return Err(Ended::Late),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) || interrupt::is_interrupted() => {
                return Err(Ended::Stopped);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
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

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    #[test]
    fn a_name_that_is_not_found_out_in_time_is_not_waited_for() {
        let (sender, receiver) = channel::<()>();
        let deadline = Deadline::after(Duration::from_millis(20));
        let outcome = within(deadline, &AtomicBool::new(false), move || receiver.recv().is_ok());
        assert!(matches!(outcome, Err(Ended::Late)));
        drop(sender);
    }

    #[test]
    fn who_is_to_stop_does_not_wait_for_an_address_that_nobody_has() {
        let (sender, receiver) = channel::<()>();
        let outcome = within(soon(), &AtomicBool::new(true), move || receiver.recv().is_ok());
        assert!(matches!(outcome, Err(Ended::Stopped)));
        drop(sender);
    }

    #[test]
    fn names_and_numbers_are_found() {
        let stop = AtomicBool::new(false);
        for address in ["127.0.0.1:80", "localhost:80"] {
            let found = look_up(address, soon(), &stop).unwrap().unwrap();
            assert!(found.iter().any(|found| found.ip().is_loopback()), "{address}");
        }
        assert!(look_up("no port", soon(), &stop).unwrap().is_err());
    }
}
