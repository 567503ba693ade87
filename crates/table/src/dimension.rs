//! Widths that are worth code of their own.
//!
//! A kernel generic over `const D: usize` unrolls for a known width; `D = 0` means any width, known at run
//! time only.

/// Calls `$body` with `$D` bound to the width where it is a usual one, to 0 otherwise.
macro_rules! with_dimension {
    ($dim:expr, $D:ident => $body:expr) => {
        match $dim {
            8 => {
                const $D: usize = 8;
                $body
            }
            9 => {
                const $D: usize = 9;
                $body
            }
            10 => {
                const $D: usize = 10;
                $body
            }
            16 => {
                const $D: usize = 16;
                $body
            }
            32 => {
                const $D: usize = 32;
                $body
            }
            64 => {
                const $D: usize = 64;
                $body
            }
            _ => {
                const $D: usize = 0;
                $body
            }
        }
    };
}

pub(crate) use with_dimension;

/// The width as the kernel knows it.
#[inline(always)]
pub(crate) const fn width<const D: usize>(dim: usize) -> usize {
    if D == 0 { dim } else { D }
}
