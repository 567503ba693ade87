//! Memory that grows without copying and sits on huge pages once it is large.
//!
//! On Linux a region is one anonymous mapping: growing moves page tables, not bytes, and pages that were
//! never touched cost nothing. From a size given by its user on, its base is aligned to a huge page and the
//! kernel is asked for huge pages; random access to gigabytes is bound by the TLB otherwise. Elsewhere, and
//! under Miri, the allocator does the same job by copying.
//!
//! New bytes are zero. The base may move in `resize`; users keep offsets, never addresses.

#![expect(
    unsafe_code,
    reason = "this is the one place that gets memory from the system"
)]

use std::ptr::NonNull;

use crate::Error;

const HUGE_PAGE: usize = 2 << 20;
const PAGE: usize = 4096;

pub(crate) struct Region {
    base: NonNull<u8>,
    bytes: usize,
    /// Size from which huge pages are worth what their rounding wastes.
    huge_from: usize,
}

// SAFETY: a region owns its memory; the pointer is not shared with anything else.
unsafe impl Send for Region {}
// SAFETY: reading through a shared reference needs no synchronisation, writing needs `&mut`.
unsafe impl Sync for Region {}

impl Region {
    /// An empty region that goes over to huge pages at `huge_from` bytes.
    pub(crate) fn new(huge_from: usize) -> Self {
        Self {
            base: NonNull::<Aligned>::dangling().cast(),
            bytes: 0,
            huge_from,
        }
    }

    #[inline]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Grows to at least `bytes`, with room to spare so that the next calls are free.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let wanted = bytes.max(self.bytes.saturating_add(self.bytes / 4));
        self.resize(self.rounded(wanted))
    }

    /// Grows to at least `bytes` and no more than rounding asks for.
    pub(crate) fn grow_exactly(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes <= self.bytes {
            return Ok(());
        }
        self.resize(self.rounded(bytes))
    }

    /// Gives back what lies beyond `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) -> Result<(), Error> {
        let bytes = self.rounded(bytes);
        if bytes >= self.bytes {
            return Ok(());
        }
        self.resize(bytes)
    }

    /// Bytes of memory in use when the first `touched` have been written.
    pub(crate) fn resident(&self, touched: usize) -> usize {
        self.rounded(touched).min(self.bytes)
    }

    fn rounded(&self, bytes: usize) -> usize {
        let unit = if bytes >= self.huge_from { HUGE_PAGE } else { PAGE };
        bytes.checked_next_multiple_of(unit).unwrap_or(usize::MAX)
    }
}

/// Alignment of an empty region, so that even its dangling base is a valid row address.
#[repr(align(64))]
struct Aligned;

impl Drop for Region {
    fn drop(&mut self) {
        // Unmapping our own mapping cannot fail.
        let _ = self.resize(0);
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
impl Region {
    fn resize(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes == self.bytes {
            return Ok(());
        }
        // SAFETY: `base` and `self.bytes` describe our own mapping, or `self.bytes` is 0 and there is none.
        let base = unsafe {
            match (self.bytes, bytes) {
                (old, 0) => {
                    libc::munmap(self.base.as_ptr().cast(), old);
                    self.base = NonNull::<Aligned>::dangling().cast();
                    self.bytes = 0;
                    return Ok(());
                }
                (0, new) => map(new, libc::PROT_READ | libc::PROT_WRITE, new >= self.huge_from),
                (old, new) => remap(self.base.as_ptr(), old, new, new >= self.huge_from),
            }
        };
        let base = base.ok_or(Error::Memory { bytes })?;
        if bytes >= self.huge_from {
            // SAFETY: the range is our mapping. Advice may be refused; nothing depends on it.
            unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
            if self.bytes < self.huge_from && self.bytes > 0 {
                // What was touched before lies on small pages: ask for it to be joined now.
                let touched = self.bytes.next_multiple_of(HUGE_PAGE).min(bytes);
                // SAFETY: as above.
                unsafe { libc::madvise(base.as_ptr().cast(), touched, libc::MADV_COLLAPSE) };
            }
        }
        self.base = base;
        self.bytes = bytes;
        Ok(())
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
unsafe fn map(bytes: usize, protection: libc::c_int, is_huge: bool) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    if !is_huge {
        // SAFETY: a new anonymous mapping touches no existing memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        return checked(base);
    }
    let span = bytes.checked_add(HUGE_PAGE)?;
    // SAFETY: as above; the parts cut off belong to the mapping just made.
    unsafe {
        let start = checked(libc::mmap(std::ptr::null_mut(), span, protection, flags, -1, 0))?;
        let skip = start.as_ptr().align_offset(HUGE_PAGE);
        let base = start.as_ptr().add(skip);
        if skip > 0 {
            libc::munmap(start.as_ptr().cast(), skip);
        }
        libc::munmap(base.add(bytes).cast(), HUGE_PAGE - skip);
        NonNull::new(base)
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
unsafe fn remap(base: *mut u8, old: usize, new: usize, is_huge: bool) -> Option<NonNull<u8>> {
    let is_aligned = !is_huge || base.align_offset(HUGE_PAGE) == 0;
    if is_aligned || new < old {
        // SAFETY: in place or not at all; the mapping is ours.
        let grown = unsafe { libc::mremap(base.cast(), old, new, 0) };
        if grown != libc::MAP_FAILED {
            return checked(grown);
        }
    }
    if !is_huge {
        // SAFETY: the mapping is ours and may move.
        return checked(unsafe { libc::mremap(base.cast(), old, new, libc::MREMAP_MAYMOVE) });
    }
    // SAFETY: `target` is a fresh reservation of `new` bytes, which the move replaces.
    unsafe {
        let target = map(new, libc::PROT_NONE, true)?;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let moved = libc::mremap(base.cast(), old, new, flags, target.as_ptr());
        if moved == libc::MAP_FAILED {
            libc::munmap(target.as_ptr().cast(), new);
        }
        checked(moved)
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn checked(base: *mut libc::c_void) -> Option<NonNull<u8>> {
    if base == libc::MAP_FAILED {
        None
    } else {
        NonNull::new(base.cast())
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
impl Region {
    fn resize(&mut self, bytes: usize) -> Result<(), Error> {
        use std::alloc::{Layout, alloc_zeroed, dealloc, realloc};
        let layout = |bytes| Layout::from_size_align(bytes, 64).map_err(|_| Error::Memory { bytes });
        // SAFETY: `base` came from this allocator with this layout, or `self.bytes` is 0 and there is none.
        let base = unsafe {
            match (self.bytes, bytes) {
                (old, new) if old == new => return Ok(()),
                (old, 0) => {
                    dealloc(self.base.as_ptr(), layout(old)?);
                    NonNull::<Aligned>::dangling().cast::<u8>().as_ptr()
                }
                (0, new) => alloc_zeroed(layout(new)?),
                (old, new) => {
                    let base = realloc(self.base.as_ptr(), layout(old)?, layout(new)?.size());
                    if new > old && !base.is_null() {
                        base.add(old).write_bytes(0, new - old);
                    }
                    base
                }
            }
        };
        self.base = NonNull::new(base).ok_or(Error::Memory { bytes })?;
        self.bytes = bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_growth_and_new_ones_are_zero() {
        let mut region = Region::new(4 << 20);
        let steps: &[usize] = if cfg!(miri) {
            &[100, 9_000]
        } else {
            &[100, 9_000, 3 << 20, 9 << 20, 40 << 20]
        };
        let mut written = 0;
        for &bytes in steps {
            region.grow(bytes).expect("memory");
            assert!(region.bytes() >= bytes);
            for at in (0..written).step_by(997) {
                // SAFETY: `at` is below the size of the region.
                assert_eq!(unsafe { *region.base().add(at) }, (at % 251) as u8);
            }
            // SAFETY: as above.
            assert_eq!(unsafe { *region.base().add(bytes - 1) }, 0);
            for at in (written..bytes).step_by(1) {
                // SAFETY: as above.
                unsafe { *region.base().add(at) = (at % 251) as u8 };
            }
            written = bytes;
        }
        region.shrink(5_000).expect("memory");
        // SAFETY: as above.
        assert_eq!(unsafe { *region.base().add(4_999) }, (4_999 % 251) as u8);
    }
}
