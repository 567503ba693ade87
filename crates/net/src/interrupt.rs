//! Waits that something outside may end: whoever runs them on a thread says how to find out.

use std::cell::Cell;

/// Whether the wait under way is to end.
type Check = fn() -> bool;

thread_local! {
    static CHECK: Cell<Option<Check>> = const { Cell::new(None) };
}

/// Runs `work`; waits for a peer, on this thread, ask `check` now and then, and end with `Error::Stopped` when it
/// says so. What is there at once is never asked about.
pub fn interruptible<T>(check: Check, work: impl FnOnce() -> T) -> T {
    /// What was there before comes back, also when `work` panics.
    struct Before(Option<Check>);

    impl Drop for Before {
        fn drop(&mut self) {
            CHECK.set(self.0);
        }
    }

    let _before = Before(CHECK.replace(Some(check)));
    work()
}

pub(crate) fn is_interrupted() -> bool {
    CHECK.get().is_some_and(|check| check())
}
