//! The parameter server: rows of tables and a slice of the dense part, behind the wire.

mod driver;
mod engine;
mod error;
mod host;
mod job;
mod life;
mod metrics;
mod model;
mod push;
mod rounds;
mod server;
mod session;
mod snapshot;

pub use driver::Outcome;
pub use error::Error;
pub use server::{Server, ServerSettings};
