//! The checked parts of a table file, one behind the other: lengths before memory, checksums before belief.

use std::io::Read;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use super::format::{Header, Kind, MAGIC, MAX_HEADER, MAX_PAYLOAD, VERSION};
use crate::Error;

pub(super) fn damage(
    path: &Path,
    offset: u64,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> Error {
    Error::Format {
        file: path.to_owned(),
        offset,
        expected: expected.into(),
        found: found.into(),
    }
}

/// Reads checked parts one behind the other, with the offset for errors.
pub(super) struct Scanner<'a, R> {
    input: R,
    pub(super) path: &'a Path,
    pub(super) offset: u64,
    digest: Xxh3,
    buffer: Vec<u8>,
}

impl<'a, R: Read> Scanner<'a, R> {
    pub(super) fn new(input: R, path: &'a Path) -> Self {
        Self {
            input,
            path,
            offset: 0,
            digest: Xxh3::new(),
            buffer: Vec::new(),
        }
    }

    pub(super) fn wrong(&self, offset: u64, expected: impl Into<String>, found: impl Into<String>) -> Error {
        damage(self.path, offset, expected, found)
    }

    pub(super) fn digest(&self) -> u128 {
        self.digest.digest128()
    }

    /// Appends `count` bytes to the buffer, which grows only as far as there are bytes.
    fn fill(&mut self, count: usize) -> Result<(), Error> {
        let from = self.buffer.len();
        let found = (&mut self.input)
            .take(count as u64)
            .read_to_end(&mut self.buffer)
            .map_err(|error| Error::io(self.path, error))?;
        self.digest.update(&self.buffer[from..]);
        self.offset += found as u64;
        if found < count {
            return Err(self.wrong(
                self.offset,
                format!("{} more bytes", count - found),
                "the end of the file",
            ));
        }
        Ok(())
    }

    fn number(&self, from: usize) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|at| self.buffer[from + at]))
    }

    /// Reads the checksum of what is in the buffer and compares.
    fn verify(&mut self, start: u64) -> Result<(), Error> {
        let computed = crc32fast::hash(&self.buffer);
        let end = self.buffer.len();
        self.fill(4)?;
        let stored = self.number(end);
        self.buffer.truncate(end);
        if stored != computed {
            return Err(self.wrong(start, format!("checksum {stored:08x}"), format!("{computed:08x}")));
        }
        Ok(())
    }

    pub(super) fn header(&mut self) -> Result<Header, Error> {
        self.fill(16)?;
        if self.buffer[..8] != MAGIC {
            return Err(self.wrong(0, "a table file", "another kind of file"));
        }
        let (version, length) = (self.number(8), self.number(12));
        if version != VERSION {
            return Err(self.wrong(8, format!("version {VERSION}"), format!("version {version}")));
        }
        if length > MAX_HEADER {
            return Err(self.wrong(
                12,
                format!("a header of at most {MAX_HEADER} bytes"),
                length.to_string(),
            ));
        }
        self.fill(length as usize)?;
        self.verify(0)?;
        let header: Header = serde_json::from_slice(&self.buffer[16..])
            .map_err(|error| self.wrong(16, "a header of this version", error.to_string()))?;
        header
            .config
            .check()
            .map_err(|error| self.wrong(16, "a valid configuration", error.to_string()))?;
        Ok(header)
    }

    pub(super) fn block(&mut self) -> Result<(Kind, &[u8]), Error> {
        self.buffer.clear();
        let start = self.offset;
        self.fill(8)?;
        let head = self.number(0);
        let Some(kind) = u8::try_from(head).ok().and_then(Kind::from_byte) else {
            return Err(self.wrong(start, "a block", format!("kind {head:08x}")));
        };
        let length = self.number(4) as usize;
        if length > MAX_PAYLOAD {
            return Err(self.wrong(
                start + 4,
                format!("a block of at most {MAX_PAYLOAD} bytes"),
                length.to_string(),
            ));
        }
        self.fill(length)?;
        self.verify(start)?;
        Ok((kind, &self.buffer[8..]))
    }

    /// Nothing may follow the end.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.buffer.clear();
        let extra = (&mut self.input)
            .take(1)
            .read_to_end(&mut self.buffer)
            .map_err(|error| Error::io(self.path, error))?;
        if extra > 0 {
            return Err(self.wrong(self.offset, "the end of the file", "more bytes"));
        }
        Ok(())
    }
}
