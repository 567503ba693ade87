//! The first words on a connection, as JSON: versions, who is there, and proofs of the token.
//!
//! ```text
//! client                                server
//! Opening { protocol, nonce, hello } →
//!                                     ← Return { protocol, nonce, hello, proof }
//! Proof { proof }                    →
//!                                     ← Welcome { welcome: true }
//! ```
//!
//! All are frames of kind `Hello`; instead of an answer a `Refused` with a [`Refusal`] may come. Whoever
//! speaks here is a stranger: messages are short, and names are fit for a log.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Longest message of a stranger.
pub const MAX_HELLO_BYTES: u32 = 16 << 10;

const NONCE_DIGITS: usize = 32;
/// Of a name and of a feature.
const MAX_NAME_BYTES: usize = 256;
const MAX_FEATURES: usize = 64;

/// What a process is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Pserver,
    Trainer,
    Admin,
}

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub role: Role,
    /// For logs: a host name, a rank.
    pub name: String,
    /// What this process can do beyond the protocol version.
    #[serde(default)]
    pub features: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    pub protocol: u32,
    pub nonce: String,
    pub hello: Hello,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    pub protocol: u32,
    pub nonce: String,
    pub hello: Hello,
    /// Of the server; empty where it asks for none.
    pub proof: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    pub proof: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    pub welcome: bool,
}

/// Why a request is not granted; `code` is for programs, `reason` for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub code: String,
    pub reason: String,
}

/// The protocol of an opening or a return of any version: the one thing that all of them share.
pub fn protocol(payload: &[u8]) -> Result<u32, Error> {
    #[derive(Deserialize)]
    struct Versioned {
        protocol: u32,
    }
    json::<Versioned>(payload).map(|message| message.protocol)
}

impl Opening {
    pub fn decode(payload: &[u8]) -> Result<Self, Error> {
        let message: Self = json(payload)?;
        check_nonce(&message.nonce)?;
        message.hello.check()?;
        Ok(message)
    }
}

impl Return {
    pub fn decode(payload: &[u8]) -> Result<Self, Error> {
        let message: Self = json(payload)?;
        check_nonce(&message.nonce)?;
        message.hello.check()?;
        Ok(message)
    }
}

impl Hello {
    fn check(&self) -> Result<(), Error> {
        let is_fit = |name: &String| name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control);
        if !is_fit(&self.name) {
            return Err(unreadable("the name of a peer is no name"));
        }
        if self.features.len() > MAX_FEATURES || !self.features.iter().all(is_fit) {
            return Err(unreadable("the features of a peer are no list of names"));
        }
        Ok(())
    }
}

fn check_nonce(nonce: &str) -> Result<(), Error> {
    if nonce.len() == NONCE_DIGITS && nonce.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(unreadable("a nonce is not 32 hexadecimal digits"))
}

fn json<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(payload).map_err(|error| unreadable(&error.to_string()))
}

fn unreadable(reason: &str) -> Error {
    Error::Json {
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn opening(name: &str) -> Opening {
        Opening {
            protocol: 1,
            nonce: "0123456789abcdefABCDEF0123456789".to_owned(),
            hello: Hello {
                role: Role::Trainer,
                name: name.to_owned(),
                features: BTreeSet::from(["bf16".to_owned()]),
            },
        }
    }

    fn payload(message: &impl Serialize) -> Vec<u8> {
        serde_json::to_vec(message).unwrap()
    }

    #[test]
    fn an_opening_is_read_as_it_was_written() {
        let opening = opening("host-7");
        assert_eq!(Opening::decode(&payload(&opening)).unwrap(), opening);
    }

    #[test]
    fn the_protocol_of_a_message_in_another_form_is_found() {
        assert_eq!(protocol(br#"{"protocol": 7, "salt": [1, {"a": null}]}"#), Ok(7));
        assert!(protocol(br#"{"version": 7}"#).is_err());
    }

    #[test]
    fn names_that_would_break_a_log_are_refused() {
        for name in ["a\nlevel=error all is lost", "\u{1b}[31m", &"x".repeat(257)] {
            assert!(Opening::decode(&payload(&opening(name))).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_nonce_of_another_form_is_refused() {
        for nonce in ["", "0123", "0123456789abcdef0123456789abcde/"] {
            let mut opening = opening("host");
            nonce.clone_into(&mut opening.nonce);
            assert!(Opening::decode(&payload(&opening)).is_err(), "{nonce:?}");
        }
    }

    #[test]
    fn too_many_features_are_refused() {
        let mut opening = opening("host");
        opening.hello.features = (0..65).map(|number| number.to_string()).collect();
        assert!(Opening::decode(&payload(&opening)).is_err());
    }
}
