//! The names of all objects of Sexton on a broker, derived from one namespace.
//!
//! Namespaces share a broker without seeing one another: no two of them, and no two pools within one, can produce the
//! same name. Names are part of the documented interface; other programs publish to them.

use std::fmt;
use std::str::FromStr;

use sexton_model::pool::PoolName;

/// The default namespace, the only one with an underscore.
pub const DEFAULT_NAMESPACE: &str = "cron_scheduler";

/// The longest namespace, in bytes. With the longest pool and step the names stay far below the
/// 255 bytes that the protocol allows.
pub const MAX_NAMESPACE_BYTES: usize = 63;

/// A valid namespace: `[a-z0-9-]+`, or [`DEFAULT_NAMESPACE`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Namespace(String);

/// A text that cannot be a namespace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceError {
    /// The namespace is empty.
    #[error("namespace is empty; leave it out for `{DEFAULT_NAMESPACE}`")]
    Empty,
    /// The namespace is longer than [`MAX_NAMESPACE_BYTES`].
    #[error("namespace of {0} bytes is too long: {MAX_NAMESPACE_BYTES} at most")]
    TooLong(usize),
    /// A character that would make names ambiguous.
    #[error("namespace {0:?} is not valid: lower-case letters, digits and hyphens only")]
    Character(String),
    /// `cron`, whose exchange would be the default namespace's.
    #[error("namespace `cron` is taken: its exchange would be that of `{DEFAULT_NAMESPACE}`")]
    Taken,
}

impl Namespace {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`NamespaceError`], which shows a valid name.
    pub fn new(name: impl Into<String>) -> Result<Self, NamespaceError> {
        let name = name.into();
        if name == DEFAULT_NAMESPACE {
            return Ok(Self(name));
        }
        if name.is_empty() {
            return Err(NamespaceError::Empty);
        }
        if name.len() > MAX_NAMESPACE_BYTES {
            return Err(NamespaceError::TooLong(name.len()));
        }
        if !name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-')) {
            return Err(NamespaceError::Character(name));
        }
        if name == "cron" {
            return Err(NamespaceError::Taken);
        }
        Ok(Self(name))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self(DEFAULT_NAMESPACE.to_owned())
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Namespace {
    type Err = NamespaceError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

/// Returns the queue that a pool's workers consume.
pub fn main_queue(namespace: &Namespace, pool: &PoolName) -> String {
    if pool.is_default() { namespace.0.clone() } else { format!("{namespace}.{pool}") }
}

/// Returns whether `queue` is a main queue of the namespace.
pub fn is_main_queue(namespace: &Namespace, queue: &str) -> bool {
    match queue.strip_prefix(namespace.as_str()) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('.').is_some_and(|pool| PoolName::new(pool).is_ok()),
        None => false,
    }
}

/// Returns the delay queue that returns tickets to a pool after `delay_ms`, one of
/// [`DELAY_QUEUES_MS`](crate::DELAY_QUEUES_MS).
pub fn retry_queue(namespace: &Namespace, pool: &PoolName, delay_ms: u64) -> String {
    format!("{}_retry.{delay_ms}", main_queue(namespace, pool))
}

/// Returns the queue of parked tickets, one for all pools.
pub fn failed_queue(namespace: &Namespace) -> String {
    format!("{namespace}_failed")
}

/// Returns the exchange for dead-lettering and for manual tools.
pub fn exchange(namespace: &Namespace) -> String {
    if namespace.0 == DEFAULT_NAMESPACE {
        "cron_dlx".to_owned()
    } else {
        format!("{namespace}_dlx")
    }
}

/// The exchange's routing key to the failed queue.
pub const FAILED_KEY: &str = "failed";

/// Returns the exchange's routing key to a delay queue.
pub fn retry_key(pool: &PoolName, delay_ms: u64) -> String {
    format!("retry.{pool}.{delay_ms}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::DELAY_QUEUES_MS;

    fn pool(name: &str) -> PoolName {
        PoolName::new(name).unwrap()
    }

    #[test]
    fn the_default_namespace_has_the_documented_names() {
        let ns = Namespace::default();
        assert_eq!(main_queue(&ns, &PoolName::default_pool()), "cron_scheduler");
        assert_eq!(main_queue(&ns, &pool("batch")), "cron_scheduler.batch");
        assert_eq!(retry_queue(&ns, &PoolName::default_pool(), 5_000), "cron_scheduler_retry.5000");
        assert_eq!(retry_queue(&ns, &pool("batch"), 5_000), "cron_scheduler.batch_retry.5000");
        assert_eq!(failed_queue(&ns), "cron_scheduler_failed");
        assert_eq!(exchange(&ns), "cron_dlx");
        assert_eq!(exchange(&Namespace::new("staging").unwrap()), "staging_dlx");
        assert_eq!(retry_key(&pool("batch"), 1_000), "retry.batch.1000");
    }

    #[test]
    fn namespaces_that_could_collide_are_refused() {
        assert_eq!(Namespace::new(""), Err(NamespaceError::Empty));
        assert_eq!(Namespace::new("cron"), Err(NamespaceError::Taken));
        assert_eq!(Namespace::new("a".repeat(64)), Err(NamespaceError::TooLong(64)));
        for name in ["a_b", "a.b", "A", "a b", "cron_scheduler2", "ü"] {
            assert!(
                matches!(Namespace::new(name), Err(NamespaceError::Character(_))),
                "{name:?} was accepted"
            );
        }
        assert!(Namespace::new("0-staging").is_ok());
    }

    #[test]
    fn no_two_queues_of_neighbouring_namespaces_share_a_name() {
        let mut seen = HashSet::new();
        let pools = ["default", "retry", "failed", "a", "a-b"].map(pool);
        for ns in ["cron_scheduler", "a", "a-b", "retry", "failed", "default"] {
            let ns = Namespace::new(ns).unwrap();
            assert!(seen.insert(failed_queue(&ns)));
            assert!(!is_main_queue(&ns, &failed_queue(&ns)));
            for pool in &pools {
                assert!(seen.insert(main_queue(&ns, pool)));
                assert!(is_main_queue(&ns, &main_queue(&ns, pool)));
                for delay_ms in DELAY_QUEUES_MS {
                    assert!(seen.insert(retry_queue(&ns, pool, delay_ms)));
                    assert!(!is_main_queue(&ns, &retry_queue(&ns, pool, delay_ms)));
                }
            }
        }
    }
}
