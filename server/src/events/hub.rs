//! One poller for all streams: their number costs the database nothing.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sexton_operations::changes::{self, Changes};
use sexton_store::Store;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::topic::Topic;

/// How often the poller reads the database while a stream is open.
const POLL_INTERVAL: Duration = Duration::from_millis(400);
/// How often [`Topic::Time`] changes.
const TIME_INTERVAL: Duration = Duration::from_secs(10);
/// The most executions that are looked at at the same time; of others, streams have a sign every ten seconds.
const MAX_EXECUTIONS: usize = 1_000;

/// A reading of the database.
#[derive(Clone, Default, Debug)]
pub(super) struct Reading {
    pub changes: Arc<Changes>,
    /// Counts [`Topic::Time`].
    pub time: u64,
    /// Counts readings that differ from the one before.
    pub number: u64,
    /// Whether the database answered.
    pub is_fresh: bool,
}

/// The streams of open pages, and the readings that they get. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Hub {
    readings: watch::Sender<Reading>,
    /// How many listen to each execution.
    executions: Arc<Mutex<HashMap<Uuid, usize>>>,
    stopping: CancellationToken,
}

impl Hub {
    /// Makes one whose streams end when `stopping` is cancelled. They hear nothing unless [`Self::run`] runs.
    pub fn new(stopping: CancellationToken) -> Self {
        Self { readings: watch::Sender::default(), executions: Arc::default(), stopping }
    }

    /// Polls until `stopping` is cancelled; reads nothing while nobody listens.
    ///
    /// # Errors
    ///
    /// None: a database that does not answer is a reading, too.
    pub async fn run(self, store: Store) -> Result<(), Infallible> {
        self.stopping.clone().run_until_cancelled(self.poll(store)).await;
        Ok(())
    }

    /// Returns how often the database was seen to have changed.
    pub fn changes(&self) -> u64 {
        self.readings.borrow().number
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

    async fn poll(&self, store: Store) {
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
                    let differs = has_time_passed || *reading.changes != changes;
                    reading.number += u64::from(differs);
                    reading.changes = Arc::new(changes);
                }
            });
        }
    }
}

/// Waits for changes of its topics.
#[derive(Debug)]
pub struct Listener {
    topics: Vec<Topic>,
    readings: watch::Receiver<Reading>,
    /// The reading that the listener knows.
    last: Option<Reading>,
    executions: Arc<Mutex<HashMap<Uuid, usize>>>,
    stopping: CancellationToken,
}

/// What a stream says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// One of its topics has changed, or may have: it begins with this, and the database answers again with this.
    Changed,
    /// The database does not answer.
    Lost,
}

impl Listener {
    /// Waits for the next sign; `None`: the server ends.
    pub async fn next(&mut self) -> Option<Sign> {
        loop {
            self.stopping.run_until_cancelled(self.readings.changed()).await?.ok()?;
            let reading = self.readings.borrow_and_update().clone();
            let last = self.last.replace(reading.clone());
            let was_fresh = last.as_ref().is_none_or(|last| last.is_fresh);
            if !reading.is_fresh {
                if was_fresh {
                    return Some(Sign::Lost);
                }
            } else if !was_fresh || self.has_changed(last.as_ref(), &reading) {
                return Some(Sign::Changed);
            }
        }
    }

    fn has_changed(&self, last: Option<&Reading>, reading: &Reading) -> bool {
        let Some(last) = last else { return true };
        let has_time_passed = reading.time != last.time;
        self.topics.iter().any(|topic| match topic {
            Topic::Time => has_time_passed,
            // One beyond the limit is looked at every ten seconds.
            Topic::Execution(id) if !reading.changes.of_execution.contains_key(id) => {
                has_time_passed
            }
            topic => topic.has_changed(&last.changes, &reading.changes),
        })
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
