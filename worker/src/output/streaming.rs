//! Streaming: stores what running tasks write, about once a second, for all slots together.
//!
//! Nothing waits for it. A round asks every running attempt for what is new and writes it in few
//! statements; while the database is away or slow there are fewer rounds, and what does not fit into an
//! attempt's own limits meanwhile is dropped and counted there. What a statement without an answer may
//! have stored is stored again in the next round, which changes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sexton_service::fault;
use sexton_store::answer::within;
use sexton_store::lease::Held;
use sexton_store::output::{OutputPart, Written, write};
use sexton_store::{Store, StoreError};
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use super::Recorder;
use crate::gate::Gate;

/// Between two rounds.
const ROUND_EVERY: Duration = Duration::from_secs(1);
/// How long one statement may take.
const LIMIT: Duration = Duration::from_secs(5);
/// Text of one statement, in bytes, but for the last part's.
const GROUP_BYTES: usize = 512 * 1024;
/// Attempts of one statement.
const GROUP: usize = 256;

/// The attempts whose output is stored as it comes. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streaming(Arc<Mutex<BTreeMap<Uuid, (Held, Recorder)>>>);

/// As long as it lives, its attempt's output is stored as it comes.
#[derive(Debug)]
pub(crate) struct Streamed {
    streaming: Streaming,
    held: Held,
}

impl Drop for Streamed {
    fn drop(&mut self) {
        self.streaming.forget(self.held);
    }
}

impl Streaming {
    /// Stores what `recorder` takes in from now on, as output of the attempt `held`.
    pub(crate) fn stream(&self, held: Held, recorder: &Recorder) -> Streamed {
        self.lock().insert(held.execution_id.get(), (held, recorder.clone()));
        Streamed { streaming: self.clone(), held }
    }

    /// Makes rounds as long as the worker runs.
    pub(crate) async fn run(self, store: Store, gate: Gate) {
        let mut rounds = tokio::time::interval(ROUND_EVERY);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            // An attempt's own limits keep what is worth keeping until the database is back.
            gate.opened().await;
            if let Err(error) = self.round(&store).await {
                tracing::debug!("output could not be stored yet: {error}");
            }
        }
    }

    /// Stores once what is new.
    ///
    /// # Errors
    ///
    /// Of the first statement that failed; what it was to store is stored by the next round.
    async fn round(&self, store: &Store) -> Result<(), StoreError> {
        let attempts: Vec<(Held, Recorder)> = self.lock().values().cloned().collect();
        let (mut group, mut bytes) = (Vec::new(), 0);
        for (held, recorder) in attempts {
            let part = recorder.part();
            if part.is_empty() {
                continue;
            }
            bytes += part.chunks.iter().map(|chunk| chunk.text.len()).sum::<usize>();
            group.push((held, recorder, part));
            if bytes >= GROUP_BYTES || group.len() >= GROUP {
                self.write(store, std::mem::take(&mut group)).await?;
                bytes = 0;
            }
        }
        self.write(store, group).await
    }

    async fn write(&self, store: &Store, group: Vec<Member>) -> Result<(), StoreError> {
        match self.write_together(store, &group).await {
            // One bad text must not cost its neighbours theirs.
            Err(StoreError::Data(_)) => {}
            other => return other,
        }
        for member in group {
            let one = [member];
            match self.write_together(store, &one).await {
                Err(StoreError::Data(error)) => {
                    let [(held, recorder, part)] = one;
                    tracing::warn!(
                        execution.id = %held.execution_id,
                        "a part of the output cannot be stored and is left out: {error}"
                    );
                    recorder.stored(&part);
                }
                other => other?,
            }
        }
        Ok(())
    }

    async fn write_together(&self, store: &Store, group: &[Member]) -> Result<(), StoreError> {
        if group.is_empty() {
            return Ok(());
        }
        let parts: Vec<(Held, OutputPart)> =
            group.iter().map(|(held, _, part)| (*held, part.clone())).collect();
        let answers = within(LIMIT, write(store, &parts)).await?;
        fault::point("worker.streamed");
        for ((held, recorder, part), answer) in group.iter().zip(answers) {
            match answer {
                Written::Done => recorder.stored(part),
                // The next round asks again.
                Written::Locked => {}
                Written::Fenced => self.forget(*held),
            }
        }
        Ok(())
    }

    fn forget(&self, held: Held) {
        let mut attempts = self.lock();
        // The next attempt of the execution may be this worker's, too.
        if attempts.get(&held.execution_id.get()).is_some_and(|(known, _)| *known == held) {
            attempts.remove(&held.execution_id.get());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uuid, (Held, Recorder)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Member = (Held, Recorder, OutputPart);
