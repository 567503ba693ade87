//! Streaming, mergeable metrics.
