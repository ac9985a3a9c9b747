//! What the placeholders of jobs become.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sexton_model::job::{JobSpec, Schedule};
use sexton_model::plan::Timetable;
use sexton_model::template::has_placeholder;
use sexton_store::Store;
use sexton_store::jobs::templates::{Filled, Unfilled, fill};

use super::next_firings::soonest;
use super::scheduled::ScheduledJob;
use crate::error::OperationError;

/// The execution key of an example, for a job that has no firings.
const EXAMPLE_KEY: &str = "example";

/// An execution that a job will have, or could have.
#[derive(Debug)]
pub struct FilledFiring {
    /// Its nominal time.
    pub scheduled_for: DateTime<Utc>,
    /// Its key.
    pub execution_key: String,
    /// Its params and its idempotency key.
    pub filled: Filled,
}

/// Returns whether a job has placeholders.
pub fn has_templates(job: &JobSpec) -> bool {
    has_placeholder(&job.params)
        || job.idempotency_template.as_deref().is_some_and(|template| template.contains("{{"))
}

/// Fills the placeholders of the next `count` planned firings of a job, of a paused one of those after `now`; for a job without a schedule
/// those of an example that is enqueued `now` with the params `given`.
///
/// # Errors
///
/// Those of the database.
pub async fn preview(
    store: &Store,
    job: &ScheduledJob,
    count: usize,
    given: &Map<String, Value>,
    now: DateTime<Utc>,
) -> Result<Vec<FilledFiring>, OperationError> {
    let executions: Vec<Unfilled> = if job.spec.schedule == Schedule::None {
        vec![unfilled(EXAMPLE_KEY.to_owned(), now, given)]
    } else {
        let timetable = Timetable::of(&job.spec).ok();
        let key = |at| timetable.as_ref().and_then(|timetable| timetable.key_of(at));
        let firings = soonest(std::slice::from_ref(job), None, count, now);
        firings
            .iter()
            .filter_map(|firing| Some(unfilled(key(firing.at)?, firing.at, given)))
            .collect()
    };
    let filled = fill(store, &job.row.name, &executions).await?;
    Ok(executions
        .into_iter()
        .zip(filled)
        .map(|(Unfilled { execution_key, scheduled_for, .. }, filled)| FilledFiring {
            scheduled_for,
            execution_key,
            filled,
        })
        .collect())
}

fn unfilled(
    execution_key: String,
    scheduled_for: DateTime<Utc>,
    given: &Map<String, Value>,
) -> Unfilled {
    Unfilled { execution_key, scheduled_for, given: given.clone() }
}
