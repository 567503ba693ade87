//! The coordinator of cluster training: membership, leases of data, fences, snapshots, recovery.
//!
//! Pure logic. Events go in, actions come out; there is no socket, no thread, no file and no clock here, so that
//! a test can play any order of deaths, delays and losses, and play it again.

mod calls;
mod committed;
mod coordinator;
mod counted;
mod duties;
mod ending;
mod error;
mod event;
mod fence;
mod job;
mod joining;
mod lanes;
mod ledger;
mod members;
mod memory;
mod message;
mod numbers;
mod passes;
mod reading;
mod recovery;
mod requests;
mod route;
mod run;
mod scaling;
mod settings;
mod settlement;
mod snapshots;
mod spares;
mod status;
mod waits;
mod work;

pub use committed::{Committed, RunRecord};
pub use coordinator::Coordinator;
pub use duties::DutyRecord;
pub use error::Error;
pub use event::{Action, Event, Happening};
pub use job::{Job, Pass, Strategy, Unit};
pub use ledger::{Advanced, LedgerEntry, LedgerRecord, Stage, UnitRecord};
pub use memory::{FULL_SHARE, MEMORY_SHARES, RELIEVED_SHARE, full_in_s, memory_happening, memory_share};
pub use message::*;
pub use reading::{Limits, Reading};
pub use route::{NUM_BUCKETS, Route};
pub use settings::Settings;
pub use status::{MetricsStatus, ServerStatus, SnapshotStatus, Status, TrainerStatus};
pub use waits::{WaitKind, WaitStatus};
