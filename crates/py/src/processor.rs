//! What the processor says of itself, where it matters to libraries that Python calls.

use pyo3::prelude::*;

/// Whether the processor shows AMX without the sizes of its tiles, as some virtual machines do.
///
/// oneDNN then chooses AMX for bf16 and cannot make a single operation: "could not create a primitive".
#[pyfunction]
pub(crate) fn hides_tile_sizes() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        const FEATURES: u32 = 7;
        const AMX_TILE: u32 = 1 << 24;
        const TILES: u32 = 0x1d;
        let max_leaf = __cpuid(0).eax;
        let has_tiles = max_leaf >= FEATURES && __cpuid_count(FEATURES, 0).edx & AMX_TILE != 0;
        // Palette 1 is the only one that there is; its first word holds the bytes of all tiles.
        has_tiles && (max_leaf < TILES || __cpuid_count(TILES, 1).eax == 0)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}
