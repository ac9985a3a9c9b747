//! What Sexton's own advisory locks are for.

use super::LockKey;
use crate::connection::exclusive_lock::{ExclusiveTask, LOCK_CLASS};
use crate::platform_keys::PlatformKeys;

/// The class of Sexton's own locks that are pairs.
pub(super) const PLATFORM_CLASS: i32 = LOCK_CLASS;

/// Returns what a key is for, as a noun; `None`: it is not Sexton's.
pub(super) fn purpose(platform_keys: PlatformKeys, key: LockKey) -> Option<&'static str> {
    match key {
        LockKey::Number(number) => platform_keys.purpose(number),
        LockKey::Pair(LOCK_CLASS, object) if object < 0 => Some("a person's sessions"),
        LockKey::Pair(LOCK_CLASS, object) => {
            Some(ExclusiveTask::of_key(object).map_or("Sexton", ExclusiveTask::purpose))
        }
        LockKey::Pair(..) => None,
    }
}
