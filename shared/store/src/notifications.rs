//! Wake-ups: notify schedulers and workers of job edits, triggers, requeues and cancels.
//!
//! Never one per claim, open or settle. A notification can be lost with its connection, so every listener also polls.

use sqlx::postgres::PgListener;

use crate::{Store, StoreError};

/// The one channel; the payload says what changed.
pub const CHANNEL: &str = "sexton";

/// What changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notification {
    /// A job's schedule or status: the planner's sleep may be too long.
    Jobs,
    /// An unpublished ticket is due now: the relay need not wait for its poll.
    TicketsUnpublished,
    /// An execution waits for its job: the planner admits it if the job is free.
    Waiters,
    /// A running execution has a cancel request: its worker renews at once, and so learns of it.
    Cancel,
    /// A bulk was created or controlled: a scheduler carries it out.
    Bulk,
    /// An execution has begun the flow of its job: a scheduler makes the members.
    Flows,
}

impl Notification {
    /// The payload.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::TicketsUnpublished => "unpublished",
            Self::Waiters => "waiters",
            Self::Cancel => "cancel",
            Self::Bulk => "bulk",
            Self::Flows => "flows",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let all = [
            Self::Jobs,
            Self::TicketsUnpublished,
            Self::Waiters,
            Self::Cancel,
            Self::Bulk,
            Self::Flows,
        ];
        all.into_iter().find(|wake| wake.as_str() == text)
    }
}

/// A listening connection outside the pool. After a drop, its goodbye to a vanished server may stay unanswered until
/// TCP gives up, and would occupy a place in the pool until then.
#[derive(Debug)]
pub struct Listener(PgListener);

impl Listener {
    /// Connects and listens.
    pub async fn connect(store: &Store) -> Result<Self, StoreError> {
        let mut listener = PgListener::connect_with(&store.single_connection_pool()).await?;
        // The caller must learn of the loss, and connects anew.
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        Ok(Self(listener))
    }

    /// Waits for the next wake-up; `None` stands for a payload of another version, which may mean any change. Safe to
    /// drop and call again.
    ///
    /// # Errors
    ///
    /// The connection is lost, and notifications may have been missed: drop this listener, look for work, connect
    /// anew.
    pub async fn next(&mut self) -> Result<Option<Notification>, StoreError> {
        match self.0.try_recv().await? {
            Some(notification) => Ok(Notification::parse(notification.payload())),
            None => Err(StoreError::Unavailable(sqlx::Error::PoolClosed)),
        }
    }
}
