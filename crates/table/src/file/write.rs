//! Writing a table: streamed, in bounded memory, seen by others whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use super::format::{Header, Kind, MAGIC, MAX_PAYLOAD, VERSION, id};
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
        let since = base.map(|base| self.since(base)).transpose()?;
        let temporary = temporary(path)?;
        let outcome = self.write_file(&temporary, base, since).and_then(|report| {
            fs::rename(&temporary, path).map_err(|error| Error::io(path, error))?;
            sync_folder(path)?;
            Ok(report)
        });
        match outcome {
            Ok(report) => {
                self.ledger.saved = Some(Saved {
                    id: report.id.clone(),
                    step: self.step,
                });
                self.ledger.tombstones.clear();
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
    fn since(&self, base: &str) -> Result<u32, Error> {
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

    fn write_file(&self, path: &Path, base: Option<&str>, since: Option<u32>) -> Result<SaveReport, Error> {
        let failed = |error| Error::io(path, error);
        let file = File::create(path).map_err(failed)?;
        let mut writer = Writer::new(BufWriter::with_capacity(1 << 18, file));
        let report = self
            .write(&mut writer, base, since, true)
            .map_err(|stop| match stop {
                Stop::Io(error) => failed(error),
                Stop::Row(error) => error,
            })?;
        let file = writer
            .into_inner()
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        Ok(report)
    }

    /// The whole table as bytes, as a full save would write them, rows that are not finite included.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        let written = self.write(&mut writer, None, None, false);
        assert!(written.is_ok(), "writing to memory does not fail");
        writer.into_inner()
    }

    fn write<W: Write>(
        &self,
        writer: &mut Writer<W>,
        base: Option<&str>,
        since: Option<u32>,
        is_checked: bool,
    ) -> Result<SaveReport, Stop> {
        let header = Header {
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
        };
        writer.header(&header)?;
        if let Some(sketch) = self.admission.sketch() {
            for part in sketch.bytes().chunks(MAX_PAYLOAD) {
                writer.block(Kind::Sketch, part)?;
            }
        }
        let tombstones: &[u64] = if base.is_some() {
            &self.ledger.tombstones
        } else {
            &[]
        };
        let mut payload = Vec::new();
        for part in tombstones.chunks(MAX_PAYLOAD / 8) {
            payload.clear();
            for sign in part {
                payload.extend_from_slice(&sign.to_le_bytes());
            }
            writer.block(Kind::Tombstones, &payload)?;
        }
        let rows = self.write_rows(writer, since, is_checked)?;
        let digest = writer.digest();
        payload.clear();
        payload.extend_from_slice(&rows.to_le_bytes());
        payload.extend_from_slice(&(tombstones.len() as u64).to_le_bytes());
        payload.extend_from_slice(&digest.to_le_bytes());
        writer.block(Kind::End, &payload)?;
        Ok(SaveReport {
            id: id(digest),
            base: header.base,
            step: self.step,
            rows,
            tombstones: tombstones.len() as u64,
            bytes: writer.written,
        })
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

struct Writer<W> {
    inner: W,
    digest: Xxh3,
    written: u64,
}

impl<W: Write> Writer<W> {
    fn new(inner: W) -> Self {
        Self {
            inner,
            digest: Xxh3::new(),
            written: 0,
        }
    }

    fn into_inner(self) -> W {
        self.inner
    }

    fn digest(&self) -> u128 {
        self.digest.digest128()
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

    fn block(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        self.checked(&[&[kind.byte(), 0, 0, 0], &length.to_le_bytes(), payload])
    }
}

fn temporary(path: &Path) -> Result<PathBuf, Error> {
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
