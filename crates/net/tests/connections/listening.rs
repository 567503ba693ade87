//! Where servers listen, and what strangers can do to them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clickmill_net::{Error, Listener, Role, Security};
use clickmill_wire::hello::MAX_HELLO_BYTES;
use clickmill_wire::{HEADER_BYTES, Kind};

use crate::raw::{Raw, frame};
use crate::{brief, error, hello, open, welcome, with_token};

/// A hello that is announced and comes a byte at a time, until the other side has had enough.
fn dribble(mut socket: TcpStream) {
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let bytes = frame(Kind::Hello, &vec![b' '; MAX_HELLO_BYTES as usize]);
    for byte in bytes {
        let is_sent = socket.write_all(&[byte]).is_ok();
        let is_over = match socket.read(&mut [0; 64]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        };
        if !is_sent || is_over {
            return;
        }
    }
    panic!("a hello of {MAX_HELLO_BYTES} bytes was heard to its end");
}

#[test]
fn a_token_is_needed_beyond_this_machine() {
    let refused = Listener::bind("0.0.0.0:0", &Security::default(), false);
    let error = refused.err().expect("it is refused");
    assert!(matches!(&error, Error::Open { address } if address == "0.0.0.0:0"));
    assert!(error.to_string().contains("--insecure"), "{error}");
    assert!(Listener::bind("0.0.0.0:0", &with_token("a secret of this cluster"), false).is_ok());
    assert!(Listener::bind("0.0.0.0:0", &Security::default(), true).is_ok());
}

#[test]
fn an_address_that_is_taken_is_named() {
    let security = Security::default();
    let first = Listener::bind("127.0.0.1:0", &security, false).unwrap();
    let address = first.address().to_string();
    let error = Listener::bind(&address, &security, false)
        .err()
        .expect("it is taken");
    assert!(error.to_string().contains(&address), "{error}");
}

#[test]
fn a_hello_that_comes_too_slowly_ends_by_its_deadline() {
    let security = Security::default();
    let listener = Listener::bind("127.0.0.1:0", &security, false).unwrap();
    let address = listener.address();
    thread::scope(|scope| {
        scope.spawn(move || dribble(TcpStream::connect(address).unwrap()));
        let own = hello(Role::Pserver, "pserver-0");
        let stranger = listener.accept().unwrap();
        let outcome = stranger.welcome_by(brief(), &own, &security, Arc::default(), Arc::default());
        assert!(matches!(error(outcome), Error::Deadline { .. }));
    });
}

#[test]
fn a_hello_of_a_gigabyte_is_refused_unread() {
    let security = Security::default();
    let listener = Listener::bind("127.0.0.1:0", &security, false).unwrap();
    let address = listener.address().to_string();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut raw = Raw::connect(&address);
            let mut head = frame(Kind::Hello, b"");
            head[8..12].copy_from_slice(&(1_u32 << 30).to_le_bytes());
            raw.write(&head[..HEADER_BYTES]);
            raw.wait_for_end();
        });
        let error = error(welcome(&listener, &security));
        assert!(error.to_string().contains("at most 16384 are taken"), "{error}");
    });
}

#[test]
fn strangers_who_say_nothing_do_not_keep_others_out() {
    let security = Security::default();
    let listener = Listener::bind("127.0.0.1:0", &security, false).unwrap();
    let address = listener.address().to_string();
    let stop = Arc::new(AtomicBool::new(false));
    let silent: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let mut mad = Raw::connect(&address);
    mad.write(b"\x16\x03\x01 this is no hello at all, and longer than a header");
    let own = hello(Role::Pserver, "pserver-0");
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            for _ in 0..5 {
                let (accepted, own, security) = (listener.accept().unwrap(), &own, &security);
                let stop = Arc::clone(&stop);
                scope.spawn(move || accepted.welcome(own, security, Arc::default(), stop).is_ok());
            }
        });
        let opened = open(&address, &security);
        stop.store(true, Ordering::Relaxed);
        assert!(opened.is_ok());
        server.join().unwrap();
    });
    drop((silent, mad));
}

/// More than there are places for.
const CROWD: usize = 300;

/// Accepts `number` connections and hears each on a thread of its own; gives how many have said hello.
fn serve(listener: &Listener, number: usize, stop: &Arc<AtomicBool>) -> usize {
    let own = hello(Role::Pserver, "pserver-0");
    let security = Security::default();
    thread::scope(|scope| {
        let heard: Vec<_> = (0..number)
            .map(|_| {
                let (accepted, own, security) = (listener.accept().unwrap(), &own, &security);
                let stop = Arc::clone(stop);
                scope.spawn(move || accepted.welcome(own, security, Arc::default(), stop).is_ok())
            })
            .collect();
        let heard = heard.into_iter().map(|each| each.join().unwrap());
        heard.filter(|is_heard| *is_heard).count()
    })
}

#[test]
fn a_crowd_that_says_nothing_makes_place_for_those_who_come() {
    let security = Security::default();
    let listener = Listener::bind("127.0.0.1:0", &security, false).unwrap();
    let address = listener.address().to_string();
    let stop = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, CROWD + 1, &stop));
        let mut crowd: Vec<TcpStream> = (0..CROWD)
            .map(|_| TcpStream::connect(&address).unwrap())
            .collect();
        let opened = open(&address, &security);
        assert!(opened.is_ok(), "{}", error(opened));
        assert_eq!(crowd[0].read(&mut [0]).unwrap(), 0, "the first of them is closed");
        let last = crowd.last_mut().unwrap();
        last.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        assert!(last.read(&mut [0]).is_err(), "the last of them has its time");
        stop.store(true, Ordering::Relaxed);
        assert_eq!(server.join().unwrap(), 1);
    });
}

#[test]
fn a_crowd_of_one_address_closes_none_of_another() {
    let security = Security::default();
    let listener = Listener::bind("0.0.0.0:0", &security, true).unwrap();
    let port = listener.address().port();
    let mut other = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut held = vec![listener.accept().unwrap()];
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(connect_from([127, 0, 0, 2], port));
        held.push(listener.accept().unwrap());
    }
    other.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert!(
        other.read(&mut [0]).is_err(),
        "it is older than all, and not closed"
    );
    assert_eq!(crowd[0].read(&mut [0]).unwrap(), 0);
}

/// A connection to this machine from another of its own addresses.
fn connect_from(address: [u8; 4], port: u16) -> TcpStream {
    use socket2::{Domain, SockAddr, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let own = SockAddr::from(std::net::SocketAddr::from((address, 0)));
    socket.bind(&own).unwrap();
    let there = SockAddr::from(std::net::SocketAddr::from(([127, 0, 0, 1], port)));
    socket.connect(&there).unwrap();
    socket.into()
}

#[test]
fn a_refused_connection_is_worth_another_try() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = error(open(&address, &Security::default()));
    assert!(matches!(error, Error::Connect { .. }) && error.is_retryable());
}
