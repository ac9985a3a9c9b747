//! Whether the database answers, as all slots of a worker see it.
//!
//! The first statement that fails closes the gate: idle slots cancel their consumers and wait, so
//! that no ticket is handed to a worker that could not open it. A prober opens the gate again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sexton_service::outage::Reachability;
use sexton_store::answer::within;
use sexton_store::{Store, StoreError};
use tokio::sync::watch;

/// Before a database that does not answer is asked again; doubled while it answers the question and
/// then fails the next statement.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// For the question whether it answers. Short: one that was asked while the network swallowed
/// everything is not answered afterwards either, and the next one is.
const PROBE: Duration = Duration::from_secs(3);
/// How long one statement outside the journal may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The gate. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    open: watch::Sender<bool>,
    /// Whether a statement has succeeded since the gate was opened.
    proved: Arc<AtomicBool>,
    reachability: Reachability,
}

impl Gate {
    /// Open: the start has reached the database.
    pub(crate) fn new(reachability: Reachability) -> Self {
        let proved = Arc::new(AtomicBool::new(true));
        Self { open: watch::Sender::new(true), proved, reachability }
    }

    /// A statement failed.
    pub(crate) fn failed(&self, error: &StoreError) {
        self.reachability.failed(error);
        self.open.send_replace(false);
    }

    /// A statement succeeded.
    pub(crate) fn answered(&self) {
        self.proved.store(true, Ordering::Relaxed);
        self.reachability.answered();
    }

    pub(crate) fn is_open(&self) -> bool {
        *self.open.borrow()
    }

    /// Waits until the database answers. Cancel-safe.
    pub(crate) async fn opened(&self) {
        // The sender lives in `self`, so the wait cannot fail.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }

    /// Waits until a statement fails. Cancel-safe.
    pub(crate) async fn closed(&self) {
        let _ = self.open.subscribe().wait_for(|open| !*open).await;
    }

    /// Runs a statement outside the journal: bounded, and with the gate told how it went.
    ///
    /// A server that vanished without a word leaves the client waiting for ever otherwise; the
    /// abandoned connection is discarded.
    pub(crate) async fn ask<T>(
        &self,
        statement: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answer = within(LIMIT, statement).await;
        match &answer {
            Ok(_) => self.answered(),
            Err(StoreError::Data(_)) => {}
            Err(error) => self.failed(error),
        }
        answer
    }

    /// Opens the gate whenever the database can be worked with again. Runs as long as the worker.
    pub(crate) async fn probe(self, store: Store) {
        let mut pause = PAUSE;
        loop {
            self.closed().await;
            // A server that answers this and refuses the next write (a full disk) would otherwise
            // have tickets handed out and given back in a loop, each time counted by the broker.
            pause = if self.proved.swap(false, Ordering::Relaxed) {
                PAUSE
            } else {
                (pause * 2).min(LONGEST_PAUSE)
            };
            tokio::time::sleep(pause).await;
            while let Err(error) = within(PROBE, store.probe()).await {
                self.reachability.failed(&error);
                tokio::time::sleep(PAUSE).await;
            }
            self.reachability.answered();
            self.open.send_replace(true);
        }
    }
}
