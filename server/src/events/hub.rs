//! One poller for everybody who listens: how many do costs the database nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sexton_operations::changes::{self, Changes};
use sexton_store::Store;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::topic::Topic;

/// How often the database is asked while somebody listens.
const POLL_INTERVAL: Duration = Duration::from_millis(400);
/// How often [`Topic::Time`] changes.
const TIME_INTERVAL: Duration = Duration::from_secs(10);
/// The most executions that are looked at at the same time; of others, streams hear every ten seconds.
const MAX_EXECUTIONS: usize = 1_000;

/// A reading of the database.
#[derive(Clone, Default, Debug)]
pub(super) struct Reading {
    pub changes: Arc<Changes>,
    /// Counts [`Topic::Time`].
    pub time: u64,
    /// Whether the database answered.
    pub is_fresh: bool,
}

/// Who listens. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Hub {
    readings: watch::Sender<Reading>,
    /// How many listen to each execution.
    executions: Arc<Mutex<HashMap<Uuid, usize>>>,
    stopping: CancellationToken,
}

impl Hub {
    /// Starts the poller, which ends, with all streams, when `stopping` is cancelled. It asks nothing while nobody listens.
    pub fn start(store: Store, stopping: CancellationToken) -> Self {
        let hub = Self { readings: watch::Sender::default(), executions: Arc::default(), stopping };
        let polling = hub.clone();
        tokio::spawn(async move {
            polling.stopping.clone().run_until_cancelled(polling.poll(store)).await;
        });
        hub
    }

    /// Begins to listen.
    pub fn listen(&self, topics: Vec<Topic>) -> Listener {
        let mut executions = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        for topic in &topics {
            if let Topic::Execution(id) = topic {
                *executions.entry(*id).or_default() += 1;
            }
        }
        drop(executions);
        let readings = self.readings.subscribe();
        Listener {
            topics,
            readings,
            last: None,
            executions: Arc::clone(&self.executions),
            stopping: self.stopping.clone(),
        }
    }

    async fn poll(self, store: Store) {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut time_began = Instant::now();
        loop {
            ticks.tick().await;
            if self.readings.receiver_count() == 0 {
                continue;
            }
            let ids: Vec<Uuid> = {
                let executions = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
                executions.keys().copied().take(MAX_EXECUTIONS).collect()
            };
            let read = changes::read(&store, &ids).await;
            let has_time_passed = time_began.elapsed() >= TIME_INTERVAL;
            if has_time_passed {
                time_began = Instant::now();
            }
            self.readings.send_modify(|reading| {
                reading.time += u64::from(has_time_passed);
                reading.is_fresh = read.is_ok();
                if let Ok(changes) = read {
                    reading.changes = Arc::new(changes);
                }
            });
        }
    }
}

/// Hears of changes.
#[derive(Debug)]
pub struct Listener {
    topics: Vec<Topic>,
    readings: watch::Receiver<Reading>,
    /// The reading that the listener knows.
    last: Option<Reading>,
    executions: Arc<Mutex<HashMap<Uuid, usize>>>,
    stopping: CancellationToken,
}

/// What a listener hears.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// It listens from now on; what changed before it does not know.
    Began,
    /// One of its topics has changed.
    Changed,
    /// The database does not answer.
    Lost,
    /// It answers again.
    Found,
}

impl Listener {
    /// Waits for the next thing to hear; `None`: the server ends.
    pub async fn hear(&mut self) -> Option<Heard> {
        loop {
            self.stopping.run_until_cancelled(self.readings.changed()).await?.ok()?;
            let reading = self.readings.borrow_and_update().clone();
            let Some(last) = self.last.replace(reading.clone()) else {
                if !reading.is_fresh {
                    return Some(Heard::Lost);
                }
                return Some(Heard::Began);
            };
            match (last.is_fresh, reading.is_fresh) {
                (true, false) => return Some(Heard::Lost),
                (false, true) => return Some(Heard::Found),
                (false, false) => continue,
                (true, true) => {}
            }
            let passed = reading.time != last.time;
            let changed = |topic: &Topic| match topic {
                Topic::Time => passed,
                // One beyond the limit is looked at every ten seconds.
                Topic::Execution(id) if !reading.changes.of_execution.contains_key(id) => passed,
                topic => topic.has_changed(&last.changes, &reading.changes),
            };
            if self.topics.iter().any(changed) {
                return Some(Heard::Changed);
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut executions = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        for topic in &self.topics {
            if let Topic::Execution(id) = topic
                && let Some(count) = executions.get_mut(id)
            {
                *count -= 1;
                if *count == 0 {
                    executions.remove(id);
                }
            }
        }
    }
}
