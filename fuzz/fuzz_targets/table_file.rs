//! Any bytes as a table file: refused with a place, or a table that survives its own round trip.
#![no_main]

use std::path::Path;

use clickmill_fuzz::mend;
use clickmill_table::Table;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut mended = bytes.to_vec();
    mend(&mut mended);
    for bytes in [bytes, &mended] {
        if let Ok(table) = Table::from_bytes(bytes, Path::new("fuzz"), None) {
            let again = Table::from_bytes(&table.to_bytes(), Path::new("fuzz"), None).expect("our own file");
            assert_eq!(again.digest(), table.digest());
        }
    }
});
