//! Connections between the processes of a cluster.
//!
//! A [`Connection`] carries frames, one request and its answer at a time; every wait has a deadline and
//! every error names the peer. Both sides prove that they know the cluster's [`Token`] before anything else
//! is said, and neither sends it. Encryption is added underneath by [`Tls`]. Between processes of one host long
//! frames can go through memory that both share.

mod connection;
mod deadline;
mod error;
mod hello;
mod interrupt;
mod listener;
mod memory;
mod sharing;
mod socket;
mod strangers;
mod stream;
mod tls;
mod token;

pub use clickmill_wire::hello::{Hello, Role};
pub use connection::{Connection, Traffic};
pub use deadline::Deadline;
pub use error::Error;
pub use interrupt::interruptible;
pub use listener::{Acceptance, Listener};
pub use tls::{Tls, TlsFiles};
pub use token::Token;

/// How this process speaks to the others of its cluster.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// Absent: no proof is given or asked for, which is allowed on this machine only.
    pub token: Option<Token>,
    pub tls: Option<Tls>,
}
