//! Counts, in tests, what costs time in searches: looks at a zone's data, months, firings visited.
//!
//! A bound on steps holds on every machine, which one on time does not.

/// One step is taken.
#[cfg(not(test))]
pub(crate) const fn step() {}

#[cfg(test)]
pub(crate) use counted::{step, taken_by};

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static TAKEN: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn step() {
        TAKEN.set(TAKEN.get() + 1);
    }

    /// How many steps `of` takes.
    pub(crate) fn taken_by<T>(of: impl FnOnce() -> T) -> (u64, T) {
        let before = TAKEN.get();
        let answer = of();
        (TAKEN.get() - before, answer)
    }
}
