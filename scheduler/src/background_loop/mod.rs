//! The shape of every background loop: one round that holds all behaviour, and what to do between
//! rounds.
//!
//! A test steps a loop by calling [`BackgroundLoop::run_once`] with an instant of its choice; in production
//! [`runner`] calls it with `None`, the database's own clock.

pub mod runner;

use std::sync::Arc;
use std::time::Duration;

use sexton_broker::{InspectError, PublishError};
use sexton_store::{Now, StoreError};

/// For one answer of the database, where firings or lost attempts wait for it. The store's own limit is
/// longer, for whoever can wait; a server that vanished without a word would hold up a loop for that
/// long, and with it all that the loop has locked.
pub(crate) const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// One background loop.
pub trait BackgroundLoop: Send + Sync + 'static {
    /// A word, for logs and `/livez`.
    const NAME: &'static str;
    /// A round that takes longer is given up, which is no different from a crash in its middle. One that has made
    /// [progress](Self::progress) meanwhile may take as long again.
    const ROUND_TIMEOUT: Duration;
    /// What a round did.
    type Report: Send;

    /// One round. Dropping the future in the middle, like a crash there, loses nothing.
    ///
    /// # Errors
    ///
    /// [`LoopError`]; the next round begins anew from what the database says.
    fn run_once(&self, now: Now) -> impl Future<Output = Result<Self::Report, LoopError>> + Send;

    /// How many pieces of work this loop has done, all in all, where a round may have any number of them, each
    /// of bounded length.
    fn progress(&self) -> u64 {
        0
    }

    /// How long the loop rests after a round.
    fn pause(&self, report: &Self::Report) -> Pause;
}

/// A rest between two rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// At most this long: news ends it.
    AtMost(Duration),
    /// The same, and no longer by more than a fraction of a millisecond: something is due then.
    Due(Duration),
    /// This long whatever comes, where a rate must be kept.
    Exactly(Duration),
}

/// Why a round did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The database: see its variants for what to do.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The broker is away, so there is nothing to do before it is back. Its link says so itself.
    #[error("the broker is away")]
    BrokerUnavailable,
    /// The broker did not answer a question. Ask again in the next round.
    #[error(transparent)]
    Broker(#[from] InspectError),
    /// A message that was looked at could not be put back at the tail; it has gone back to the head.
    #[error("a message of the failed queue could not be put back: {0}")]
    CopyToTail(#[source] PublishError),
    /// Cursors of jobs that were locked did not move: a fault of the program. Nothing was claimed.
    #[error("only {moved} of {expected} locked jobs could be moved on; nothing was claimed")]
    CursorsNotMoved {
        /// Rows that changed.
        moved: u64,
        /// Rows that should have.
        expected: usize,
    },
    /// The round took longer than [`BackgroundLoop::ROUND_TIMEOUT`].
    #[error("a round did not end within {} s and was given up", .0.as_secs())]
    RoundTimedOut(Duration),
}

/// Several hold the loop where news changes what it remembers.
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
