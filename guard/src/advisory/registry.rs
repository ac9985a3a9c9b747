//! The keys that this process holds or is about to take.
//!
//! PostgreSQL gives a session a lock that it has a second time, and all locks of a process are of one session. So the
//! process itself refuses a key that it has, before the server is called.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::key::Key;

/// The keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Registry(Arc<Mutex<HashSet<Key>>>);

/// A key that nobody else in this process gets while this lives.
#[derive(Debug)]
pub(super) struct Reservation {
    registry: Registry,
    key: Key,
}

impl Registry {
    /// Reserves a key, or returns `None`: the process has it.
    pub(super) fn reserve(&self, key: Key) -> Option<Reservation> {
        self.change(|keys| keys.insert(key)).then(|| Reservation { registry: self.clone(), key })
    }

    fn change<T>(&self, change: impl FnOnce(&mut HashSet<Key>) -> T) -> T {
        // A set of numbers is whole even if a thread panicked beside it.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.registry.change(|keys| keys.remove(&self.key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_reserved_once_until_its_reservation_is_dropped() {
        let registry = Registry::default();
        let number = registry.reserve(Key::Number(7)).unwrap();
        assert!(registry.reserve(Key::Number(7)).is_none());
        let pair = registry.reserve(Key::Pair(0, 7));
        assert!(pair.is_some(), "PostgreSQL keeps the two spaces apart");
        drop(number);
        assert!(registry.reserve(Key::Number(7)).is_some());
    }
}
