//! The public face of the crate, over real files.

mod describe;
mod formats;
mod fuzz;
mod reader;
mod records;
mod resume;
mod support;
