//! Stores the output of running tasks, about once a second, for all slots together.
//!
//! No task waits for it. A round takes the new output of every running attempt and writes it in few statements;
//! while the database is down or slow there are fewer rounds, and output beyond an attempt's own limits is
//! dropped and counted. If a statement gets no answer, the next round stores the same again, which changes
//! nothing.
//!
//! A task that writes so much that each round would replace all that the previous one stored waits longer from
//! round to round: storing what nobody can read in time is wasted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sexton_service::fault;
use sexton_store::lease::AttemptFence;
use sexton_store::output::{OutputPart, WriteOutcome, write};
use sexton_store::timeout::with_timeout;
use sexton_store::{Store, StoreError};
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use super::Recorder;
use crate::gate::Gate;

/// The most rounds that an attempt skips whose parts replace one another.
const MAX_PAUSE_ROUNDS: u32 = 8;
/// Interval of the rounds.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit of one statement.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of text in one statement; the last part may exceed it.
const MAX_GROUP_BYTES: usize = 512 * 1024;
/// The most attempts in one statement.
const MAX_GROUP_ATTEMPTS: usize = 256;

/// The attempts whose output is being streamed. Cheap to clone; all clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streaming(Arc<Mutex<BTreeMap<Uuid, Attempt>>>);

#[derive(Clone, Debug)]
struct Attempt {
    held: AttemptFence,
    recorder: Recorder,
    pace: Pace,
}

/// The rounds in which an attempt takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Pace {
    /// Rounds to skip after a part.
    pause: u32,
    /// Rounds still to skip.
    left: u32,
}

impl Pace {
    /// Returns whether the attempt takes part in this round.
    fn turn(&mut self) -> bool {
        let turn = self.left == 0;
        self.left = self.left.saturating_sub(1);
        turn
    }

    /// Adjusts the pause after a part; `replaced`: it left nothing of earlier parts but the first lines.
    fn stored(&mut self, replaced: bool) {
        self.pause = if replaced { (self.pause * 2).clamp(1, MAX_PAUSE_ROUNDS) } else { 0 };
        self.left = self.pause;
    }
}

/// Streams the attempt's output until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamGuard {
    streaming: Streaming,
    held: AttemptFence,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.streaming.forget(self.held);
    }
}

impl Streaming {
    /// Stores what `recorder` receives from now on, as output of the attempt `held`.
    pub(crate) fn stream(&self, held: AttemptFence, recorder: &Recorder) -> StreamGuard {
        let attempt = Attempt { held, recorder: recorder.clone(), pace: Pace::default() };
        self.lock().insert(held.execution_id.get(), attempt);
        StreamGuard { streaming: self.clone(), held }
    }

    /// Makes rounds as long as the worker runs.
    pub(crate) async fn run(self, store: Store, gate: Gate) {
        let mut rounds = tokio::time::interval(ROUND_INTERVAL);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            // Until the next round an attempt's own limits decide what it keeps.
            gate.wait_for_writes().await;
            if let Err(error) = self.round(&store).await {
                tracing::debug!("output could not be stored yet: {error}");
            }
        }
    }

    /// Stores the new output once.
    ///
    /// # Errors
    ///
    /// The error of the first statement that failed; the next round stores what it should have stored.
    async fn round(&self, store: &Store) -> Result<(), StoreError> {
        let turn = |attempt: &mut Attempt| {
            attempt.pace.turn().then(|| (attempt.held, attempt.recorder.clone()))
        };
        let attempts: Vec<(AttemptFence, Recorder)> =
            self.lock().values_mut().filter_map(turn).collect();
        let (mut group, mut bytes) = (Vec::new(), 0);
        for (held, recorder) in attempts {
            let part = recorder.part();
            if part.is_empty() {
                continue;
            }
            bytes += part.chunks.iter().map(|chunk| chunk.text.len()).sum::<usize>();
            group.push((held, recorder, part));
            if bytes >= MAX_GROUP_BYTES || group.len() >= MAX_GROUP_ATTEMPTS {
                self.write(store, std::mem::take(&mut group)).await?;
                bytes = 0;
            }
        }
        self.write(store, group).await
    }

    async fn write(&self, store: &Store, group: Vec<Member>) -> Result<(), StoreError> {
        match self.write_together(store, &group).await {
            // One unstorable text must not prevent the storage of others.
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
        let parts: Vec<(AttemptFence, OutputPart)> =
            group.iter().map(|(held, _, part)| (*held, part.clone())).collect();
        let answers = with_timeout(WRITE_TIMEOUT, write(store, &parts)).await?;
        fault::point("worker.streamed");
        for ((held, recorder, part), answer) in group.iter().zip(answers) {
            match answer {
                WriteOutcome::Done => {
                    recorder.stored(part);
                    self.update_pace(*held, replaces_all(part));
                }
                // The next round retries.
                WriteOutcome::Locked => {}
                WriteOutcome::Fenced => self.forget(*held),
            }
        }
        Ok(())
    }

    fn update_pace(&self, held: AttemptFence, replaced: bool) {
        let mut attempts = self.lock();
        if let Some(attempt) = attempts.get_mut(&held.execution_id.get())
            && attempt.held == held
        {
            attempt.pace.stored(replaced);
        }
    }

    fn forget(&self, held: AttemptFence) {
        let mut attempts = self.lock();
        // This worker may also run the next attempt of the execution.
        if attempts.get(&held.execution_id.get()).is_some_and(|attempt| attempt.held == held) {
            attempts.remove(&held.execution_id.get());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uuid, Attempt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Member = (AttemptFence, Recorder, OutputPart);

/// Returns whether this part replaces everything stored after the first lines.
fn replaces_all(part: &OutputPart) -> bool {
    let last = part.chunks.last().map(|chunk| chunk.first_line);
    part.superseded.is_some_and(|(_, below)| last == Some(below))
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn an_attempt_that_replaces_all_output_each_time_pauses_longer_and_any_other_never_pauses() {
        let mut pace = Pace::default();
        let mut rounds = Vec::new();
        for round in 0..60 {
            if pace.turn() {
                rounds.push(round);
                pace.stored(round < 40);
            }
        }
        assert_eq!(rounds[..7], [0, 2, 5, 10, 19, 28, 37]);
        assert_eq!(rounds[7..10], [46, 47, 48]);
    }
}
