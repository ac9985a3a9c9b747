//! Limits how many approvals, triggers of many jobs and examinations go on at the same time: each outlives its client, and clients who leave and
//! come back would fill the connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Allowed;
use super::stores::WRITE_CONNECTIONS;

const MAX_APPROVALS: usize = 3;
const MAX_TRIGGERS: usize = 2;
/// Each may compute for seconds.
const MAX_EXAMINATIONS: usize = 2;
/// More would take the turns of all other requests while they wait.
const MAX_WAITING_EXAMINATIONS: usize = 4;
/// How long an examination waits for its turn.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that are left for log-ins, cancels, pauses and other short changes.
const OTHER_CONNECTIONS: usize = 2;

// Each approval and each trigger holds one connection at a time, perhaps for as long as it waits for locks.
const _: () =
    assert!(MAX_APPROVALS + MAX_TRIGGERS + OTHER_CONNECTIONS <= WRITE_CONNECTIONS as usize);

/// Work that goes on without its client; each kind has a limit of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unattended {
    /// An action is approved, and carried out.
    Approval,
    /// Several jobs are triggered.
    Triggers,
}

/// The permits for such work, of one server.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    approvals: Arc<Semaphore>,
    triggers: Arc<Semaphore>,
    examinations: Arc<Semaphore>,
    waiting_examinations: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            approvals: Arc::new(Semaphore::new(MAX_APPROVALS)),
            triggers: Arc::new(Semaphore::new(MAX_TRIGGERS)),
            examinations: Arc::new(Semaphore::new(MAX_EXAMINATIONS)),
            waiting_examinations: Arc::new(Semaphore::new(MAX_WAITING_EXAMINATIONS)),
        }
    }
}

impl Turns {
    fn of(&self, kind: Unattended) -> Arc<Semaphore> {
        Arc::clone(match kind {
            Unattended::Approval => &self.approvals,
            Unattended::Triggers => &self.triggers,
        })
    }

    async fn examination(&self) -> Option<OwnedSemaphorePermit> {
        let examinations = Arc::clone(&self.examinations);
        if let Ok(turn) = Arc::clone(&examinations).try_acquire_owned() {
            return Some(turn);
        }
        let _waiting = self.waiting_examinations.try_acquire().ok()?;
        // It is never closed, so only the time ends the wait.
        timeout(WAIT_TIMEOUT, examinations.acquire_owned()).await.ok()?.ok()
    }
}

impl<P> Allowed<P> {
    /// Takes a turn to examine many jobs, and waits up to five seconds for it; `None`: that was not enough, or four others wait already.
    pub(crate) async fn examination_turn(&self) -> Option<OwnedSemaphorePermit> {
        self.backend.turns.examination().await
    }

    /// Begins work that goes on when the client leaves; `None`: as much of its kind goes on already, and this has not begun.
    pub(crate) fn spawn_limited<F>(
        &self,
        kind: Unattended,
        work: F,
    ) -> Option<JoinHandle<F::Output>>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let turn = self.backend.turns.of(kind).try_acquire_owned().ok()?;
        Some(self.spawn_background(async move {
            let _turn = turn;
            work.await
        }))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn two_examine_and_four_wait_for_five_seconds() {
        let turns = Turns::default();
        let begun = Instant::now();
        let first = turns.examination().await;
        let second = turns.examination().await;
        assert!(first.is_some() && second.is_some());
        let wait = || {
            tokio::spawn({
                let turns = turns.clone();
                async move { turns.examination().await.is_some() }
            })
        };
        let waiting: Vec<_> = (0..MAX_WAITING_EXAMINATIONS).map(|_| wait()).collect();
        tokio::task::yield_now().await;
        assert!(turns.examination().await.is_none());
        assert_eq!(begun.elapsed(), Duration::ZERO, "the fifth does not wait");
        for one in waiting {
            assert!(!one.await.unwrap());
        }
        let waited = begun.elapsed();
        assert!(waited >= WAIT_TIMEOUT && waited < 2 * WAIT_TIMEOUT, "{waited:?}");
        let begun = Instant::now();
        let waiting: Vec<_> = (0..MAX_WAITING_EXAMINATIONS).map(|_| wait()).collect();
        tokio::task::yield_now().await;
        drop(first);
        for one in waiting {
            assert!(one.await.unwrap(), "each passes its turn on");
        }
        assert!(begun.elapsed() < WAIT_TIMEOUT);
    }
}
