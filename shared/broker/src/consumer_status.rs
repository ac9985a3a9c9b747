//! The consuming status of a slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a [`SlotConsumer`](crate::SlotConsumer) has a consumer at the broker, as far as it knows; for a health
/// check from outside. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ConsumerStatus(Arc<AtomicBool>);

impl ConsumerStatus {
    /// Returns whether it has. A dropped slot has none.
    pub fn is_consuming(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, consuming: bool) {
        self.0.store(consuming, Ordering::Relaxed);
    }
}
