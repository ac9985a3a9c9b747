//! A lock of the session, and what its holder and the actor send each other.

use chrono::{DateTime, Utc};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::registry::Reservation;
use crate::error::{LockError, ReleaseError};
use crate::held::{End, Held, Release, Releasing};
use crate::key::Key;
use crate::lease::Lease;

/// The way to the actor. It has no limit, since a drop cannot wait; each entry is of a caller that waits, or of a lock that
/// was held.
pub(super) type Sender = mpsc::UnboundedSender<Command>;

/// What the actor does.
#[derive(Debug)]
pub(super) enum Command {
    /// Takes a lock.
    Acquire(Acquire),
    /// Releases one.
    Release(ReleaseLock),
    /// Answers when what was sent before is done.
    Flush(oneshot::Sender<()>),
}

/// The call for a lock.
#[derive(Debug)]
pub(super) struct Acquire {
    pub(super) key: Key,
    pub(super) tick: Option<DateTime<Utc>>,
    pub(super) reservation: Reservation,
    pub(super) sent_at: Instant,
    /// For the release.
    pub(super) sender: Sender,
    pub(super) reply: oneshot::Sender<Result<Option<Held>, LockError>>,
}

/// The call for a release.
#[derive(Debug)]
pub(super) struct ReleaseLock {
    pub(super) key: Key,
    pub(super) tick: Option<DateTime<Utc>>,
    pub(super) session: u64,
    pub(super) end: End,
    /// Absent where nobody waits for the answer.
    pub(super) reply: Option<oneshot::Sender<Result<(), ReleaseError>>>,
}

/// A lock of a session. While it lives, no other call of this process gets its key, and the session is not closed (but for a
/// bound).
#[derive(Debug)]
pub(super) struct SessionLock {
    key: Key,
    tick: Option<DateTime<Utc>>,
    session: u64,
    sender: Sender,
    is_released: bool,
    _reservation: Reservation,
    _holds_session: TaskTrackerToken,
}

impl SessionLock {
    /// Wraps a lock that the session has just taken.
    pub(super) fn held(
        request: Acquire,
        session: u64,
        lost: CancellationToken,
        lease: Lease,
        token: TaskTrackerToken,
    ) -> (Held, oneshot::Sender<Result<Option<Held>, LockError>>) {
        let Acquire { key, tick, reservation, sender, reply, .. } = request;
        let lock = Self {
            key,
            tick,
            session,
            sender,
            is_released: false,
            _reservation: reservation,
            _holds_session: token,
        };
        (Held::new(lost, lease, Box::new(lock)), reply)
    }

    /// Sends the release. The key can be reserved again when this value is dropped: a call for it then stands behind the
    /// release.
    fn send(&mut self, end: End, reply: Option<oneshot::Sender<Result<(), ReleaseError>>>) {
        self.is_released = true;
        let Self { key, tick, session, .. } = *self;
        // It fails only when the actor is gone, and the session with it; a reply is then dropped.
        let _ = self.sender.send(Command::Release(ReleaseLock { key, tick, session, end, reply }));
    }
}

impl Release for SessionLock {
    fn release(mut self: Box<Self>, end: End) -> Releasing {
        let (reply, answer) = oneshot::channel();
        self.send(end, Some(reply));
        Box::pin(async move {
            let answer = answer.await.unwrap_or(Err(ReleaseError::Lost));
            drop(self);
            answer
        })
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        if !self.is_released {
            self.send(End::Cancelled("the work was dropped".to_owned()), None);
        }
    }
}
