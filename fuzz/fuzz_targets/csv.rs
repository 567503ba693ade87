#![no_main]

use std::sync::LazyLock;

use clickmill_fuzz::Target;
use clickmill_samples::FormatConfig;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    Target::new(
        &FormatConfig::Csv {
            delimiter: ",".to_owned(),
        },
        ["y", "n", "s", "v"],
    )
});

fuzz_target!(|text: &[u8]| TARGET.parse(text));
