//! From raw click logs to columnar batches.
//!
//! A [`Format`](format) splits lines into fields, a [`Plan`] (a schema compiled for the format's columns)
//! turns fields into signs and floats, a [`Reader`] does both in parallel over files and hands out
//! [`Batch`]es in a fixed order. A [`Parser`] does the same for single lines, without files.

mod arrivals;
mod assemble;
mod bad;
mod batch;
mod block;
mod buffer;
mod builder;
mod column_statistics;
mod config;
mod cross;
mod dedup;
mod dense;
mod describe;
mod error;
mod fields;
mod fit;
mod format;
mod keys;
mod label;
mod number;
mod parser;
mod pipeline;
mod plan;
mod position;
mod reader;
mod records;
mod rows;
mod scan;
mod shuffle;
mod source;
mod sparse;
pub mod synth;
mod track;
mod units;

pub use arrivals::Arrivals;
pub use bad::{BadLine, BadLines, Fault};
pub use batch::{Batch, SignGroup};
pub use column_statistics::{ColumnReport, NumberReport};
pub use config::{FileFacts, FileRange, FormatConfig, LibsvmValues, ReaderConfig, Shard, ShardBy, Shuffle};
pub use dedup::Dedup;
pub use describe::{Description, LabelReport, describe};
pub use error::Error;
pub use fit::fit_standardise;
pub use format::Columns;
pub use parser::{LineFault, ParseScratch, Parser};
pub use plan::Plan;
pub use position::Position;
pub use reader::Reader;
pub use records::{RecordBatcher, RecordConfig, TextColumn};
pub use rows::{Rows, Shape};
