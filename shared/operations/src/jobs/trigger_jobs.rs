//! Triggers several jobs, each by itself: one that is refused keeps no other from running.

use std::time::Duration;

use sexton_model::job::RESERVED_PREFIXES;
use sexton_model::key;
use sexton_store::jobs::{self, JobFilter};
use sexton_store::trigger::Triggered;
use sexton_store::{Store, StoreError};
use tokio::time::{Instant, timeout_at};

use super::trigger::{TriggerRequest, trigger};
use crate::actor::Actor;
use crate::digest::sha256_hex;
use crate::error::{Conflict, InvalidRequest, OperationError};
use crate::scope;

/// Maximum number of jobs of one request.
pub const MAX_JOBS: usize = 1_000;
/// Maximum number of jobs of one request without a key: only with one can the others follow, whatever became of these.
pub const MAX_JOBS_WITHOUT_KEY: usize = 100;
/// Time after which a request tries no other job, so that its sender reads what became of each.
pub const TIME_LIMIT: Duration = Duration::from_secs(15);
/// Time for the job that is tried when the limit comes. It may wait 5 s for a lock.
pub const LAST_JOB: Duration = Duration::from_secs(7);

/// The jobs that a filter selects, up to [`MAX_JOBS`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectedJobs {
    /// Their names, in order.
    pub names: Vec<String>,
    /// How many of them are paused: they run all the same.
    pub paused: usize,
    /// Whether there are more, so that the filter has to be narrowed.
    pub more: bool,
}

/// What became of a job of a trigger.
#[derive(Debug)]
pub struct JobTrigger {
    /// The job's name.
    pub job: String,
    /// What became of it.
    pub outcome: JobOutcome,
}

/// What can become of a job of a trigger.
#[derive(Debug)]
pub enum JobOutcome {
    /// It has this execution.
    Done(Triggered),
    /// It was refused.
    Refused(OperationError),
    /// Nobody knows whether it was triggered: the database did not answer. No other was tried behind it.
    Unknown(OperationError),
    /// The time was up, or the database did not answer for another.
    NotTried,
}

impl SelectedJobs {
    /// Returns the SHA-256 of their names, by which a request says which jobs its sender has seen.
    pub fn digest(&self) -> String {
        let mut names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        names.sort_unstable();
        // No name has a line feed in it.
        sha256_hex(names.join("\n").as_bytes())
    }

    /// Checks that these are the jobs that were seen in a preview, by their digest, and can be triggered at once.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`] for more than [`MAX_JOBS`]; [`Conflict`] for none, or others; [`OperationError::OutOfScope`]: the caller may trigger none.
    pub fn check(&self, store: &Store, seen: &str) -> Result<(), OperationError> {
        if self.more {
            let problem = format!("more than {MAX_JOBS} jobs match; narrow the filter");
            return Err(InvalidRequest::Other(problem).into());
        }
        let count = self.names.len();
        if count == 0 && store.only_jobs().is_some() {
            return Err(scope::refusal(store, "other jobs, or none"));
        }
        if count == 0 || self.digest() != seen {
            let noun = if count == 1 { "job matches" } else { "jobs match" };
            let problem =
                format!("{count} {noun} by now, and not those that you have seen; look again");
            return Err(Conflict::Other(problem).into());
        }
        Ok(())
    }
}

/// Returns the jobs that a filter selects, without those that the caller may not change, and those that Sexton makes itself.
///
/// # Errors
///
/// [`OperationError::OutOfScope`]: the filter selects only jobs of others; and those of the database.
pub async fn select(store: &Store, filter: &JobFilter) -> Result<SelectedJobs, OperationError> {
    let (mut filter, mut prefix) = (filter.clone(), None);
    if let Some(only) = store.only_jobs()
        && !only.narrow(&mut filter.labels, &mut prefix)
    {
        return Err(scope::refusal(store, "other jobs"));
    }
    let reserved = RESERVED_PREFIXES.map(str::to_owned);
    let conditions = (prefix.as_deref(), reserved.as_slice());
    let mut rows = jobs::list_selected(store, &filter, conditions, MAX_JOBS as i64 + 1).await?;
    let more = rows.len() > MAX_JOBS;
    rows.truncate(MAX_JOBS);
    let paused = rows.iter().filter(|job| job.paused).count();
    let names = rows.into_iter().map(|job| job.name).collect();
    Ok(SelectedJobs { names, paused, more })
}

/// Triggers jobs with their own params, one after the other, each in its own transaction, until the time is up or the database does not answer. The
/// first one is tried in any case. After that, and after a crash in between, repeat the request with the same key: it runs each job once.
///
/// # Errors
///
/// [`InvalidRequest`] of the field `key`: nothing was triggered. [`OperationError::Store`] of an only job: whether it was triggered is unknown.
pub async fn trigger_all(
    store: &Store,
    jobs: Vec<String>,
    (key, reason): (Option<&str>, Option<&str>),
    actor: &Actor,
    (deadline, last_job): (Instant, Duration),
) -> Result<Vec<JobTrigger>, OperationError> {
    if let Some(key) = key {
        key::check(key).map_err(|error| InvalidRequest::field("key", format!(": {error}")))?;
    }
    let is_only = jobs.len() == 1;
    let mut all = Vec::with_capacity(jobs.len());
    let mut is_over = false;
    for job in jobs {
        if is_over || (!all.is_empty() && Instant::now() >= deadline) {
            all.push(JobTrigger { job, outcome: JobOutcome::NotTried });
            continue;
        }
        let request = TriggerRequest { job: &job, key, params: None, reason };
        // A first job that begins late has its time, too.
        let end = deadline.max(Instant::now()) + last_job;
        let outcome = match timeout_at(end, trigger(store, request, actor)).await {
            Ok(Ok(done)) => JobOutcome::Done(done),
            Ok(Err(OperationError::Store(error))) if !is_of_one_job(&error) => {
                if is_only {
                    return Err(error.into());
                }
                JobOutcome::Unknown(error.into())
            }
            Ok(Err(error)) => JobOutcome::Refused(error),
            Err(_) => {
                let text = "the database has not answered in time";
                JobOutcome::Unknown(OperationError::Failed(text.to_owned()))
            }
        };
        is_over = matches!(outcome, JobOutcome::Unknown(_));
        all.push(JobTrigger { job, outcome });
    }
    Ok(all)
}

/// Returns whether the database has answered that it did nothing, and another job can do better: it is neither damaged nor locked.
fn is_of_one_job(error: &StoreError) -> bool {
    error.may_be_of_one_row() || error.is_contention()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_the_names_in_any_order() {
        let of = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            SelectedJobs { names, paused: 0, more: false }.digest()
        };
        assert_eq!(of(&["a", "b"]), of(&["b", "a"]));
        assert_ne!(of(&["a", "b"]), of(&["a", "c"]));
        assert_ne!(of(&["a", "b"]), of(&["ab"]));
    }
}
