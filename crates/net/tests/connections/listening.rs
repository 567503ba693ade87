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

#[test]
fn strangers_beyond_number_are_closed_at_once() {
    let security = Security::default();
    let mut listener = Listener::bind("127.0.0.1:0", &security, false).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    listener.stop_with(Arc::clone(&stop));
    let address = listener.address();
    let mut held = Vec::new();
    for _ in 0..256 {
        held.push((TcpStream::connect(address).unwrap(), listener.accept().unwrap()));
    }
    let mut one_more = TcpStream::connect(address).unwrap();
    thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.accept().err());
        assert_eq!(one_more.read(&mut [0]).unwrap(), 0);
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(accepting.join().unwrap(), Some(Error::Stopped)));
    });
    stop.store(false, Ordering::Relaxed);
    held.pop();
    let _again = TcpStream::connect(address).unwrap();
    assert!(listener.accept().is_ok());
}

#[test]
fn a_refused_connection_is_worth_another_try() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = error(open(&address, &Security::default()));
    assert!(matches!(error, Error::Connect { .. }) && error.is_retryable());
}
