#![no_main]

use std::sync::LazyLock;

use clickmill_fuzz::Target;
use clickmill_samples::{FormatConfig, LibsvmValues};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    Target::new(
        &FormatConfig::Libsvm {
            values: LibsvmValues::Error,
        },
        ["label", "1", "features", "qid"],
    )
});

fuzz_target!(|text: &[u8]| TARGET.parse(text));
