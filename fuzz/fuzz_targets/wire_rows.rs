//! Any bytes as an answer: refused, or written again byte for byte.
#![no_main]

use clickmill_fuzz::rows_payload;
use clickmill_wire::rows::Rows;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|payload: &[u8]| {
    if let Ok(rows) = Rows::decode(payload) {
        assert_eq!(rows_payload(&rows), payload);
    }
});
