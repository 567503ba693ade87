//! Any bytes as an increment: refused, or a table that survives its own round trip.
#![no_main]

use std::path::Path;

use clickmill_fuzz::{base_table, mend};
use clickmill_table::Table;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    mend(&mut bytes);
    let mut table = base_table();
    if table.take_increment(&bytes, Path::new("fuzz")).is_ok() {
        let again = Table::from_bytes(&table.to_bytes(), Path::new("fuzz"), None).expect("our own file");
        assert_eq!(again.digest(), table.digest());
    }
});
