//! Peers made of bytes: they say what no process of ours would.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use clickmill_net::{Connection, Security};
use clickmill_wire::hello::{Hello, Return, Role, Welcome};
use clickmill_wire::{Frame, HEADER_BYTES, Header, Kind};

use crate::open;

pub(crate) struct Raw {
    pub(crate) socket: TcpStream,
}

impl Raw {
    pub(crate) fn connect(address: &str) -> Self {
        Self {
            socket: TcpStream::connect(address).unwrap(),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    pub(crate) fn send_json(&mut self, kind: Kind, message: &impl serde::Serialize) {
        let payload = serde_json::to_vec(message).unwrap();
        self.write(&frame(kind, &payload));
    }

    pub(crate) fn receive(&mut self) -> (Kind, Vec<u8>) {
        let mut head = [0; HEADER_BYTES];
        self.socket.read_exact(&mut head).unwrap();
        let header = Header::decode(&head).unwrap();
        let mut payload = vec![0; header.length as usize];
        self.socket.read_exact(&mut payload).unwrap();
        header.check(&payload).unwrap();
        (header.kind, payload)
    }

    /// The server's side of hello, without a token.
    pub(crate) fn welcome(&mut self, protocol: u32) {
        self.receive();
        let returned = Return {
            protocol,
            nonce: "0".repeat(32),
            hello: Hello {
                role: Role::Pserver,
                name: "raw".to_owned(),
                features: std::collections::BTreeSet::default(),
            },
            proof: String::new(),
        };
        self.send_json(Kind::Hello, &returned);
        self.receive();
        self.send_json(Kind::Hello, &Welcome { welcome: true });
    }

    /// Until the other side closes.
    pub(crate) fn wait_for_end(mut self) {
        let _ = self.socket.read_to_end(&mut Vec::new());
    }
}

pub(crate) fn frame(kind: Kind, payload: &[u8]) -> Vec<u8> {
    let mut frame = Frame::default();
    frame.begin().bytes(payload);
    frame.finish(kind, 0).unwrap().to_vec()
}

/// `server` speaks with the one client that connects, and `client` with it, after hello.
pub(crate) fn served(server: impl FnOnce(Raw) + Send, client: impl FnOnce(Connection, String)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (socket, _) = listener.accept().unwrap();
            let mut raw = Raw { socket };
            raw.welcome(clickmill_wire::PROTOCOL_VERSION);
            server(raw);
        });
        client(open(&address, &Security::default()).unwrap(), address);
    });
}
