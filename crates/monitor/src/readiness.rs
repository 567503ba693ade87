//! Whether the process can be used, and if not, why.

use std::sync::Mutex;

pub(crate) struct Readiness {
    /// Absent: it can.
    reason: Mutex<Option<String>>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            reason: Mutex::new(Some("starting".to_owned())),
        }
    }
}

impl Readiness {
    pub(crate) fn set(&self, reason: Option<String>) {
        *self.reason.lock().expect("nobody panics with it") = reason;
    }

    pub(crate) fn reason(&self) -> Option<String> {
        self.reason.lock().expect("nobody panics with it").clone()
    }
}
