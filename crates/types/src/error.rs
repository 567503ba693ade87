//! What can be wrong with a schema.

/// A schema that cannot mean anything, with the place and what would be valid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("schema is not valid JSON: {reason}")]
    Json { reason: String },
    #[error("schema version {found} is not supported by this build, which reads up to version {supported}")]
    Version { found: u32, supported: u32 },
    #[error("{place}: {reason}")]
    Schema { place: String, reason: String },
}

impl Error {
    pub(crate) fn schema(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Schema {
            place: place.into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn slot(name: &str, reason: impl Into<String>) -> Self {
        Self::schema(format!("slot `{name}`"), reason)
    }
}
