//! The first words on a connection: versions, features, who is there, and proofs of the token.

use std::collections::BTreeSet;

use clickmill_wire::{Frame, Kind, PROTOCOL_VERSION};
use serde::{Deserialize, Serialize};

use crate::token::nonce;
use crate::{Connection, Deadline, Error, Security};

/// What a process is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Pserver,
    Trainer,
    Admin,
}

/// Who speaks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    pub role: Role,
    /// For logs: a host name, a rank.
    pub name: String,
    /// What this process can do beyond the protocol version.
    #[serde(default)]
    pub features: BTreeSet<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Opening {
    protocol: u32,
    nonce: String,
    hello: Hello,
}

#[derive(Debug, Serialize, Deserialize)]
struct Return {
    protocol: u32,
    nonce: String,
    hello: Hello,
    /// Of the server; empty where it asks for none.
    proof: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Proof {
    proof: String,
}

/// Why a request is not granted; `code` is for programs, `reason` for people.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub code: String,
    pub reason: String,
}

/// The side that has connected.
pub(crate) fn greet(
    connection: &mut Connection,
    own: &Hello,
    security: &Security,
    deadline: Deadline,
) -> Result<Hello, Error> {
    let mut frame = Frame::default();
    let mine = nonce();
    let opening = Opening {
        protocol: PROTOCOL_VERSION,
        nonce: mine.clone(),
        hello: own.clone(),
    };
    connection.send_json(&opening, Kind::Hello, 0, deadline)?;
    let (_, theirs): (u64, Return) = connection.receive_json(&mut frame, Kind::Hello, deadline)?;
    check_version(connection, theirs.protocol)?;
    let proof = match &security.token {
        None if theirs.proof.is_empty() => String::new(),
        None => return Err(wrong(connection, "asks for a token, and this process has none")),
        Some(token) => {
            if !token.accepts(&theirs.proof, "server", &theirs.nonce, &mine) {
                return Err(wrong(connection, "does not know the token of this process"));
            }
            token.proof("client", &mine, &theirs.nonce)
        }
    };
    connection.send_json(&Proof { proof }, Kind::Hello, 0, deadline)?;
    let (_, _): (u64, serde_json::Value) = connection.receive_json(&mut frame, Kind::Hello, deadline)?;
    Ok(theirs.hello)
}

/// The side that was connected to.
pub(crate) fn answer(
    connection: &mut Connection,
    own: &Hello,
    security: &Security,
    deadline: Deadline,
) -> Result<Hello, Error> {
    let mut frame = Frame::default();
    let (_, theirs): (u64, Opening) = connection.receive_json(&mut frame, Kind::Hello, deadline)?;
    let mine = nonce();
    let proof = security.token.as_ref();
    let returned = Return {
        protocol: PROTOCOL_VERSION,
        nonce: mine.clone(),
        hello: own.clone(),
        proof: proof.map_or_else(String::new, |token| token.proof("server", &mine, &theirs.nonce)),
    };
    connection.send_json(&returned, Kind::Hello, 0, deadline)?;
    check_version(connection, theirs.protocol)?;
    let (_, given): (u64, Proof) = connection.receive_json(&mut frame, Kind::Hello, deadline)?;
    if let Some(token) = &security.token
        && !token.accepts(&given.proof, "client", &theirs.nonce, &mine)
    {
        connection.refuse("token", "the token is not the one of this cluster", 0, deadline)?;
        return Err(wrong(connection, "does not know the token of this process"));
    }
    connection.send_json(&serde_json::json!({ "welcome": true }), Kind::Hello, 0, deadline)?;
    Ok(theirs.hello)
}

fn check_version(connection: &Connection, found: u32) -> Result<(), Error> {
    if found == PROTOCOL_VERSION {
        return Ok(());
    }
    Err(Error::Version {
        peer: connection.peer().to_owned(),
        expected: PROTOCOL_VERSION,
        found,
    })
}

fn wrong(connection: &Connection, reason: &'static str) -> Error {
    Error::Token {
        peer: connection.peer().to_owned(),
        reason,
    }
}
