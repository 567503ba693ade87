//! What a reader is asked to do, as JSON.

use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReaderConfig {
    pub files: Vec<FileRange>,
    pub format: FormatConfig,
    pub batch_size: usize,
    /// Threads that parse; one more reads and one more assembles.
    #[serde(default = "one")]
    pub threads: usize,
    /// Finished batches that wait for the consumer.
    #[serde(default = "four")]
    pub queue: usize,
    #[serde(default)]
    pub shuffle: Shuffle,
    /// Number of the pass; mixed into the seed of the shuffle.
    #[serde(default)]
    pub pass: u64,
    /// Bad lines that are tolerated; null: any number.
    #[serde(default = "no_bad_lines")]
    pub max_bad_lines: Option<u64>,
    #[serde(default = "max_line_bytes")]
    pub max_line_bytes: usize,
    /// Whether the last batch may have fewer rows.
    #[serde(default = "yes")]
    pub keep_last: bool,
    #[serde(default)]
    pub shard: Option<Shard>,
    /// Whether a slot whose column never occurs is an error behind the last batch of the pass.
    #[serde(default = "yes")]
    pub require_slots: bool,
    /// Whether the first label, the one that a model learns, must be 0 or 1.
    #[serde(default)]
    pub binary_label: bool,
}

/// A file, or the lines of a plain file that start in `start..end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileRange {
    pub path: String,
    pub start: u64,
    /// None: the end of the file.
    pub end: Option<u64>,
    /// Known where the file is not here yet when the reader is opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<FileFacts>,
}

/// What a reader has to know of a file before it opens it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileFacts {
    /// Length of the file.
    pub bytes: u64,
    /// Its first bytes, four of them or all that there are: they tell the compression.
    pub head: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FormatConfig {
    /// Tab-separated `label`, `I1`–`I13`, `C1`–`C26`.
    Criteo {
        /// None: lines of 39 columns are accepted where the schema does not use `label`.
        #[serde(default)]
        has_label: Option<bool>,
    },
    /// `click:0 dense_feature:0.05 1:737395 …`.
    Slots {},
    /// `show click feasign:slot …`.
    ShowClick {},
    /// `label index:value …`.
    Libsvm {
        #[serde(default)]
        values: LibsvmValues,
    },
    /// Comma-separated with a header line.
    Csv {
        #[serde(default = "comma")]
        delimiter: String,
    },
    /// `ratings.dat`, joined with `users.dat` and `movies.dat`.
    Movielens {
        /// Folder of the side files; that of the first file where absent.
        #[serde(default)]
        folder: Option<String>,
    },
    /// Any delimiter, no header.
    Delimited { delimiter: String, columns: Vec<String> },
}

impl FormatConfig {
    /// Whether the first file, or its folder, says something about all of them.
    pub(crate) fn looks_at_first_file(&self) -> bool {
        matches!(self, Self::Csv { .. } | Self::Movielens { folder: None })
    }
}

/// What a value other than 1 means for the column `features`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LibsvmValues {
    #[default]
    Error,
    Ignore,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Shuffle {
    #[default]
    None,
    /// Windows of `rows` rows, each permuted.
    Buffer { rows: usize, seed: u64 },
    /// Blocks of the files in permuted order, then windows.
    Block {
        block_bytes: u64,
        rows: usize,
        seed: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    pub index: u64,
    pub count: u64,
    #[serde(default)]
    pub by: ShardBy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShardBy {
    #[default]
    Files,
    Ranges,
}

fn one() -> usize {
    1
}

fn four() -> usize {
    4
}

fn yes() -> bool {
    true
}

#[expect(clippy::unnecessary_wraps, reason = "serde wants the type of the field")]
fn no_bad_lines() -> Option<u64> {
    Some(0)
}

fn max_line_bytes() -> usize {
    16 << 20
}

fn comma() -> String {
    ",".to_owned()
}

impl<'de> Deserialize<'de> for FileRange {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Range {
            path: String,
            #[serde(default)]
            start: u64,
            #[serde(default)]
            end: Option<u64>,
            #[serde(default)]
            facts: Option<FileFacts>,
        }
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "a path, or an object with `path`, `start`, `end` and `facts`"
        )]
        enum Either {
            Path(String),
            Range(Range),
        }
        Ok(match Either::deserialize(deserializer)? {
            Either::Path(path) => Self {
                path,
                start: 0,
                end: None,
                facts: None,
            },
            Either::Range(Range {
                path,
                start,
                end,
                facts,
            }) => Self {
                path,
                start,
                end,
                facts,
            },
        })
    }
}

impl ReaderConfig {
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let config: Self =
            serde_json::from_str(text).map_err(|error| Error::config("reader", error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    pub fn check(&self) -> Result<(), Error> {
        const MOST: usize = 1 << 24;
        const LONGEST: usize = 1 << 30;
        let within = |place: &str, value: usize, most: usize| {
            if value == 0 || value > most {
                return Err(Error::config(
                    format!("reader: `{place}`"),
                    format!("is {value}; allowed: 1 to {most}"),
                ));
            }
            Ok(())
        };
        if self.files.is_empty() {
            return Err(Error::config(
                "reader: `files`",
                "is empty; name at least one file",
            ));
        }
        within("batch_size", self.batch_size, MOST)?;
        within("threads", self.threads, 1024)?;
        within("queue", self.queue, 65_536)?;
        within("max_line_bytes", self.max_line_bytes, LONGEST)?;
        match self.shuffle {
            Shuffle::None => {}
            Shuffle::Buffer { rows, .. } => within("shuffle.rows", rows, 1 << 30)?,
            Shuffle::Block {
                rows, block_bytes, ..
            } => {
                within("shuffle.rows", rows, 1 << 30)?;
                if block_bytes < 4096 {
                    return Err(Error::config(
                        "reader: `shuffle.block_bytes`",
                        format!("is {block_bytes}; allowed: 4096 or more"),
                    ));
                }
            }
        }
        if let Some(shard) = self.shard
            && (shard.count == 0 || shard.index >= shard.count)
        {
            return Err(Error::config(
                "reader: `shard`",
                format!(
                    "index {} of {} shards; allowed: 0 to count - 1",
                    shard.index, shard.count
                ),
            ));
        }
        Ok(())
    }
}
