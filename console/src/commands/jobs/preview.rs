//! `sexton jobs preview`: how clock changes affect the firings of jobs, and what their templates become.

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::{Value, json};
use sexton_model::cron::Anomaly;
use sexton_model::lint::lint_horizon;
use sexton_operations::jobs::clock_changes;
use sexton_operations::jobs::scheduled::{MAX_JOBS, ScheduledJob, ScheduledJobs, load_jobs};
use sexton_operations::jobs::trigger::read_params;

use crate::commands::cron::{anomaly_document, parse_count, parse_instant, wall};
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, instant};

mod templates;

/// The most anomalies of one answer.
const MAX_SHOWN: usize = 1_000;

/// The jobs, and the period.
#[derive(Debug, Args)]
pub struct Preview {
    /// Jobs; all active jobs by default
    names: Vec<String>,
    /// Beginning of the two years to examine (RFC 3339); now by default
    #[arg(long, value_parser = parse_instant)]
    from: Option<DateTime<Utc>>,
    /// Number of firings whose templates to fill, for each job that has any
    #[arg(long, default_value_t = 3, value_parser = parse_count)]
    count: usize,
    /// JSON object with params of a caller, for the templates
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
}

pub(super) async fn run(arguments: &Preview, session: &Session) -> Result<(), Failure> {
    let given = read_params(arguments.params.as_deref())?;
    let store = session.store().await?;
    let ScheduledJobs { jobs, complete } = load_jobs(&store, &arguments.names).await?;
    let now = session.now(&store).await?;
    let from = arguments.from.unwrap_or(now);
    let filled = templates::load(&store, &jobs, arguments.count, &given, now).await?;
    let until = lint_horizon(from);
    let mut found = clock_changes::list(&jobs, from, until);
    let more = found.len().saturating_sub(MAX_SHOWN);
    found.truncate(MAX_SHOWN);
    if session.out.is_json() {
        let rows = found.iter().map(|(job, anomaly)| {
            let mut row = anomaly_document(anomaly, job.spec.timezone);
            row["job_name"] = Value::from(job.row.name.as_str());
            row
        });
        return session.out.document(&json!({
            "from": from,
            "until": until,
            "complete": complete && more == 0,
            "anomalies": rows.collect::<Vec<_>>(),
            "templates": templates::document(&filled),
        }));
    }
    if found.is_empty() {
        session.out.print(format!(
            "No clock change until {} affects a firing of {} jobs.",
            instant(until),
            jobs.len()
        ))?;
    } else {
        session.out.table(table(&found))?;
    }
    if more > 0 {
        session.out.print(format!("… and {more} more; name the jobs to show."))?;
    }
    if !complete {
        session.out.print(format!("Only {MAX_JOBS} jobs were examined; name the jobs to show."))?;
    }
    templates::print(&filled, session)
}

fn table(found: &[(&ScheduledJob, Anomaly)]) -> Table {
    let mut table = Table::new(&["CHANGE", "JOB", "ZONE", "EFFECT", "WALL TIME", "FIRES", "AGAIN"])
        .single_line_rows();
    for (job, anomaly) in found {
        let at =
            |at: Option<DateTime<Utc>>| at.map_or_else(Cell::none, |at| Cell::new(instant(at)));
        let again =
            if anomaly.kind.as_str() == "doubled" { at(anomaly.again_at) } else { Cell::none() };
        let tone = if anomaly.kind.as_str() == "first_pass" { Tone::Faint } else { Tone::Warning };
        table.row(vec![
            Cell::new(instant(anomaly.change_at)),
            Cell::new(&job.row.name),
            Cell::new(job.spec.timezone.name()),
            Cell::toned(anomaly.kind.as_str(), tone),
            Cell::new(wall(anomaly)),
            at(anomaly.fires_at),
            again,
        ]);
    }
    table
}
