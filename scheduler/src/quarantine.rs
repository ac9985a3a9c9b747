//! Jobs that cannot be planned, set aside for a minute, so that one of them does not stop the
//! others.
//!
//! Nothing of the job is changed: it stays due, and is looked at again when the minute is over or
//! when some job was edited. Each look that fails says why.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sexton_model::id::JobId;
use sexton_store::firing::UnreadableJob;
use tokio::time::Instant;

/// How long a job is set aside.
const TIME: Duration = Duration::from_mins(1);
/// Jobs set aside at most; others are met again in each round.
const MOST: usize = 10_000;
/// Lines a minute; the rest is counted.
const LINES: usize = 5;

/// The jobs set aside, each until when.
#[derive(Debug, Default)]
pub(crate) struct Quarantine(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    until: HashMap<JobId, Instant>,
    lines_since: Option<Instant>,
    lines: usize,
}

impl Quarantine {
    /// Those that are set aside at `now`.
    pub(crate) fn jobs(&self, now: Instant) -> Vec<JobId> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.until.retain(|_, until| *until > now);
        state.until.keys().copied().collect()
    }

    /// Sets a job aside and says so.
    pub(crate) fn set_aside(&self, job: &UnreadableJob, now: Instant) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.until.len() < MOST {
            state.until.insert(job.id, now + TIME);
        }
        if state.lines_since.is_none_or(|since| now.saturating_duration_since(since) >= TIME) {
            state.lines_since = Some(now);
            state.lines = 0;
        }
        state.lines += 1;
        let lines = state.lines;
        drop(state);
        if lines <= LINES {
            tracing::error!(
                job.name = job.name,
                job.id = %job.id,
                "job {} is due but cannot be planned; its firings wait until it is applied anew or \
                 corrected: {}",
                job.name,
                job.why
            );
        } else if lines == LINES + 1 {
            tracing::error!("more jobs are due but cannot be planned; they are not named now");
        }
    }

    /// Lets all of them go, because somebody may have corrected one.
    pub(crate) fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).until.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_set_aside_for_a_minute_or_until_one_is_edited() {
        let start = Instant::now();
        let quarantine = Quarantine::default();
        let id = JobId::new(uuid::Uuid::from_u128(1));
        let job = UnreadableJob { id, name: "a.b".into(), why: "no pool".into() };
        quarantine.set_aside(&job, start);
        assert_eq!(quarantine.jobs(start + TIME / 2), [id]);
        assert!(quarantine.jobs(start + TIME).is_empty());
        quarantine.set_aside(&job, start);
        quarantine.release();
        assert!(quarantine.jobs(start).is_empty());
    }
}
