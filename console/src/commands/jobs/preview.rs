//! `sexton jobs preview`: how clock changes affect the firings of jobs.

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::{Value, json};
use sexton_model::cron::Anomaly;
use sexton_model::lint::lint_horizon;
use sexton_operations::jobs::clock_changes;
use sexton_operations::jobs::scheduled::{MAX_JOBS, ScheduledJob, ScheduledJobs, load_jobs};

use crate::commands::cron::{anomaly_document, parse_instant, wall};
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, instant};

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
}

pub(super) async fn run(arguments: &Preview, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let ScheduledJobs { jobs, complete } = load_jobs(&store, &arguments.names).await?;
    let from = match arguments.from {
        Some(from) => from,
        None => session.now(&store).await?,
    };
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
    Ok(())
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
