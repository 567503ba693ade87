//! Tables of rows: dynamic, without a fixed vocabulary.
//!
//! A [`Table`] has buckets, each an index over rows that lie one behind the other. A batch pulls the rows
//! of its unique signs into a [`Lookup`], pools them, and later applies the gradients gathered in it with
//! the table's optimizer. Nothing here knows Python or threads: `&mut Table` is the lock.

mod adam;
mod admission;
mod bucket;
pub mod config;
pub mod dense;
mod dimension;
mod error;
mod index;
mod initial;
mod layout;
mod ledger;
mod lookup;
mod optimizer;
mod pooling;
mod prefetch;
mod pull;
mod push;
mod region;
mod table;

pub use config::TableConfig;
pub use error::Error;
pub use lookup::{Buffers, Lookup};
pub use pooling::{Occurrences, PooledSlot};
pub use table::{Counters, Rate, Table};
