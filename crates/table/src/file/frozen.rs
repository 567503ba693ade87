//! A save that is written while training goes on: the table as it was at the beginning of the save.
//!
//! Only `begin`, `piece` and `finish` need the table, each for a short while; `write` and `seal`, which wait for
//! the disk, do not. A save that is dropped before its end leaves no file, and the table as if it had never
//! been begun: the last good save stays the one that increments build on.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{Header, Kind, MAX_PAYLOAD};
use super::write::{SaveReport, Writer, publish, temporary};
use crate::finite;
use crate::layout::Layout;
use crate::ledger::Saved;
use crate::{Error, Table};

pub struct FrozenSave {
    path: PathBuf,
    temporary: PathBuf,
    table_id: u64,
    era: u64,
    layout: Layout,
    header: Header,
    num_tombstones: usize,
    /// Rows copied and not yet written.
    rows: Vec<u8>,
    num_rows: u64,
    is_copied: bool,
    stage: Stage,
    /// The table stops copying rows when it is gone.
    owner: Arc<()>,
}

enum Stage {
    /// Nothing is written yet, and these come first.
    Begun {
        sketch: Option<Vec<u8>>,
        tombstones: Arc<Vec<u64>>,
    },
    Open(Box<Partial>),
    Sealed(SaveReport),
    Failed,
}

impl FrozenSave {
    /// Freezes the table as it is now, to be written to `path`; with `base` only what changed since.
    ///
    /// Takes as long as a copy of the admission sketch.
    pub fn begin(table: &mut Table, path: &Path, base: Option<&str>) -> Result<Self, Error> {
        let since = base.map(|base| table.since(base)).transpose()?;
        let temporary = temporary(path)?;
        let owner = Arc::new(());
        table.freeze(since, &owner)?;
        let tombstones = Arc::clone(&table.ledger.tombstones);
        Ok(Self {
            path: path.to_owned(),
            temporary,
            table_id: table.id,
            era: table.ledger.era,
            layout: table.layout,
            header: table.header(base),
            num_tombstones: tombstones.len(),
            rows: Vec::new(),
            num_rows: 0,
            is_copied: false,
            stage: Stage::Begun {
                sketch: table.admission.sketch().map(|sketch| sketch.bytes().to_vec()),
                tombstones: if base.is_some() {
                    tombstones
                } else {
                    Arc::default()
                },
            },
            owner,
        })
    }

    /// Copies rows of the frozen table, having looked at no more than `max_rows` of them; whether there are more.
    ///
    /// Rows that training was about to write come on top: what was pushed since the last piece.
    pub fn piece(&mut self, table: &mut Table, max_rows: u64) -> Result<bool, Error> {
        if self.is_copied {
            return Ok(false);
        }
        let has_more = table.copy_frozen(&self.owner, max_rows, &mut self.rows)?;
        self.is_copied = !has_more;
        Ok(has_more)
    }

    /// Writes what the pieces so far have copied. After an error the save can only be dropped.
    ///
    /// A row that was not finite at the beginning of the save is an error.
    pub fn write(&mut self) -> Result<(), Error> {
        let block = (MAX_PAYLOAD / self.layout.row_bytes()).max(1) * self.layout.row_bytes();
        let whole = self.rows.len() / block * block;
        self.write_rows(whole, block)
    }

    /// Writes the rest and makes the file durable under its name. Increments build on it once it is finished.
    pub fn seal(&mut self) -> Result<&SaveReport, Error> {
        if !matches!(self.stage, Stage::Sealed(_)) {
            self.stage = Stage::Sealed(self.close()?);
        }
        match &self.stage {
            Stage::Sealed(report) => Ok(report),
            Stage::Begun { .. } | Stage::Open(_) | Stage::Failed => Err(failed()),
        }
    }

    /// Tells the table that this is now its last save. Seals it if that has not been done before.
    pub fn finish(mut self, table: &mut Table) -> Result<SaveReport, Error> {
        let report = self.seal()?.clone();
        if table.id != self.table_id {
            return Err(Error::state("the save belongs to another table"));
        }
        if table.ledger.era != self.era {
            return Err(Error::state(
                "the table was saved, or rows moved, after this save was begun; it is whole, but no increment can build on it",
            ));
        }
        let saved = Saved {
            id: report.id.clone(),
            step: report.step,
        };
        table.ledger.settle(saved, self.num_tombstones);
        table.frozen = None;
        Ok(report)
    }

    /// Writes the first `count` bytes of the rows, in blocks.
    fn write_rows(&mut self, count: usize, block: usize) -> Result<(), Error> {
        let mut partial = match std::mem::replace(&mut self.stage, Stage::Failed) {
            Stage::Begun { sketch, tombstones } => {
                let mut partial = Box::new(Partial::create(&self.temporary)?);
                partial.put(|writer| writer.opening(&self.header, sketch.as_deref(), &tombstones))?;
                partial
            }
            Stage::Open(partial) => partial,
            Stage::Sealed(report) => {
                self.stage = Stage::Sealed(report);
                return Ok(());
            }
            Stage::Failed => return Err(failed()),
        };
        let rows = &self.rows[..count];
        finite::check_bytes(&self.header.config.spec.name, self.layout, rows)?;
        for payload in rows.chunks(block) {
            partial.put(|writer| writer.block(Kind::Rows, payload))?;
        }
        self.num_rows += (count / self.layout.row_bytes()) as u64;
        self.rows.drain(..count);
        self.stage = Stage::Open(partial);
        Ok(())
    }

    fn close(&mut self) -> Result<SaveReport, Error> {
        if !self.is_copied {
            return Err(Error::state(
                "rows of the save have not been copied yet; ask for pieces until there are no more",
            ));
        }
        self.write()?;
        self.write_rows(self.rows.len(), MAX_PAYLOAD)?;
        let Stage::Open(mut partial) = std::mem::replace(&mut self.stage, Stage::Failed) else {
            return Err(failed());
        };
        let num_tombstones = if self.header.base.is_some() {
            self.num_tombstones as u64
        } else {
            0
        };
        let report = partial.put(|writer| writer.end(&self.header, self.num_rows, num_tombstones))?;
        partial.publish(&self.path)?;
        Ok(report)
    }
}

fn failed() -> Error {
    Error::state("the save has failed before; begin another one")
}

/// A file under its temporary name, removed with this unless it got its own.
struct Partial {
    path: PathBuf,
    /// None once it has its own name.
    writer: Option<Writer<BufWriter<File>>>,
}

impl Partial {
    fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(|error| Error::io(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            writer: Some(Writer::new(BufWriter::with_capacity(1 << 18, file))),
        })
    }

    fn put<T>(
        &mut self,
        work: impl FnOnce(&mut Writer<BufWriter<File>>) -> io::Result<T>,
    ) -> Result<T, Error> {
        let writer = self.writer.as_mut().ok_or_else(failed)?;
        work(writer).map_err(|error| Error::io(&self.path, error))
    }

    fn publish(mut self, path: &Path) -> Result<(), Error> {
        let writer = self.writer.as_mut().ok_or_else(failed)?;
        publish(writer, &self.path, path)?;
        self.writer = None;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.writer.is_some() {
            // A file left over is only litter.
            let _ = fs::remove_file(&self.path);
        }
    }
}
