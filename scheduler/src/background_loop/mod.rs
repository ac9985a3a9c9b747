//! The interface of every background loop: one round that holds all behaviour, and the pause between rounds.
//!
//! A test steps a loop by calling [`BackgroundLoop::run_once`] with a chosen instant; in production [`runner`]
//! calls it with `None`, the database's own clock.

pub mod runner;

use std::sync::Arc;
use std::time::Duration;

use sexton_broker::{InspectError, PublishError};
use sexton_store::{Now, StoreError};

/// Timeout of one database query while firings or lost attempts wait for it. The store's own limit is longer,
/// for callers that can wait; a server that vanished would hold up a loop for that long, and with it all that
/// the loop has locked.
pub(crate) const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// One background loop.
pub trait BackgroundLoop: Send + Sync + 'static {
    /// The loop's name, for logs and `/livez`.
    const NAME: &'static str;
    /// A round that takes longer is dropped, which is like a crash in its middle. A round that has made
    /// [progress](Self::progress) meanwhile may take as long again.
    const ROUND_TIMEOUT: Duration;
    /// What a round did.
    type Report: Send;

    /// Runs one round. Dropping the future in the middle, like a crash there, loses nothing.
    ///
    /// # Errors
    ///
    /// [`LoopError`]; the next round starts afresh from the database.
    fn run_once(&self, now: Now) -> impl Future<Output = Result<Self::Report, LoopError>> + Send;

    /// Returns how many pieces of work this loop has done since its start, if a round may have any number of
    /// them, each of bounded length.
    fn progress(&self) -> u64 {
        0
    }

    /// Returns how long the loop pauses after a round.
    fn pause(&self, report: &Self::Report) -> Pause;
}

/// A pause between two rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// At most this long: a notification ends it.
    AtMost(Duration),
    /// Like `AtMost`, but accurate to a fraction of a millisecond: something is due then.
    Due(Duration),
    /// Exactly this long, even if a notification arrives: it limits a rate.
    Exactly(Duration),
}

/// Why a round failed.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The database failed; the variants say what to do.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The broker is unreachable, so there is nothing to do until it is back. Its link logs that.
    #[error("the broker is away")]
    BrokerUnavailable,
    /// The broker did not answer a query. The next round repeats it.
    #[error(transparent)]
    Broker(#[from] InspectError),
    /// An inspected message could not be put back at the tail; it has returned to the head.
    #[error("a message of the failed queue could not be put back: {0}")]
    CopyToTail(#[source] PublishError),
    /// Cursors of locked jobs did not move: a bug. Nothing was claimed.
    #[error("only {moved} of {expected} locked jobs could be moved on; nothing was claimed")]
    CursorsNotMoved {
        /// Rows that changed.
        moved: u64,
        /// Rows that should have changed.
        expected: usize,
    },
    /// The round took longer than [`BackgroundLoop::ROUND_TIMEOUT`].
    #[error("a round did not end within {} s and was given up", .0.as_secs())]
    RoundTimedOut(Duration),
}

/// An `Arc` of a loop is a loop, so that the listener can share it: a notification changes its state.
impl<S: BackgroundLoop> BackgroundLoop for Arc<S> {
    const NAME: &'static str = S::NAME;
    const ROUND_TIMEOUT: Duration = S::ROUND_TIMEOUT;
    type Report = S::Report;

    fn run_once(&self, now: Now) -> impl Future<Output = Result<Self::Report, LoopError>> + Send {
        S::run_once(self, now)
    }

    fn progress(&self) -> u64 {
        S::progress(self)
    }

    fn pause(&self, report: &Self::Report) -> Pause {
        S::pause(self, report)
    }
}
