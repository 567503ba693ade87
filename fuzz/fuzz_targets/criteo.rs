#![no_main]

use std::sync::LazyLock;

use clickmill_fuzz::Target;
use clickmill_samples::FormatConfig;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    Target::new(
        &FormatConfig::Criteo { has_label: None },
        ["label", "I1", "C1", "C2"],
    )
});

fuzz_target!(|text: &[u8]| TARGET.parse(text));
