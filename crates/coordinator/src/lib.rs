//! The coordinator of cluster training: membership, leases of data, fences, snapshots, recovery.
//!
//! Pure logic. Events go in, actions come out; there is no socket, no thread, no file and no clock here, so that
//! a test can play any order of deaths, delays and losses, and play it again.

mod error;
mod job;
mod lanes;
mod ledger;
mod members;
mod message;
mod route;
mod settings;
mod status;

pub use error::Error;
pub use job::{Job, Pass, Strategy, Unit};
pub use ledger::{Advanced, Grant, Ledger, LedgerEntry, LedgerRecord, Stage, UnitRecord};
pub use message::*;
pub use route::{NUM_BUCKETS, Route};
pub use settings::Settings;
pub use status::{ServerStatus, SnapshotStatus, Status, TrainerStatus};
