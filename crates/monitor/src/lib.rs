//! What a process tells those who watch it: metrics, whether it lives, whether it can be used.
//!
//! A [`Monitor`] answers `/metrics`, `/healthz` and `/readyz` on a thread of its own; [`Metrics`] holds the
//! numbers and can be handed to code that knows nothing of the server. A process may have pages of its own,
//! [`Monitor::tell`] and [`Monitor::obey`], which are for those who have the token.

mod access;
mod error;
mod metrics;
mod names;
mod pages;
mod readiness;
mod routes;
mod server;

pub use error::Error;
pub use metrics::{Counter, Gauge, Histogram, Metrics};
pub use routes::Answer;
pub use server::Monitor;
