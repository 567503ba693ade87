//! Connections over real sockets on this machine, with peers that keep to the protocol and peers that do not.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod listening;
mod raw;
mod sharing;
mod tls;
mod tokens;
mod waits;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clickmill_net::{Connection, Deadline, Error, Hello, Listener, Role, Security, Token};

/// Far beyond what anything here takes.
fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// For waits that are to end by their deadline.
fn brief() -> Deadline {
    Deadline::after(Duration::from_millis(300))
}

fn hello(role: Role, name: &str) -> Hello {
    Hello {
        role,
        name: name.to_owned(),
        features: BTreeSet::from(["bf16".to_owned()]),
    }
}

fn with_token(secret: &str) -> Security {
    Security {
        token: Some(Token::new(secret).unwrap()),
        tls: None,
    }
}

fn open(address: &str, security: &Security) -> Result<Connection, Error> {
    Connection::open(
        address,
        &hello(Role::Trainer, "trainer-0"),
        security,
        soon(),
        Arc::default(),
    )
}

fn welcome(listener: &Listener, security: &Security) -> Result<Connection, Error> {
    let own = hello(Role::Pserver, "pserver-0");
    listener
        .accept()
        .unwrap()
        .welcome(&own, security, Arc::default(), Arc::default())
}

/// What a client and a server with these secrets make of each other.
fn meet(client: &Security, server: &Security) -> (Result<Connection, Error>, Result<Connection, Error>) {
    let listener = Listener::bind("127.0.0.1:0", server, false).unwrap();
    let address = listener.address().to_string();
    thread::scope(|scope| {
        let welcomed = scope.spawn(|| welcome(&listener, server));
        let opened = open(&address, client);
        (opened, welcomed.join().unwrap())
    })
}

fn error(outcome: Result<Connection, Error>) -> Error {
    outcome.err().expect("no connection is made")
}
