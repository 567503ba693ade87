//! When a server had a request and what it did with its time, in front of every answer to a step.
//!
//! ```text
//! timing  = received u64 | pushing u32 | waiting u32
//! ```
//!
//! `received` is the server's clock when the last byte of the request was there, in microseconds since 1970; the
//! others are microseconds. With them a trainer can tell the way to the server from the way back.

use crate::{Error, Reader, Writer};

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    pub received_us: u64,
    /// Spent on what the request brought: reading it, waiting for a turn, applying it.
    pub pushing_us: u32,
    /// Spent waiting for other trainers.
    pub waiting_us: u32,
}

impl Timing {
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u64(self.received_us);
        out.u32(self.pushing_us);
        out.u32(self.waiting_us);
    }

    /// The timing of an answer, and what follows it.
    pub fn decode(payload: &[u8]) -> Result<(Self, &[u8]), Error> {
        let mut bytes = Reader::new(payload);
        let timing = Self {
            received_us: bytes.u64("when the request was received")?,
            pushing_us: bytes.u32("the time spent on a push")?,
            waiting_us: bytes.u32("the time spent waiting")?,
        };
        Ok((timing, bytes.rest()))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn what_follows_a_timing_is_left_as_it_is() {
        let timing = Timing {
            received_us: 1_700_000_000_000_000,
            pushing_us: 12,
            waiting_us: 7,
        };
        let mut frame = crate::Frame::default();
        let mut out = frame.begin();
        timing.encode(&mut out);
        out.bytes(b"rows");
        let payload = frame.payload();
        assert_eq!(Timing::decode(payload).unwrap(), (timing, &b"rows"[..]));
        assert!(Timing::decode(&payload[..15]).is_err());
    }
}
