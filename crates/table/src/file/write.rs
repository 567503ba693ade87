//! Writing a table: streamed, in bounded memory, seen by others whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use super::format::{END_PAYLOAD, Header, Kind, MAGIC, MAX_PAYLOAD, VERSION, id};
use crate::ledger::Saved;
use crate::{Error, Table};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SaveReport {
    /// Names this save to the increments that build on it.
    pub id: String,
    pub base: Option<String>,
    pub step: u32,
    pub rows: u64,
    pub tombstones: u64,
    pub bytes: u64,
}

impl Table {
    /// Writes the table to `path`, atomically. With `base`, the id of the last save, only what changed.
    ///
    /// A row that is not finite is an error, and nothing is written: who loads it could not train on.
    pub fn save(&mut self, path: &Path, base: Option<&str>) -> Result<SaveReport, Error> {
        self.check_no_save()?;
        let since = base.map(|base| self.since(base)).transpose()?;
        let temporary = temporary(path)?;
        match self.write_file(&temporary, path, base, since) {
            Ok(report) => {
                let saved = Saved {
                    id: report.id.clone(),
                    step: self.step,
                };
                let num_tombstones = self.ledger.tombstones.len();
                self.ledger.settle(saved, num_tombstones);
                Ok(report)
            }
            Err(error) => {
                // The first error is the one to tell; a file left over is only litter.
                let _ = fs::remove_file(&temporary);
                Err(error)
            }
        }
    }

    /// The step of the save that an increment may build on.
    pub(super) fn since(&self, base: &str) -> Result<u32, Error> {
        match &self.ledger.saved {
            Some(saved) if saved.id == base => Ok(saved.step),
            Some(saved) => Err(Error::state(format!(
                "an increment builds on the last save, {}, not on {base}; save in full instead",
                saved.id
            ))),
            None => Err(Error::state(format!(
                "the table has no save that an increment could build on, so not on {base}; save in full"
            ))),
        }
    }

    fn write_file(
        &self,
        temporary: &Path,
        path: &Path,
        base: Option<&str>,
        since: Option<u32>,
    ) -> Result<SaveReport, Error> {
        let failed = |error| Error::io(temporary, error);
        let file = File::create(temporary).map_err(failed)?;
        let mut writer = Writer::new(BufWriter::with_capacity(1 << 18, file));
        let report = self
            .write(&mut writer, base, since, true)
            .map_err(|stop| match stop {
                Stop::Io(error) => failed(error),
                Stop::Row(error) => error,
            })?;
        publish(&mut writer, temporary, path)?;
        Ok(report)
    }

    /// The whole table as bytes, as a full save would write them, rows that are not finite included.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        let written = self.write(&mut writer, None, None, false);
        assert!(written.is_ok(), "writing to memory does not fail");
        writer.inner
    }

    pub(super) fn header(&self, base: Option<&str>) -> Header {
        Header {
            config: self.config.clone(),
            base: base.map(str::to_owned),
            step: self.step,
            done: self.done,
            decays: self.ledger.decays,
            history: self.history.runs().to_vec(),
            history_steps: self.history.len(),
            sketch_sightings: self
                .admission
                .sketch()
                .map_or(0, crate::admission::Sketch::sightings),
        }
    }

    fn write<W: Write>(
        &self,
        writer: &mut Writer<W>,
        base: Option<&str>,
        since: Option<u32>,
        is_checked: bool,
    ) -> Result<SaveReport, Stop> {
        let header = self.header(base);
        let tombstones: &[u64] = if base.is_some() {
            &self.ledger.tombstones
        } else {
            &[]
        };
        let sketch = self.admission.sketch().map(crate::admission::Sketch::bytes);
        writer.opening(&header, sketch, tombstones)?;
        let rows = self.write_rows(writer, since, is_checked)?;
        Ok(writer.end(&header, rows, tombstones.len() as u64)?)
    }

    /// Rows that were touched in step `since` or later; that step itself may have gone on after the save.
    fn write_rows<W: Write>(
        &self,
        writer: &mut Writer<W>,
        since: Option<u32>,
        is_checked: bool,
    ) -> Result<u64, Stop> {
        let row_bytes = self.layout.row_bytes();
        let per_block = (MAX_PAYLOAD / row_bytes).max(1);
        let mut payload = Vec::with_capacity(per_block * row_bytes);
        let mut rows = 0;
        for bucket in &self.buckets {
            for row in 0..bucket.len() {
                if since.is_some_and(|since| bucket.step(row) < since) {
                    continue;
                }
                if is_checked {
                    self.check_row(bucket, row).map_err(Stop::Row)?;
                }
                bucket.append_row(row, &mut payload);
                rows += 1;
                if payload.len() == per_block * row_bytes {
                    writer.block(Kind::Rows, &payload)?;
                    payload.clear();
                }
            }
        }
        if !payload.is_empty() {
            writer.block(Kind::Rows, &payload)?;
        }
        Ok(rows)
    }
}

/// Why a table was not written to its end.
enum Stop {
    Io(io::Error),
    Row(Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub(super) struct Writer<W> {
    inner: W,
    digest: Xxh3,
    written: u64,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(inner: W) -> Self {
        Self {
            inner,
            digest: Xxh3::new(),
            written: 0,
        }
    }

    /// All that comes before the rows.
    pub(super) fn opening(
        &mut self,
        header: &Header,
        sketch: Option<&[u8]>,
        tombstones: &[u64],
    ) -> io::Result<()> {
        self.header(header)?;
        for part in sketch.unwrap_or_default().chunks(MAX_PAYLOAD) {
            self.block(Kind::Sketch, part)?;
        }
        let mut payload = Vec::new();
        for part in tombstones.chunks(MAX_PAYLOAD / 8) {
            payload.clear();
            for sign in part {
                payload.extend_from_slice(&sign.to_le_bytes());
            }
            self.block(Kind::Tombstones, &payload)?;
        }
        Ok(())
    }

    pub(super) fn end(&mut self, header: &Header, rows: u64, tombstones: u64) -> io::Result<SaveReport> {
        let digest = self.digest.digest128();
        let mut payload = Vec::with_capacity(END_PAYLOAD);
        payload.extend_from_slice(&rows.to_le_bytes());
        payload.extend_from_slice(&tombstones.to_le_bytes());
        payload.extend_from_slice(&digest.to_le_bytes());
        self.block(Kind::End, &payload)?;
        Ok(SaveReport {
            id: id(digest),
            base: header.base.clone(),
            step: header.step,
            rows,
            tombstones,
            bytes: self.written,
        })
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.written += bytes.len() as u64;
        self.inner.write_all(bytes)
    }

    /// Parts, one behind the other, and their checksum.
    fn checked(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let mut crc = crc32fast::Hasher::new();
        for part in parts {
            crc.update(part);
            self.put(part)?;
        }
        self.put(&crc.finalize().to_le_bytes())
    }

    fn header(&mut self, header: &Header) -> io::Result<()> {
        let json = serde_json::to_vec(header)?;
        let length = u32::try_from(json.len()).map_err(io::Error::other)?;
        self.checked(&[&MAGIC, &VERSION.to_le_bytes(), &length.to_le_bytes(), &json])
    }

    pub(super) fn block(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        self.checked(&[&[kind.byte(), 0, 0, 0], &length.to_le_bytes(), payload])
    }
}

/// Makes a written file durable and gives it its name.
pub(super) fn publish(
    writer: &mut Writer<BufWriter<File>>,
    temporary: &Path,
    path: &Path,
) -> Result<(), Error> {
    writer
        .inner
        .flush()
        .and_then(|()| writer.inner.get_ref().sync_all())
        .map_err(|error| Error::io(temporary, error))?;
    fs::rename(temporary, path).map_err(|error| Error::io(path, error))?;
    sync_folder(path)
}

pub(super) fn temporary(path: &Path) -> Result<PathBuf, Error> {
    let name = path
        .file_name()
        .ok_or_else(|| Error::argument(format!("{} names no file", path.display())))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.partial", std::process::id()));
    Ok(path.with_file_name(hidden))
}

/// Makes the rename itself durable.
fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| Error::io(folder, error))
}
