//! What the templates of jobs become, for `sexton jobs preview`.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use sexton_operations::jobs::filled::{FilledFiring, has_templates, preview};
use sexton_operations::jobs::scheduled::ScheduledJob;
use sexton_store::Store;

use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, instant};

/// The most jobs whose templates one answer shows.
const MAX_TEMPLATED: usize = 20;

/// The executions of some jobs with templates.
pub(super) struct Templates<'j> {
    jobs: Vec<(&'j ScheduledJob, Vec<FilledFiring>)>,
    /// Number of jobs with templates that are left out.
    more: usize,
}

pub(super) async fn load<'j>(
    store: &Store,
    jobs: &'j [ScheduledJob],
    count: usize,
    given: &Map<String, Value>,
    now: DateTime<Utc>,
) -> Result<Templates<'j>, Failure> {
    let templated: Vec<_> = jobs.iter().filter(|job| has_templates(&job.spec)).collect();
    let more = templated.len().saturating_sub(MAX_TEMPLATED);
    let mut shown = Vec::new();
    for job in templated.into_iter().take(MAX_TEMPLATED) {
        shown.push((job, preview(store, job, count, given, now).await?));
    }
    Ok(Templates { jobs: shown, more })
}

pub(super) fn document(templates: &Templates<'_>) -> Value {
    let rows = templates.jobs.iter().flat_map(|(job, firings)| {
        firings.iter().map(|firing| {
            json!({
                "job_name": job.row.name,
                "scheduled_for": firing.scheduled_for,
                "execution_key": firing.execution_key,
                "idempotency_key": firing.filled.idempotency_key,
                "params": firing.filled.params,
                "problem": firing.filled.problem,
            })
        })
    });
    rows.collect()
}

pub(super) fn print(templates: &Templates<'_>, session: &Session) -> Result<(), Failure> {
    for (job, firings) in &templates.jobs {
        session.out.print(format!("\nThe templates of {} become:", job.row.name))?;
        let mut table = Table::new(&["AT", "IDEMPOTENCY KEY", "PARAMS"]).single_line_rows();
        for firing in firings {
            let params = match &firing.filled.problem {
                Some(problem) => Cell::toned(problem, Tone::Warning),
                None => Cell::new(firing.filled.params.to_string()),
            };
            let key = Cell::new(&firing.filled.idempotency_key);
            table.row(vec![Cell::new(instant(firing.scheduled_for)), key, params]);
        }
        session.out.table(table)?;
    }
    if templates.more > 0 {
        let text = format!("… and the templates of {} more jobs; name them.", templates.more);
        session.out.print(text)?;
    }
    Ok(())
}
