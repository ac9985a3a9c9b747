//! `sexton jobs preview`: how clock changes affect the firings of jobs, and what their templates become.

use chrono::{DateTime, Utc};
use clap::Args;
use sexton_operations::jobs::preview::{
    DEFAULT_TEMPLATE_FIRINGS, JobAnomaly, JobsPreview, PreviewRequest, PreviewedJobs, preview,
};
use sexton_operations::jobs::scheduled::MAX_JOBS;
use sexton_operations::jobs::trigger::read_params;

use crate::commands::cron::{parse_count, parse_instant, wall};
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, instant};

/// The jobs, and the period.
#[derive(Debug, Args)]
pub struct Preview {
    /// Jobs; all active jobs by default
    names: Vec<String>,
    /// Beginning of the two years to examine (RFC 3339); now by default
    #[arg(long, value_parser = parse_instant)]
    from: Option<DateTime<Utc>>,
    /// Number of firings whose templates to fill, for each job that has any
    #[arg(long, default_value_t = DEFAULT_TEMPLATE_FIRINGS, value_parser = parse_count)]
    count: usize,
    /// JSON object with params of a caller, for the templates
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
}

pub(super) async fn run(arguments: &Preview, session: &Session) -> Result<(), Failure> {
    let given = read_params(arguments.params.as_deref())?;
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let &Preview { from, count, .. } = arguments;
    let names = arguments.names.clone();
    let request = PreviewRequest { names, from, count, given, time_limit: None };
    let previewed = preview(&store, &request, now).await?;
    if session.out.is_json() {
        return session.out.document(&PreviewedJobs::from(&previewed));
    }
    let JobsPreview { until, job_count, complete, anomalies, more_anomalies: more, .. } =
        &previewed;
    if anomalies.is_empty() {
        session.out.print(format!(
            "No clock change until {} affects a firing of {job_count} jobs.",
            instant(*until),
        ))?;
    } else {
        session.out.table(table(anomalies))?;
    }
    if *more > 0 {
        session.out.print(format!("… and {more} more; name the jobs to show."))?;
    }
    if !complete {
        session.out.print(format!("Only {MAX_JOBS} jobs were examined; name the jobs to show."))?;
    }
    print_templates(&previewed, session)
}

fn table(found: &[JobAnomaly]) -> Table {
    let mut table = Table::new(&["CHANGE", "JOB", "ZONE", "EFFECT", "WALL TIME", "FIRES", "AGAIN"])
        .single_line_rows();
    for JobAnomaly { job, zone, anomaly } in found {
        let at =
            |at: Option<DateTime<Utc>>| at.map_or_else(Cell::none, |at| Cell::new(instant(at)));
        let again =
            if anomaly.kind.as_str() == "doubled" { at(anomaly.again_at) } else { Cell::none() };
        let tone = if anomaly.kind.as_str() == "first_pass" { Tone::Faint } else { Tone::Warning };
        table.row(vec![
            Cell::new(instant(anomaly.change_at)),
            Cell::new(job),
            Cell::new(zone.name()),
            Cell::toned(anomaly.kind.as_str(), tone),
            Cell::new(wall(anomaly)),
            at(anomaly.fires_at),
            again,
        ]);
    }
    table
}

fn print_templates(previewed: &JobsPreview, session: &Session) -> Result<(), Failure> {
    for templates in &previewed.templates {
        session.out.print(format!("\nThe templates of {} become:", templates.job))?;
        let mut table = Table::new(&["AT", "IDEMPOTENCY KEY", "PARAMS"]).single_line_rows();
        for firing in &templates.firings {
            let params = match &firing.filled.problem {
                Some(problem) => Cell::toned(problem, Tone::Warning),
                None => Cell::new(firing.filled.params.to_string()),
            };
            let key = Cell::new(&firing.filled.idempotency_key);
            table.row(vec![Cell::new(instant(firing.scheduled_for)), key, params]);
        }
        session.out.table(table)?;
    }
    if previewed.more_templates > 0 {
        let more = previewed.more_templates;
        let text = format!("… and the templates of {more} more jobs; name them.");
        session.out.print(text)?;
    }
    Ok(())
}
