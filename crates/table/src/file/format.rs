//! The bytes of a table file.
//!
//! ```text
//! file   = magic "CLKMTBL\n" | version u32 | length u32 | header (JSON, length bytes) | crc u32 | block*
//! block  = kind u8 | 0 u8[3] | length u32 | payload (length bytes) | crc u32
//! kinds  = 'S' counters of the admission sketch, 'T' signs u64[] that were evicted, 'R' rows, 'F' the end
//! row    = sign u64 | step u32 | floats f32[] (statistics, state, weights)
//! end    = rows u64 | tombstones u64 | xxh3-128 of all bytes before this block
//! ```
//!
//! Numbers are little-endian; each crc is CRC-32 of everything from its part's first byte. Blocks come in
//! the order of the kinds above, the end is the last byte of the file. Rows are not sorted.

use serde::{Deserialize, Serialize};

use crate::config::TableConfig;

pub(crate) const MAGIC: [u8; 8] = *b"CLKMTBL\n";
pub(crate) const VERSION: u32 = 1;
/// Longest header: a wrong length must not turn into a huge allocation.
pub(crate) const MAX_HEADER: u32 = 64 << 20;
/// Longest payload of a block that is written and read.
pub(crate) const MAX_PAYLOAD: usize = 1 << 20;
pub(crate) const END_PAYLOAD: usize = 32;
/// Most steps of a learning-rate history: 2 GiB of numbers.
pub(crate) const MAX_HISTORY: u32 = 1 << 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Sketch,
    Tombstones,
    Rows,
    End,
}

impl Kind {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Sketch => b'S',
            Self::Tombstones => b'T',
            Self::Rows => b'R',
            Self::End => b'F',
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Sketch, Self::Tombstones, Self::Rows, Self::End]
            .into_iter()
            .find(|kind| kind.byte() == byte)
    }
}

/// Everything about the table that is not a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub config: TableConfig,
    /// Id of the save that this one builds on; none in a full save.
    pub base: Option<String>,
    pub step: u32,
    pub done: u32,
    pub decays: u32,
    /// Adam's learning rates: (first step, rate), and the steps known.
    pub history: Vec<(u32, f32)>,
    pub history_steps: u32,
    pub sketch_sightings: u64,
}

/// The id of a save: its digest in hexadecimal.
pub(crate) fn id(digest: u128) -> String {
    format!("{digest:032x}")
}
