//! Tables of rows: dynamic, without a fixed vocabulary.
//!
//! A [`Table`] has buckets, each an index over rows that lie one behind the other. A batch pulls the rows
//! of its unique signs into a [`Lookup`], pools them, and later applies the gradients gathered in it with
//! the table's optimizer. Nothing here knows Python or threads: `&mut Table` is the lock.

#![expect(
    clippy::inline_always,
    reason = "kernels gain wider vectors only by being inlined into the functions compiled for them"
)]

mod adam;
mod admission;
mod adopt;
mod apply;
mod bucket;
mod coming;
pub mod config;
pub mod dense;
mod digest;
mod dimension;
mod error;
mod evict;
mod file;
mod finite;
mod freeze;
mod full_rows;
pub mod geo;
mod index;
mod initial;
mod lanes;
mod layout;
mod ledger;
mod lookup;
mod merge;
mod mirror;
mod optimizer;
mod parts;
mod pooling;
mod prefetch;
mod pull;
mod push;
mod region;
mod share;
mod stats;
mod table;
mod wire;

pub use apply::Rate;
pub use coming::Coming;
pub use config::TableConfig;
pub use error::Error;
pub use evict::EvictionReport;
pub use file::{FrozenSave, SaveReport, join_saves};
pub use lookup::{Buffers, Located, Lookup};
pub use mirror::Mirror;
pub use pooling::{Occurrences, PooledSlot};
pub use share::{Share, split};
pub use stats::Stats;
pub use table::{Counters, Table};
