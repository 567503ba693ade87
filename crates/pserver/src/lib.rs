//! The parameter server: rows of tables and a slice of the dense part, behind the wire.

mod commit_file;
mod counters;
mod desk;
mod driver;
mod engine;
mod error;
mod health;
mod host;
mod job;
mod life;
mod link;
mod memory;
mod metrics;
mod model;
mod moving;
mod origin;
mod pages;
mod piece;
mod push;
mod rates;
mod rounds;
mod server;
mod session;
mod snapshot;

pub use driver::{Outcome, Tell};
pub use error::Error;
pub use health::{CoordinatorHealth, Health};
pub use server::{Server, ServerSettings};
