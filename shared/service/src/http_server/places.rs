//! Which connection gives way when all places are taken.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use tokio::task::{AbortHandle, Id};

/// What a connection did last. Shared by its stream, its requests and [`Places`].
#[derive(Debug)]
pub(super) struct Activity {
    since: Instant,
    /// When its client last sent or took something, in milliseconds after `since`.
    moved_ms: AtomicU64,
    /// Requests that have come whole and are not answered yet.
    at_work: AtomicUsize,
}

impl Activity {
    /// Its client has just connected; `since` is the same of all connections of an acceptor.
    pub(super) fn new(since: Instant) -> Self {
        let activity = Self { since, moved_ms: AtomicU64::new(0), at_work: AtomicUsize::new(0) };
        activity.moved();
        activity
    }

    /// Its client has sent or taken something.
    pub(super) fn moved(&self) {
        let ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved_ms.store(ms, Ordering::Relaxed);
    }

    /// A request has come whole: until the drop, the client waits for the server.
    pub(super) fn at_work(self: &Arc<Self>) -> AtWork {
        self.at_work.fetch_add(1, Ordering::Relaxed);
        AtWork(Arc::clone(self))
    }
}

/// A request that is answered.
#[derive(Debug)]
pub(super) struct AtWork(Arc<Activity>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.moved();
        self.0.at_work.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Place {
    activity: Arc<Activity>,
    task: AbortHandle,
}

/// The connections that there are.
#[derive(Debug, Default)]
pub(super) struct Places(HashMap<Id, Place>);

impl Places {
    pub(super) fn take(&mut self, activity: Arc<Activity>, task: AbortHandle) {
        self.0.insert(task.id(), Place { activity, task });
    }

    pub(super) fn leave(&mut self, id: Id) {
        self.0.remove(&id);
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns whether a connection could give way.
    pub(super) fn is_any_silent(&self) -> bool {
        self.0.values().any(|place| place.activity.at_work.load(Ordering::Relaxed) == 0)
    }

    /// Ends the connection whose client has been silent for longest, unless every client waits for the server.
    pub(super) fn end_longest_silent(&mut self) {
        let silent = self
            .0
            .iter()
            .filter(|(_, place)| place.activity.at_work.load(Ordering::Relaxed) == 0)
            .min_by_key(|(_, place)| place.activity.moved_ms.load(Ordering::Relaxed))
            .map(|(id, _)| *id);
        if let Some(place) = silent.and_then(|id| self.0.remove(&id)) {
            place.task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that last moved then.
    fn activity(moved_ms: u64) -> Arc<Activity> {
        let activity = Activity::new(Instant::now());
        activity.moved_ms.store(moved_ms, Ordering::Relaxed);
        Arc::new(activity)
    }

    #[tokio::test]
    async fn the_longest_silent_gives_way_and_no_client_that_waits_for_an_answer() {
        let mut places = Places::default();
        let mut tasks = Vec::new();
        let activities = [activity(10), activity(30), activity(20)];
        for one in &activities {
            let task = tokio::spawn(std::future::pending::<()>());
            places.take(Arc::clone(one), task.abort_handle());
            tasks.push(task);
        }
        let first = activities[0].at_work();
        assert!(places.is_any_silent());
        places.end_longest_silent();
        assert!((&mut tasks[2]).await.unwrap_err().is_cancelled());
        places.end_longest_silent();
        assert!((&mut tasks[1]).await.unwrap_err().is_cancelled());
        assert!(!places.is_any_silent());
        places.end_longest_silent();
        assert_eq!(places.count(), 1);
        drop(first);
        places.end_longest_silent();
        assert!((&mut tasks[0]).await.unwrap_err().is_cancelled());
        assert_eq!(places.count(), 0);
    }
}
