//! A trainer's side of the wire: rows and gradients split over servers.
//!
//! A [`Session`] sends one frame to every server for each step and waits for all. What is sent twice because
//! a connection broke is applied once: pushes are numbered.

mod control;
mod error;
mod exchange;
mod link;
mod merge;
mod partition;
mod pool;
mod session;
mod spent;
mod step;

pub use control::Control;
pub use error::Error;
pub use exchange::{Departure, Exchange, Joined, Learnt, Missing, fetch};
pub use partition::Partition;
pub use session::{Place, Session, Settings};
pub use spent::Spent;
pub use step::{Answer, FeedHead, FeedPush, FeedRows, KeysRequest, PushRequest, Scored};

pub use clickmill_wire::BUCKET_BITS;
pub use clickmill_wire::step::When;
