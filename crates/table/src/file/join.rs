//! One table file from the saves of several owners of its rows, block by block in bounded memory.
//!
//! The parts must be full saves of shares of one table in one step, each sign in one of them.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use super::format::{Header, Kind};
use super::read::{End, open};
use super::scanner::Scanner;
use super::write::{SaveReport, Writer, publish, temporary};
use crate::Error;
use crate::admission::{Admission, Sketch};
use crate::layout::Layout;

/// Writes `out`, atomically, with the rows of all `parts`.
pub fn join_saves(parts: &[PathBuf], out: &Path) -> Result<SaveReport, Error> {
    let temporary = temporary(out)?;
    let outcome = join(parts, &temporary, out);
    if outcome.is_err() {
        // The first error is the one to tell; a file left over is only litter.
        let _ = fs::remove_file(&temporary);
    }
    outcome
}

fn join(parts: &[PathBuf], temporary: &Path, out: &Path) -> Result<SaveReport, Error> {
    let mut opened: Vec<Part<'_>> = parts
        .iter()
        .map(|part| Part::open(part))
        .collect::<Result<_, _>>()?;
    let Some((first, others)) = opened.split_first_mut() else {
        return Err(Error::argument("no save to join"));
    };
    for other in others {
        first.take_in(other)?;
    }
    let mut header = first.header.clone();
    // Only one sketch is kept while rows are copied: it may be large.
    let admission = std::mem::replace(&mut first.admission, Admission::Always);
    header.sketch_sightings = admission.sketch().map_or(0, Sketch::sightings);

    let failed = |error| Error::io(temporary, error);
    let file = File::create(temporary).map_err(failed)?;
    let mut writer = Writer::new(BufWriter::with_capacity(1 << 18, file));
    writer
        .opening(&header, admission.sketch().map(Sketch::bytes), &[])
        .map_err(failed)?;
    let mut rows = 0;
    for part in opened {
        rows += part.copy_rows(|payload| writer.block(Kind::Rows, payload).map_err(failed))?;
    }
    let report = writer.end(&header, rows, 0).map_err(failed)?;
    publish(&mut writer, temporary, out)?;
    Ok(report)
}

/// A save that has been read up to its first row.
struct Part<'a> {
    path: &'a Path,
    scanner: Scanner<'a, BufReader<File>>,
    header: Header,
    admission: Admission,
    /// The block that showed that the sketch was over, and the digest and offset before it.
    next: (Kind, Vec<u8>, u128, u64),
}

impl<'a> Part<'a> {
    fn open(path: &'a Path) -> Result<Self, Error> {
        let mut scanner = Scanner::new(open(path)?, path);
        let header = scanner.header()?;
        if let Some(base) = &header.base {
            return Err(scanner.wrong(0, "a full save", format!("an increment on {base}")));
        }
        let mut admission = Admission::new(header.config.admission, 0);
        let mut counters = Vec::new();
        let next = loop {
            let (digest, start) = (scanner.digest(), scanner.offset);
            let (kind, payload) = scanner.block()?;
            match kind {
                Kind::Sketch if counters.len() + payload.len() <= admission.bytes() => {
                    counters.extend_from_slice(payload);
                }
                Kind::Sketch => {
                    let expected = format!("a sketch of {} bytes", admission.bytes());
                    return Err(scanner.wrong(start, expected, "more"));
                }
                Kind::Tombstones | Kind::Rows | Kind::End => break (kind, payload.to_vec(), digest, start),
            }
        };
        if let Some(sketch) = admission.sketch_mut()
            && !sketch.restore(&counters, header.sketch_sightings)
        {
            let expected = format!("a sketch of {} bytes", admission.bytes());
            return Err(scanner.wrong(next.3, expected, counters.len().to_string()));
        }
        Ok(Self {
            path,
            scanner,
            header,
            admission,
            next,
        })
    }

    /// Makes the sketch that of both.
    fn take_in(&mut self, other: &mut Self) -> Result<(), Error> {
        let mut same = other.header.clone();
        same.sketch_sightings = self.header.sketch_sightings;
        if same != self.header {
            return Err(other
                .scanner
                .wrong(0, "a share of the same table in the same step", "another save"));
        }
        let admission = std::mem::replace(&mut other.admission, Admission::Always);
        if let (Some(sketch), Some(more)) = (self.admission.sketch_mut(), admission.sketch()) {
            sketch.absorb(more);
        }
        Ok(())
    }

    /// Hands on the blocks of rows and gives their number, once the end has vouched for them.
    fn copy_rows(mut self, mut put: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<u64, Error> {
        let row_bytes = Layout::new(&self.header.config).row_bytes();
        let mut rows = 0;
        let (mut kind, mut payload, mut digest, mut start) = self.next;
        loop {
            match kind {
                Kind::Rows if payload.len().is_multiple_of(row_bytes) => {
                    rows += (payload.len() / row_bytes) as u64;
                    put(&payload)?;
                }
                Kind::End => {
                    End::new(&payload, self.path, start)?.check(rows, 0, digest, self.path, start)?;
                    self.scanner.finish()?;
                    return Ok(rows);
                }
                Kind::Rows | Kind::Sketch | Kind::Tombstones => {
                    return Err(self
                        .scanner
                        .wrong(start, "whole rows or the end", format!("{kind:?}")));
                }
            }
            (digest, start) = (self.scanner.digest(), self.scanner.offset);
            let (next, block) = self.scanner.block()?;
            (kind, payload) = (next, block.to_vec());
        }
    }
}
