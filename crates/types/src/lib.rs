//! Words that every layer shares: signs and the schema of a sample.
//!
//! Nothing here does input or output. The trainer and the predictor both depend on this crate, so that
//! a feature value gets the same sign, and a sample the same meaning, in both.

pub mod bf16;
mod error;
pub mod schema;
pub mod sign;

pub use error::Error;
pub use schema::Schema;
pub use sign::Sign;
