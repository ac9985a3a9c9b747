//! Quarantines jobs that cannot be planned for a minute, so that one of them does not stop the others.
//!
//! Nothing in the job changes: it stays due, and the planner tries it again when the minute is over or when any
//! job was edited. Each failed try is logged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sexton_model::id::JobId;
use sexton_store::firing::UnreadableJob;
use tokio::time::Instant;

/// How long a job stays in quarantine.
const QUARANTINE_TIME: Duration = Duration::from_mins(1);
/// The most jobs in quarantine; the planner meets further ones in each round.
const MAX_QUARANTINED_JOBS: usize = 10_000;
/// Log lines per minute; further ones are only counted.
const MAX_LINES_PER_MINUTE: usize = 5;

/// The quarantined jobs, each with the end of its quarantine.
#[derive(Debug, Default)]
pub(crate) struct Quarantine(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    expires_at: HashMap<JobId, Instant>,
    lines_since: Option<Instant>,
    lines: usize,
}

impl Quarantine {
    /// Returns the jobs in quarantine at `now`.
    pub(crate) fn jobs(&self, now: Instant) -> Vec<JobId> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.expires_at.retain(|_, expires_at| *expires_at > now);
        state.expires_at.keys().copied().collect()
    }

    /// Quarantines a job and logs it.
    pub(crate) fn add(&self, job: &UnreadableJob, now: Instant) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.expires_at.len() < MAX_QUARANTINED_JOBS {
            state.expires_at.insert(job.id, now + QUARANTINE_TIME);
        }
        if state
            .lines_since
            .is_none_or(|since| now.saturating_duration_since(since) >= QUARANTINE_TIME)
        {
            state.lines_since = Some(now);
            state.lines = 0;
        }
        state.lines += 1;
        let lines = state.lines;
        drop(state);
        if lines <= MAX_LINES_PER_MINUTE {
            tracing::error!(
                job.name = job.name,
                job.id = %job.id,
                "job {} is due but cannot be planned; its firings wait until it is applied anew or \
                 corrected: {}",
                job.name,
                job.why
            );
        } else if lines == MAX_LINES_PER_MINUTE + 1 {
            tracing::error!("more jobs are due but cannot be planned; they are not named now");
        }
    }

    /// Releases all of them, because a job may have been corrected.
    pub(crate) fn release_all(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).expires_at.clear();
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
        quarantine.add(&job, start);
        assert_eq!(quarantine.jobs(start + QUARANTINE_TIME / 2), [id]);
        assert!(quarantine.jobs(start + QUARANTINE_TIME).is_empty());
        quarantine.add(&job, start);
        quarantine.release_all();
        assert!(quarantine.jobs(start).is_empty());
    }
}
