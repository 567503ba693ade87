//! What a training process asks of the system: malloc thresholds and an atomic exchange of names.

use std::ffi::CString;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// Keep freed activations in the process instead of mapping them anew each step.
///
/// By default glibc gives blocks above 128 KiB back to the kernel when they are freed; a training step
/// then spends a good part of its time in page faults. Returns whether the settings were taken.
#[pyfunction]
pub(crate) fn keep_freed_memory() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // 32 MiB is the largest threshold that glibc takes: half of the heap of an arena.
        let settings = [
            (libc::M_MMAP_THRESHOLD, 32 << 20),
            (libc::M_TRIM_THRESHOLD, 1 << 30),
            (libc::M_TOP_PAD, 64 << 20),
        ];
        settings.iter().all(|&(name, value)| {
            #[expect(unsafe_code, reason = "mallopt is a C function")]
            // SAFETY: mallopt takes two integers and touches nothing but malloc's own settings, under its lock.
            let is_set = unsafe { libc::mallopt(name, value) } == 1;
            is_set
        })
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    {
        false
    }
}

/// Swap two names of one file system in one step: neither is ever absent.
#[pyfunction]
pub(crate) fn exchange_names(left: &str, right: &str) -> PyResult<()> {
    let path =
        |text: &str| CString::new(text).map_err(|_| PyValueError::new_err("a path must not hold a NUL byte"));
    let (left, right) = (path(left)?, path(right)?);
    #[expect(unsafe_code, reason = "renameat2 is a C function")]
    // SAFETY: both pointers are NUL-terminated strings that outlive the call.
    let result = unsafe {
        libc::renameat2(
            libc::AT_FDCWD,
            left.as_ptr(),
            libc::AT_FDCWD,
            right.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(PyOSError::new_err(std::io::Error::last_os_error().to_string()))
    }
}
