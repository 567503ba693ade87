//! From raw click logs to columnar batches.
