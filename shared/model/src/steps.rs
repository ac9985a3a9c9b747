//! Counts, in tests, the expensive steps of searches: reads of a zone's data, months, firings visited.
//!
//! A bound on steps holds on every machine; one on time does not.

/// Counts one step.
#[cfg(not(test))]
pub(crate) const fn step() {}

#[cfg(test)]
pub(crate) use counted::{count_steps, step};

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn step() {
        STEPS.set(STEPS.get() + 1);
    }

    /// Returns how many steps `of` takes.
    pub(crate) fn count_steps<T>(of: impl FnOnce() -> T) -> (u64, T) {
        let before = STEPS.get();
        let answer = of();
        (STEPS.get() - before, answer)
    }
}
