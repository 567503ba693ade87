//! Blocks of whole lines, cut from a unit.

use std::path::Path;

use crate::Error;
use crate::bad::Fault;
use crate::buffer::Buffer;
use crate::format::too_long;
use crate::parser::LineFault;
use crate::rows::Rows;
use crate::source::{Compression, Stream};
use crate::units::{InputFile, Unit};

/// Text of a block before it is cut at its last line end.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// A piece of a unit on its way from file to batch. Its buffers travel round and are used again.
#[derive(Default)]
pub(crate) struct Block {
    pub(crate) sequence: u64,
    /// Index of the unit.
    pub(crate) unit: u64,
    /// Byte of `data[0]` in the unit's text.
    pub(crate) offset: u64,
    /// Byte behind the block in the unit's text.
    pub(crate) end: u64,
    pub(crate) data: Buffer,
    /// Bytes at the start of `data` that are a header line, and no sample.
    pub(crate) header_bytes: usize,
    /// Bytes of the unit's file read so far.
    pub(crate) raw_bytes: u64,
    pub(crate) rows: Rows,
    pub(crate) faults: Vec<LineFault>,
    /// Lines of the block, header included.
    pub(crate) lines: u32,
    /// Columns that have occurred, for formats whose lines name them.
    pub(crate) seen: Vec<bool>,
    pub(crate) others: Vec<Vec<u8>>,
}

impl Block {
    /// Whether it tells the end of its unit, and holds nothing.
    pub(crate) fn is_end(&self) -> bool {
        self.data.is_empty() && self.faults.is_empty()
    }
}

/// Cuts one unit into blocks.
pub(crate) struct Cutter<'a> {
    path: &'a Path,
    stream: Stream,
    unit: Unit,
    /// Bytes that were read but belong to the next block.
    carry: Buffer,
    /// Byte of `carry[0]` in the text.
    offset: u64,
    max_line_bytes: usize,
    is_at_end: bool,
}

/// What `Cutter::next` has put into the block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Lines,
    /// One line, too long to be held; `data` is empty. Its end is where the next block starts.
    TooLong(Fault),
    End,
}

impl<'a> Cutter<'a> {
    /// `resume` is the start of a line inside the unit.
    pub(crate) fn open(
        file: &'a InputFile,
        unit: Unit,
        resume: Option<u64>,
        max_line_bytes: usize,
    ) -> Result<Self, Error> {
        // A range owns the lines that start in it: whether one starts at its first byte is told by the
        // byte before.
        let start = resume.unwrap_or_else(|| unit.start.saturating_sub(1));
        let mut cutter = Self {
            path: &file.path,
            stream: Stream::open(&file.path, file.compression, start)?,
            unit,
            carry: Buffer::default(),
            offset: start,
            max_line_bytes,
            is_at_end: false,
        };
        if resume.is_none() && unit.start > 0 {
            debug_assert_eq!(file.compression, Compression::Plain);
            cutter.skip_line()?;
        }
        Ok(cutter)
    }

    /// Where the next block starts.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of the unit's own share of its file that have been read.
    pub(crate) fn raw_bytes(&self) -> u64 {
        let read = self.stream.raw_bytes();
        let before = if self.unit.end.is_some() {
            self.unit.start
        } else {
            0
        };
        read.saturating_sub(before).min(self.unit.raw_bytes)
    }

    /// Fills `data` with whole lines; only the last line of a file may lack its end.
    pub(crate) fn next(&mut self, data: &mut Buffer) -> Result<Cut, Error> {
        data.clear();
        if self.unit.end.is_some_and(|end| self.offset >= end) {
            return Ok(Cut::End);
        }
        std::mem::swap(data, &mut self.carry);
        self.carry.clear();
        let mut target = BLOCK_BYTES;
        loop {
            self.fill(data, target)?;
            if let Some(end) = self.unit.end {
                // The last own line starts before `end`, so its line end stands at `end - 1` or later.
                let last = usize::try_from(end - 1 - self.offset).unwrap_or(usize::MAX);
                if last < data.len()
                    && let Some(at) = memchr::memchr(b'\n', &data[last..])
                {
                    data.truncate(last + at + 1);
                    self.offset += data.len() as u64;
                    return Ok(Cut::Lines);
                }
            }
            if let Some(at) = memchr::memrchr(b'\n', data) {
                self.carry.extend_from_slice(&data[at + 1..]);
                data.truncate(at + 1);
                self.offset += data.len() as u64;
                return Ok(Cut::Lines);
            }
            if data.len() > self.max_line_bytes {
                let begun = data.len() as u64;
                data.clear();
                let length = begun + self.skip_line()?;
                self.offset += begun;
                return Ok(Cut::TooLong(too_long(length, self.max_line_bytes)));
            }
            if self.is_at_end {
                self.offset += data.len() as u64;
                return Ok(if data.is_empty() { Cut::End } else { Cut::Lines });
            }
            target = (data.len() * 2).min(self.max_line_bytes + 1).max(BLOCK_BYTES);
        }
    }

    /// Reads until `data` has `target` bytes or the text ends.
    fn fill(&mut self, data: &mut Buffer, target: usize) -> Result<(), Error> {
        while data.len() < target && !self.is_at_end {
            let ahead = data.len() as u64;
            let count = self.read(data.room(target), ahead)?;
            data.advance(count);
            self.is_at_end = count == 0;
        }
        Ok(())
    }

    /// Throws bytes away up to and including the next line end; their number, without that end.
    fn skip_line(&mut self) -> Result<u64, Error> {
        let mut chunk = vec![0; 256 << 10];
        let mut skipped = 0;
        loop {
            let count = self.read(&mut chunk, skipped)?;
            if count == 0 {
                self.is_at_end = true;
                self.offset += skipped;
                return Ok(skipped);
            }
            if let Some(at) = memchr::memchr(b'\n', &chunk[..count]) {
                self.carry.extend_from_slice(&chunk[at + 1..count]);
                skipped += at as u64;
                self.offset += skipped + 1;
                return Ok(skipped);
            }
            skipped += count as u64;
        }
    }

    fn read(&mut self, buffer: &mut [u8], ahead: u64) -> Result<usize, Error> {
        self.stream.read(buffer).map_err(|error| {
            if self.unit.end.is_some() {
                Error::io(self.path, &error)
            } else {
                Error::Compressed {
                    path: self.path.display().to_string(),
                    offset: self.offset + ahead,
                    reason: error.to_string(),
                }
            }
        })
    }
}
