//! Units of reading: which lines of which files a reader owns, and in which order it takes them.

use std::path::PathBuf;

use clickmill_types::sign;

use crate::Error;
use crate::config::{ReaderConfig, ShardBy, Shuffle};
use crate::shuffle::permutation;
use crate::source::{Compression, compression_of, detect};

#[derive(Clone, Debug)]
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    pub(crate) compression: Compression,
    start: u64,
    end: u64,
}

/// Lines of one file that start in `start..end`; a compressed file is one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) file: usize,
    pub(crate) start: u64,
    /// None: to the end of the text.
    pub(crate) end: Option<u64>,
    /// Bytes of the file itself.
    pub(crate) raw_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Units {
    pub(crate) files: Vec<InputFile>,
    pub(crate) order: Vec<Unit>,
    pub(crate) fingerprint: String,
}

impl Units {
    pub(crate) fn new(config: &ReaderConfig) -> Result<Self, Error> {
        let files = inspect(config)?;
        let mut units = shard(config, &files);
        if let Shuffle::Block {
            block_bytes, seed, ..
        } = config.shuffle
        {
            let blocks: Vec<Unit> = units.iter().flat_map(|unit| cut(unit, block_bytes)).collect();
            // Windows are numbered from 0; the order of blocks takes a number that no window reaches.
            units = permutation(blocks.len(), seed, config.pass, u64::MAX)
                .into_iter()
                .map(|index| blocks[index as usize])
                .collect();
        }
        let fingerprint = fingerprint(config, &files);
        Ok(Self {
            files,
            order: units,
            fingerprint,
        })
    }

    pub(crate) fn raw_bytes(&self) -> u64 {
        self.order.iter().map(|unit| unit.raw_bytes).sum()
    }
}

fn inspect(config: &ReaderConfig) -> Result<Vec<InputFile>, Error> {
    let mut files = Vec::with_capacity(config.files.len());
    for range in &config.files {
        let path = PathBuf::from(&range.path);
        let (compression, size) = match &range.facts {
            Some(facts) => (compression_of(&path, &facts.head)?, facts.bytes),
            None => detect(&path)?,
        };
        let end = range.end.unwrap_or(size).min(size);
        if compression != Compression::Plain && (range.start > 0 || range.end.is_some()) {
            return Err(Error::config(
                range.path.clone(),
                "a compressed file cannot be read in ranges; leave `start` and `end` out",
            ));
        }
        if range.start > range.end.unwrap_or(u64::MAX) {
            return Err(Error::config(
                range.path.clone(),
                format!("range {}..{end} ends before it starts", range.start),
            ));
        }
        files.push(InputFile {
            path,
            compression,
            start: range.start.min(end),
            end,
        });
    }
    Ok(files)
}

fn shard(config: &ReaderConfig, files: &[InputFile]) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut num_compressed = 0;
    for (index, file) in files.iter().enumerate() {
        let length = file.end - file.start;
        let whole = Unit {
            file: index,
            start: file.start,
            end: (file.compression == Compression::Plain).then_some(file.end),
            raw_bytes: length,
        };
        let Some(shard) = config.shard else {
            units.push(whole);
            continue;
        };
        match (shard.by, whole.end) {
            (ShardBy::Files, _) => {
                if index as u64 % shard.count == shard.index {
                    units.push(whole);
                }
            }
            (ShardBy::Ranges, Some(_)) => {
                let at = |piece: u64| {
                    let share = u128::from(length) * u128::from(piece) / u128::from(shard.count);
                    file.start + share as u64
                };
                let (start, end) = (at(shard.index), at(shard.index + 1));
                units.push(Unit {
                    file: index,
                    start,
                    end: Some(end),
                    raw_bytes: end - start,
                });
            }
            (ShardBy::Ranges, None) => {
                if num_compressed % shard.count == shard.index {
                    units.push(whole);
                }
                num_compressed += 1;
            }
        }
    }
    units
}

/// Blocks of a unit of a plain file; a compressed one stays whole.
fn cut(unit: &Unit, block_bytes: u64) -> Vec<Unit> {
    let Some(end) = unit.end else {
        return vec![*unit];
    };
    let mut blocks = Vec::new();
    let mut start = unit.start;
    while start < end {
        let stop = end.min(start.saturating_add(block_bytes));
        blocks.push(Unit {
            file: unit.file,
            start,
            end: Some(stop),
            raw_bytes: stop - start,
        });
        start = stop;
    }
    blocks
}

/// File names, not folders: a data set that has moved is still the same.
fn fingerprint(config: &ReaderConfig, files: &[InputFile]) -> String {
    let names: Vec<_> = files
        .iter()
        .map(|file| {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy();
            (name.into_owned(), file.start, file.end)
        })
        .collect();
    let text = serde_json::to_string(&(names, &config.format, &config.shuffle, config.pass, config.shard))
        .expect("configuration holds only strings and numbers");
    format!("{:016x}", sign::sign(text.as_bytes(), 0))
}
