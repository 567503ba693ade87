//! The envelope of every message.

use crate::bytes::{Buffer, Lent};
use crate::{Error, Writer};

pub const HEADER_BYTES: usize = 24;
/// Longest payload that is taken: a wrong length must not turn into a huge allocation.
pub const MAX_PAYLOAD: u32 = 1 << 30;

/// Memory that a frame may take before its first byte has arrived.
const FIRST_ROOM: usize = 1 << 20;

const MAGIC: u32 = u32::from_le_bytes(*b"CKM1");
/// With which every frame begins, and nothing that is encrypted.
pub const FIRST_BYTE: u8 = MAGIC.to_le_bytes()[0];

/// What a payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Who is there; the first frame of either side. JSON.
    Hello,
    /// A request or an answer of the coordinator. JSON.
    Control,
    /// Gradients of one batch and keys of the next.
    Step,
    /// All servers hold a push: apply it.
    Commit,
    /// A push is held.
    Held,
    /// Rows and dense parameters.
    Rows,
    /// The answer is not ready; whom it waits for, as text.
    Waiting,
    /// The request is refused. JSON.
    Refused,
    /// Memory that both sides can reach, and whether the other side has found it. JSON.
    Memory,
}

const KINDS: [Kind; 9] = [
    Kind::Hello,
    Kind::Control,
    Kind::Step,
    Kind::Commit,
    Kind::Held,
    Kind::Rows,
    Kind::Waiting,
    Kind::Refused,
    Kind::Memory,
];

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Self::Hello => b'H',
            Self::Control => b'C',
            Self::Step => b'S',
            Self::Commit => b'M',
            Self::Held => b'D',
            Self::Rows => b'R',
            Self::Waiting => b'W',
            Self::Refused => b'X',
            Self::Memory => b'P',
        }
    }

    fn from_byte(byte: u8) -> Result<Self, Error> {
        KINDS
            .into_iter()
            .find(|kind| kind.byte() == byte)
            .ok_or(Error::value("the kind of a frame", u64::from(byte)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    /// The payload does not follow, it lies in memory that both sides share.
    pub is_shared: bool,
    pub length: u32,
    pub crc: u32,
    /// The answer to a request has its number.
    pub request: u64,
}

impl Header {
    /// Of a payload of `length` bytes that lies in shared memory, and is not checked.
    pub fn shared(kind: Kind, request: u64, length: u32) -> Self {
        let mut header = Self {
            kind,
            is_shared: true,
            length,
            crc: 0,
            request,
        };
        header.crc = header.begin_checksum().finalize();
        header
    }

    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&[self.kind.byte(), u8::from(self.is_shared)]);
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.crc.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.request.to_le_bytes());
        bytes
    }

    /// Reads a header; the payload that belongs to it has `length` bytes.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Error> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if word(0) != MAGIC {
            return Err(Error::Magic { found: word(0) });
        }
        if bytes[5] > 1 {
            return Err(Error::value("the place of a payload", u64::from(bytes[5])));
        }
        if let Some(&found) = bytes[6..8].iter().find(|&&byte| byte != 0) {
            return Err(Error::value("a byte that is always zero", u64::from(found)));
        }
        let length = word(8);
        if length > MAX_PAYLOAD {
            return Err(Error::Length {
                found: u64::from(length),
                allowed: u64::from(MAX_PAYLOAD),
            });
        }
        Ok(Self {
            kind: Kind::from_byte(bytes[4])?,
            is_shared: bytes[5] == 1,
            length,
            crc: word(12),
            request: u64::from(word(16)) | u64::from(word(20)) << 32,
        })
    }

    pub fn check(&self, payload: &[u8]) -> Result<(), Error> {
        let mut checksum = self.checksum();
        checksum.update(payload);
        checksum.check()
    }

    /// For a payload that is checked as it arrives.
    pub fn checksum(&self) -> Checksum {
        Checksum {
            crc: self.begin_checksum(),
            expected: self.crc,
        }
    }

    fn begin_checksum(&self) -> crc32fast::Hasher {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&[self.kind.byte()]);
        crc.update(&self.request.to_le_bytes());
        if self.is_shared {
            crc.update(&self.length.to_le_bytes());
        }
        crc
    }
}

/// Of a payload that arrives piece by piece: each is looked at while it is still in the processor's cache, and the
/// peer sends the next.
#[derive(Clone, Debug)]
pub struct Checksum {
    crc: crc32fast::Hasher,
    expected: u32,
}

impl Checksum {
    pub fn update(&mut self, piece: &[u8]) {
        self.crc.update(piece);
    }

    /// After the last piece.
    pub fn check(self) -> Result<(), Error> {
        let (found, expected) = (self.crc.finalize(), self.expected);
        if found == expected {
            return Ok(());
        }
        Err(Error::Checksum { expected, found })
    }
}

/// A frame under construction, or one that has arrived: the header's bytes and the payload in one buffer.
/// Its memory stays for the frame after it.
#[derive(Debug, Default)]
pub struct Frame {
    buffer: Buffer,
    next: Option<Box<dyn Lent>>,
}

impl Frame {
    /// Memory for the frame that is begun next, as long as its bytes fit; or none.
    pub fn lend(&mut self, memory: Option<Box<dyn Lent>>) {
        self.buffer.clear();
        self.next = memory;
    }

    /// Whether the frame lies in memory that was lent.
    pub fn is_lent(&self) -> bool {
        self.buffer.is_lent()
    }

    /// Empties the frame and gives back what was lent.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.next = None;
    }

    /// Empties the frame; what is appended to the result is the payload.
    pub fn begin(&mut self) -> Writer<'_> {
        self.buffer.clear();
        if let Some(memory) = self.next.take() {
            self.buffer.lend(memory, 0);
        }
        self.buffer.grow(HEADER_BYTES);
        Writer::new(&mut self.buffer)
    }

    /// Puts the header before the payload and gives all bytes; a frame that was not begun is empty.
    pub fn finish(&mut self, kind: Kind, request: u64) -> Result<&[u8], Error> {
        if self.buffer.filled().is_empty() {
            self.begin();
        }
        let (header, payload) = self.buffer.filled_mut().split_at_mut(HEADER_BYTES);
        let allowed = u64::from(MAX_PAYLOAD);
        let found = payload.len() as u64;
        let length = u32::try_from(found).ok().filter(|&length| length <= MAX_PAYLOAD);
        let length = length.ok_or(Error::Length { found, allowed })?;
        let mut made = Header {
            kind,
            is_shared: false,
            length,
            crc: 0,
            request,
        };
        let mut crc = made.begin_checksum();
        crc.update(payload);
        made.crc = crc.finalize();
        header.copy_from_slice(&made.encode());
        Ok(self.buffer.filled())
    }

    /// A payload of `length` bytes that lies where a frame of its own would have it.
    pub fn receive_lent(&mut self, memory: Box<dyn Lent>, length: usize) {
        self.buffer.lend(memory, HEADER_BYTES + length);
    }

    /// Room for a header, and the payload.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.filled()
    }

    pub fn payload(&self) -> &[u8] {
        self.buffer.filled().get(HEADER_BYTES..).unwrap_or_default()
    }

    /// Room for what follows the first `arrived` bytes of the payload of `header`, to be filled from a
    /// connection; empty when the payload is whole.
    ///
    /// Not always all of it: memory that no frame has needed yet is taken as fast as bytes arrive, so that
    /// a peer does not get it for a length alone.
    pub fn receive(&mut self, header: &Header, arrived: usize) -> &mut [u8] {
        if self.buffer.is_lent() {
            self.buffer.clear();
        }
        let arrived = HEADER_BYTES + arrived;
        let whole = HEADER_BYTES + header.length as usize;
        let end = whole.min(self.buffer.capacity().max(arrived + arrived.max(FIRST_ROOM)));
        self.buffer.truncate(arrived);
        let missing = arrived - self.buffer.filled().len();
        self.buffer.grow(missing + end.saturating_sub(arrived));
        &mut self.buffer.filled_mut()[arrived..]
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn made(kind: Kind, request: u64, payload: &[u8]) -> Vec<u8> {
        let mut frame = Frame::default();
        frame.begin().bytes(payload);
        frame.finish(kind, request).unwrap().to_vec()
    }

    fn header(bytes: &[u8]) -> Result<Header, Error> {
        Header::decode(bytes[..HEADER_BYTES].try_into().unwrap())
    }

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        for kind in KINDS {
            let bytes = made(kind, 0x1234_5678_9abc_def0, b"payload");
            let header = header(&bytes).unwrap();
            assert_eq!((header.kind, header.request), (kind, 0x1234_5678_9abc_def0));
            assert_eq!(header.length, 7);
            header.check(&bytes[HEADER_BYTES..]).unwrap();
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = made(Kind::Step, 7, b"gradients");
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let is_found = match header(&damaged) {
                Err(_) => true,
                Ok(header) => {
                    header.length as usize != bytes.len() - HEADER_BYTES
                        || header.check(&damaged[HEADER_BYTES..]).is_err()
                }
            };
            assert!(is_found, "bit {bit}");
        }
    }

    #[test]
    fn a_flipped_bit_in_the_header_of_a_shared_payload_is_found() {
        let bytes = Header::shared(Kind::Step, 7, 1 << 20).encode();
        let intact = header(&bytes).unwrap();
        assert!(intact.is_shared);
        intact.check(b"").unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            let is_found = header(&damaged).is_err_and(|_| true)
                || header(&damaged).is_ok_and(|header| !header.is_shared || header.check(b"").is_err());
            assert!(is_found, "bit {bit}");
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_anything_is_allocated() {
        let mut bytes = made(Kind::Rows, 1, b"");
        bytes[8..12].copy_from_slice(&(MAX_PAYLOAD + 1).to_le_bytes());
        assert!(matches!(header(&bytes), Err(Error::Length { .. })));
    }

    /// Arrives in pieces of `step` bytes.
    fn arrive(frame: &mut Frame, bytes: &[u8], step: usize) -> Header {
        let header = header(bytes).unwrap();
        let mut left = &bytes[HEADER_BYTES..];
        let mut arrived = 0;
        loop {
            let room = frame.receive(&header, arrived);
            let count = step.min(room.len());
            if count == 0 {
                assert!(left.is_empty());
                return header;
            }
            room[..count].copy_from_slice(&left[..count]);
            left = &left[count..];
            arrived += count;
        }
    }

    #[test]
    fn frames_of_any_length_follow_each_other_in_one_buffer() {
        let mut frame = Frame::default();
        for (length, step) in [(7, 7), (3 << 20, 100_000), (0, 1), (5, 2), (2 << 20, 1 << 20)] {
            let payload: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let bytes = made(Kind::Rows, 1, &payload);
            let header = arrive(&mut frame, &bytes, step);
            assert!(frame.payload() == payload, "{length} bytes");
            header.check(frame.payload()).unwrap();
            frame.begin().bytes(b"own");
            assert_eq!(frame.payload(), b"own");
            assert_eq!(frame.finish(Kind::Rows, 1).unwrap().len(), HEADER_BYTES + 3);
        }
    }

    #[test]
    fn a_length_alone_takes_little_memory() {
        let mut bytes = made(Kind::Rows, 1, b"");
        bytes[8..12].copy_from_slice(&MAX_PAYLOAD.to_le_bytes());
        let mut frame = Frame::default();
        let header = header(&bytes).unwrap();
        assert!(frame.receive(&header, 0).len() <= 2 * FIRST_ROOM);
        // As much again as has arrived, so that long frames do not arrive in short pieces.
        assert!(frame.receive(&header, 2 * FIRST_ROOM).len() <= 4 * FIRST_ROOM);
    }

    #[test]
    fn a_frame_that_was_not_begun_is_empty() {
        let mut frame = Frame::default();
        let bytes = frame.finish(Kind::Held, 9).unwrap();
        let header = header(bytes).unwrap();
        assert_eq!((header.kind, header.length), (Kind::Held, 0));
        assert_eq!(frame.payload(), b"");
    }
}
