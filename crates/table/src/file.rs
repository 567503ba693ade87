//! Tables as files: format, writing, reading. `docs/formats/table.md` has the bytes.

mod format;
mod read;
mod write;

pub use write::SaveReport;
