//! Liveness: whether the loops of a program make progress.
//!
//! A loop that waits for a server in an outage still beats; only a hung one does not. A restart cures a hang, never
//! an outage.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

/// All loops of a program. Cheap to clone; the clones share them.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    loops: Arc<Mutex<Loops>>,
}

#[derive(Debug, Default)]
struct Loops {
    next: u64,
    running: BTreeMap<u64, Loop>,
}

#[derive(Debug)]
struct Loop {
    name: String,
    max_silence: Duration,
    last_beat: Instant,
}

/// The heartbeat of one loop. A drop removes the loop: one that has ended is not stuck, and [`crate::lifecycle`]
/// judges whether it should have ended.
#[derive(Debug)]
pub struct Heartbeat {
    id: u64,
    liveness: Liveness,
}

/// The body of `/livez`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) alive: bool,
    loops: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    alive: bool,
    silent_ms: u64,
    max_silence_ms: u64,
}

impl Liveness {
    /// Starts without loops: alive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches a loop from now on. `max_silence` should be several times its longest round, including timeouts.
    pub fn register(&self, name: impl Into<String>, max_silence: Duration) -> Heartbeat {
        let watched = Loop { name: name.into(), max_silence, last_beat: Instant::now() };
        let mut loops = self.lock();
        let id = loops.next;
        loops.next += 1;
        loops.running.insert(id, watched);
        drop(loops);
        Heartbeat { id, liveness: self.clone() }
    }

    /// Returns whether no loop has been silent for too long.
    pub fn is_alive(&self) -> bool {
        self.report(Instant::now()).alive
    }

    pub(crate) fn report(&self, now: Instant) -> Report {
        let loops: Vec<_> = self
            .lock()
            .running
            .values()
            .map(|watched| {
                let silent = now.saturating_duration_since(watched.last_beat);
                Entry {
                    name: watched.name.clone(),
                    alive: silent <= watched.max_silence,
                    silent_ms: silent.as_millis() as u64,
                    max_silence_ms: watched.max_silence.as_millis() as u64,
                }
            })
            .collect();
        Report { alive: loops.iter().all(|each| each.alive), loops }
    }

    fn lock(&self) -> MutexGuard<'_, Loops> {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heartbeat {
    /// Records a round of the loop. Once a round is enough.
    pub fn beat(&self) {
        if let Some(watched) = self.liveness.lock().running.get_mut(&self.id) {
            watched.last_beat = Instant::now();
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.liveness.lock().running.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_falls_silent_is_named() {
        let liveness = Liveness::new();
        let planner = liveness.register("planner", Duration::from_secs(30));
        let relay = liveness.register("relay", Duration::from_secs(30));
        tokio::time::advance(Duration::from_secs(20)).await;
        relay.beat();
        assert!(liveness.report(Instant::now()).alive);

        tokio::time::advance(Duration::from_secs(11)).await;
        let report = liveness.report(Instant::now());
        assert_eq!(
            serde_json::to_value(&report).unwrap(),
            serde_json::json!({"alive": false, "loops": [
                {"name": "planner", "alive": false, "silent_ms": 31_000, "max_silence_ms": 30_000},
                {"name": "relay", "alive": true, "silent_ms": 11_000, "max_silence_ms": 30_000},
            ]})
        );
        planner.beat();
        assert!(liveness.report(Instant::now()).alive);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_has_ended_is_not_stuck() {
        let liveness = Liveness::new();
        let slot = liveness.register("slot 1", Duration::from_secs(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!liveness.report(Instant::now()).alive);
        drop(slot);
        assert!(liveness.report(Instant::now()).alive);
    }
}
