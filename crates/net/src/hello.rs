//! Hello between strangers: both sides learn who is there and prove that they know the token.

use clickmill_wire::hello::{self, Hello, MAX_HELLO_BYTES, Opening, Proof, Return, Welcome};
use clickmill_wire::{Frame, Kind, PROTOCOL_VERSION};

use crate::sharing;
use crate::token::nonce;
use crate::{Connection, Deadline, Error, Security};

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
    hear(connection, &mut frame, deadline)?;
    check_version(connection, &frame)?;
    let theirs = Return::decode(frame.payload()).map_err(|source| connection.wire(source))?;
    let proof = match &security.token {
        None if theirs.proof.is_empty() => String::new(),
        None => return Err(wrong(connection, "asks for a token, and this process has none")),
        Some(_) if theirs.proof.is_empty() => {
            return Err(wrong(connection, "has no token, and this process asks for one"));
        }
        Some(token) => {
            if !token.accepts(&theirs.proof, "server", &theirs.nonce, &mine) {
                return Err(wrong(connection, "does not know the token of this process"));
            }
            token.proof("client", &mine, &theirs.nonce)
        }
    };
    connection.send_json(&Proof { proof }, Kind::Hello, 0, deadline)?;
    hear(connection, &mut frame, deadline)?;
    let _: Welcome = connection.json(frame.payload())?;
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
    hear(connection, &mut frame, deadline)?;
    if let Err(error) = check_version(connection, &frame) {
        // In the form of this version: all that a peer of another one reads of it is the protocol.
        let returned = serde_json::json!({ "protocol": PROTOCOL_VERSION });
        connection.send_json(&returned, Kind::Hello, 0, deadline)?;
        return Err(error);
    }
    let theirs = Opening::decode(frame.payload()).map_err(|source| connection.wire(source))?;
    let mine = nonce();
    let proof = security.token.as_ref();
    let mut own = own.clone();
    if security.tls.is_none() {
        own.features.insert(sharing::FEATURE.to_owned());
    }
    let returned = Return {
        protocol: PROTOCOL_VERSION,
        nonce: mine.clone(),
        hello: own,
        proof: proof.map_or_else(String::new, |token| token.proof("server", &mine, &theirs.nonce)),
    };
    connection.send_json(&returned, Kind::Hello, 0, deadline)?;
    hear(connection, &mut frame, deadline)?;
    let given: Proof = connection.json(frame.payload())?;
    if let Some(token) = &security.token
        && !token.accepts(&given.proof, "client", &theirs.nonce, &mine)
    {
        connection.refuse("token", "the token is not the one of this cluster", 0, deadline)?;
        return Err(wrong(connection, "does not know the token of this process"));
    }
    connection.send_json(&Welcome { welcome: true }, Kind::Hello, 0, deadline)?;
    Ok(theirs.hello)
}

/// The next frame of hello; a stranger gets no more memory than that takes.
fn hear(connection: &mut Connection, frame: &mut Frame, deadline: Deadline) -> Result<(), Error> {
    let header = connection.receive_up_to(MAX_HELLO_BYTES, frame, deadline)?;
    if header.kind == Kind::Hello {
        return Ok(());
    }
    Err(connection.unexpected(header.kind, frame))
}

fn check_version(connection: &Connection, frame: &Frame) -> Result<(), Error> {
    let found = hello::protocol(frame.payload()).map_err(|source| connection.wire(source))?;
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
