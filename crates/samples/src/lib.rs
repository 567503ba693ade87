//! From raw click logs to columnar batches.
//!
//! A [`Format`](format) splits lines into fields, a [`Plan`] (a schema compiled for the format's columns)
//! turns fields into signs and floats, a [`Reader`] does both in parallel over files and hands out
//! [`Batch`]es in a fixed order. A [`Parser`] does the same for single lines, without files.

mod assemble;
mod bad;
mod batch;
mod block;
mod builder;
mod config;
mod cross;
mod dedup;
mod dense;
mod error;
mod fields;
mod format;
mod keys;
mod number;
mod parser;
mod plan;
mod position;
mod reader;
mod rows;
mod scan;
mod shuffle;
mod source;
mod sparse;
pub mod synth;
mod track;
mod units;

pub use bad::{BadLine, BadLines, Fault};
pub use batch::{Batch, SignGroup};
pub use config::{FileRange, FormatConfig, LibsvmValues, ReaderConfig, Shard, ShardBy, Shuffle};
pub use dedup::Dedup;
pub use error::Error;
pub use format::Columns;
pub use parser::{LineFault, ParseScratch, Parser};
pub use plan::Plan;
pub use position::Position;
pub use reader::Reader;
pub use rows::{Rows, Shape};
