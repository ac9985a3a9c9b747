//! Work that goes on without its client. A server does only so much of it at the same time: clients who leave and come back would collect it, and fill
//! the connections.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::Allowed;
use super::stores::WRITE_CONNECTIONS;

const MAX_APPROVALS: usize = 3;
const MAX_TRIGGERS: usize = 2;
/// Connections that are left for log-ins, cancels, pauses and other short changes.
const OTHER_CONNECTIONS: usize = 2;

// Each approval and each trigger holds one connection at a time, perhaps for as long as it waits for locks.
const _: () =
    assert!(MAX_APPROVALS + MAX_TRIGGERS + OTHER_CONNECTIONS <= WRITE_CONNECTIONS as usize);

/// What goes on without its client.
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
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            approvals: Arc::new(Semaphore::new(MAX_APPROVALS)),
            triggers: Arc::new(Semaphore::new(MAX_TRIGGERS)),
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
}

impl<P> Allowed<P> {
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
