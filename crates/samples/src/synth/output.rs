//! Files that appear whole or not at all, plain or compressed by the ending of their name.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Plain,
    Gzip,
    Zstd,
}

impl Compression {
    pub(super) fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Self::Gzip,
            Some("zst" | "zstd") => Self::Zstd,
            _ => Self::Plain,
        }
    }

    /// One gzip member or zstd frame: blocks are compressed apart, and a file is their concatenation.
    pub(super) fn block(self, text: Vec<u8>) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(text),
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(4));
                encoder.write_all(&text)?;
                encoder.finish()
            }
            Self::Zstd => zstd::bulk::compress(&text, 3),
        }
    }
}

/// A file under construction; it takes its name in `publish` and leaves nothing behind when dropped before.
pub(super) struct Output {
    path: PathBuf,
    partial: PathBuf,
    file: File,
    bytes: u64,
}

impl Output {
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let partial = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
        }
        let file = File::create(&partial).map_err(|source| Error::io(&partial, source))?;
        Ok(Self {
            path: path.to_owned(),
            partial,
            file,
            bytes: 0,
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len() as u64;
        self.file
            .write_all(bytes)
            .map_err(|source| Error::io(&self.partial, source))
    }

    /// Gives the finished file its name; returns its size.
    pub(super) fn publish(self) -> Result<u64, Error> {
        self.file
            .sync_all()
            .and_then(|()| fs::rename(&self.partial, &self.path))
            .map_err(|source| Error::io(&self.path, source))?;
        Ok(self.bytes)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // After `publish` there is no such file; before it, the error that led here is the one to tell.
        let _ = fs::remove_file(&self.partial);
    }
}
