//! The secret that all members of a cluster know.
//!
//! It never travels: each side proves that it knows the secret by a keyed hash over numbers that both have
//! just drawn, so a proof that is overheard is good for nothing.

use std::fmt::{self, Write};
use std::path::Path;
use std::sync::Arc;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::Error;

/// Shorter secrets can be guessed.
const MIN_BYTES: usize = 16;

#[derive(Clone)]
pub struct Token {
    key: Arc<hmac::Key>,
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(..)")
    }
}

impl Token {
    pub fn new(secret: &str) -> Result<Self, String> {
        let secret = secret.trim();
        if secret.len() < MIN_BYTES {
            return Err(format!(
                "the token has {} characters; use {MIN_BYTES} or more, drawn at random",
                secret.len()
            ));
        }
        Ok(Self {
            key: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())),
        })
    }

    pub fn read(file: &Path) -> Result<Self, Error> {
        let failed = |reason: String| Error::File {
            file: file.to_owned(),
            reason,
        };
        let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
        Self::new(&text).map_err(failed)
    }

    pub(crate) fn proof(&self, side: &str, own: &str, other: &str) -> String {
        hex(hmac::sign(&self.key, &message(side, own, other)).as_ref())
    }

    pub(crate) fn accepts(&self, proof: &str, side: &str, own: &str, other: &str) -> bool {
        // `verify` takes the same time for every wrong proof.
        unhex(proof).is_some_and(|proof| hmac::verify(&self.key, &message(side, own, other), &proof).is_ok())
    }
}

fn message(side: &str, own: &str, other: &str) -> Vec<u8> {
    format!("clickmill/{side}/{own}/{other}").into_bytes()
}

/// A number that nobody has seen before.
pub(crate) fn nonce() -> String {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system has random numbers");
    hex(&bytes)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all that is written to it");
    }
    text
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
