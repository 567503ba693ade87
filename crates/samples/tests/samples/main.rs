//! The public face of the crate, over real files.

mod formats;
mod reader;
mod resume;
mod support;
