//! The public face of the crate, over real files.

mod arriving;
mod bad_lines;
mod describe;
mod formats;
mod fuzz;
mod log;
mod reader;
mod records;
mod resume;
mod support;
