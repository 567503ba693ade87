//! Tables of rows.
