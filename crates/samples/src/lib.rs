//! From raw click logs to columnar batches.

pub mod synth;
