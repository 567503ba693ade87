//! Tables as files: format, writing, reading. `docs/formats/table.md` has the bytes.

mod format;
mod frozen;
mod join;
mod read;
mod scanner;
mod write;

pub use frozen::FrozenSave;
pub use join::join_saves;
pub use write::SaveReport;
