//! What the work holds: the signal of a loss, and the release.

use std::fmt;
use std::pin::Pin;

use tokio_util::sync::CancellationToken;

use crate::error::ReleaseError;
use crate::lease::Lease;

/// How the work ended. A lock with a tick records it; other locks ignore it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum End {
    /// The work is done.
    #[default]
    Succeeded,
    /// It failed, with what there is to say about it, of which 2,000 bytes are recorded.
    Failed(String),
    /// It was stopped.
    Cancelled(String),
}

impl End {
    /// The outcome's name in the table of ticks.
    pub(crate) const fn outcome(&self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed(_) => "failed",
            Self::Cancelled(_) => "cancelled",
        }
    }

    /// The text that is recorded with it. PostgreSQL's texts have no character zero.
    pub(crate) fn detail(&self) -> Option<String> {
        match self {
            Self::Succeeded => None,
            Self::Failed(text) | Self::Cancelled(text) => {
                Some(text.chars().filter(|c| *c != '\0').take(500).collect())
            }
        }
    }
}

/// The future of a release.
pub(crate) type Releasing = Pin<Box<dyn Future<Output = Result<(), ReleaseError>> + Send>>;

/// A lock that can be released. Dropped without a release, it releases the lock by itself, without waiting.
pub(crate) trait Release: Send + Sync + fmt::Debug {
    /// Begins the release before it returns; the future only waits for the answer.
    fn release(self: Box<Self>, end: End) -> Releasing;
}

/// A lock that is held.
///
/// It is held until [`Self::release`], or until this value is dropped, which releases it in the background and records the
/// end of a tick as cancelled. A process that dies frees the lock of a session at once, and the row of a [`LockRow`] when
/// its `at_most` has passed.
///
/// [`LockRow`]: crate::LockRow
#[derive(Debug)]
#[must_use = "a lock that is dropped is released"]
pub struct Held {
    lost: CancellationToken,
    lease: Lease,
    lock: Option<Box<dyn Release>>,
}

impl Held {
    pub(crate) fn new(lost: CancellationToken, lease: Lease, lock: Box<dyn Release>) -> Self {
        Self { lost, lease, lock: Some(lock) }
    }

    /// The signal that the lock is not certain any more: from then on another instance may take it. End the work at
    /// once, and then drop or release this value.
    ///
    /// It fires when the lock's connection has ended, when its row has another holder, or when the last proof of the lock
    /// is so old that the other side may soon free it.
    pub fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Whether the lock is not certain any more. In a process that was frozen, or whose host was suspended, this says so before
    /// the signal fires.
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled() || self.lease.is_over()
    }

    /// Releases the lock after work that succeeded, and waits for the answer. If this future is dropped the lock is
    /// released nevertheless.
    ///
    /// # Errors
    ///
    /// [`ReleaseError`]: the lock may have been free before the work had ended.
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.release_after(End::Succeeded).await
    }

    /// Releases the lock like [`Self::release`], and says how the work ended.
    ///
    /// # Errors
    ///
    /// As [`Self::release`].
    pub async fn release_after(mut self, end: End) -> Result<(), ReleaseError> {
        match self.lock.take() {
            Some(lock) => lock.release(end).await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_is_one_that_the_database_takes() {
        let long = End::Failed(format!("a\0b{}", "é".repeat(3_000))).detail().unwrap();
        assert!(long.starts_with("abé") && long.chars().count() == 500, "{long}");
        assert_eq!(End::Succeeded.detail(), None);
    }
}
