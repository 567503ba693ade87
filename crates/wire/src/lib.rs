//! Frames between trainers and parameter servers, as pure functions over bytes.
//!
//! ```text
//! frame   = magic u32 | kind u8 | shared u8 | 0 u8[2] | length u32 | crc u32 | request u64 | payload (length bytes)
//! ```
//!
//! Numbers are little-endian. The crc is CRC-32 of kind, request and payload. Where `shared` is 1 the payload is not
//! part of the frame: it lies in memory of both processes, and the crc is of kind, request and length. Control messages are JSON;
//! steps and rows, which travel once a batch, are packed ([`step`], [`rows`]). Nothing here opens a socket,
//! and every length is checked against what is there before it is used.

mod bytes;
mod error;
mod frame;
pub mod hello;
pub mod numbers;
pub mod rows;
pub mod step;
mod timing;

pub use bytes::{Lent, Reader, Writer};
pub use error::Error;
pub use frame::{FIRST_BYTE, Frame, HEADER_BYTES, Header, Kind, MAX_PAYLOAD};
pub use timing::Timing;

/// Raised with every change that an older peer would misread; peers of different versions part at hello.
pub const PROTOCOL_VERSION: u32 = 1;

/// All tables of a cluster are cut into 2^this buckets, which are what is placed on servers.
pub const BUCKET_BITS: u32 = 10;

/// Where each server's slice of the dense part begins, and the end: slices of nearly equal size.
pub fn dense_bounds(num_dense: usize, num_servers: usize) -> Vec<usize> {
    (0..=num_servers)
        .map(|server| num_dense * server / num_servers)
        .collect()
}

/// How numbers are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    Fp32,
    Bf16,
}

impl Precision {
    pub fn bytes(self) -> usize {
        match self {
            Self::Fp32 => 4,
            Self::Bf16 => 2,
        }
    }

    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Fp32 => 0,
            Self::Bf16 => 1,
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Result<Self, Error> {
        match byte {
            0 => Ok(Self::Fp32),
            1 => Ok(Self::Bf16),
            other => Err(Error::value("precision", u64::from(other))),
        }
    }
}
