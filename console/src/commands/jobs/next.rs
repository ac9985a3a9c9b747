//! `sexton jobs next`: the next firings of jobs, soonest first.

use chrono::{DateTime, Utc};
use clap::Args;
use sexton_model::zone::Zone;
use sexton_operations::jobs::next_firings::{
    NextFirings, UpcomingFiring, load_candidates, soonest,
};
use sexton_operations::jobs::scheduled::{MAX_JOBS, ScheduledJobs};

use crate::commands::cron::{parse_count, parse_instant, parse_zone};
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, instant, roughly};

/// The jobs, and how many firings.
#[derive(Debug, Args)]
pub struct Next {
    /// Jobs; all active jobs by default
    names: Vec<String>,
    /// Number of firings in all, 1 to 1,000
    #[arg(long, default_value_t = 10, value_parser = parse_count)]
    count: usize,
    /// Only firings after this instant (RFC 3339); by default those that are not planned yet
    #[arg(long, value_parser = parse_instant)]
    from: Option<DateTime<Utc>>,
    /// Time zone of the shown times; by default each job's own
    #[arg(long, visible_alias = "zone", value_parser = parse_zone)]
    tz: Option<Zone>,
}

pub(super) async fn run(arguments: &Next, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let Next { names, from, count, .. } = arguments;
    let ScheduledJobs { jobs, complete } = load_candidates(&store, names, *from, *count).await?;
    let now = session.now(&store).await?;
    let firings = soonest(&jobs, *from, *count, now);
    if session.out.is_json() {
        let document = NextFirings::new(&firings, *from, arguments.tz, complete);
        return session.out.document(&document);
    }
    if firings.is_empty() {
        return session.out.print("Nothing fires by itself.");
    }
    let mut table = Table::new(&["AT", "CLOCKS", "IN", "JOB", ""]).single_line_rows();
    for UpcomingFiring { job, at } in firings {
        let zone = arguments.tz.unwrap_or(job.spec.timezone);
        let paused = match job.row.status.as_str() {
            "paused" => Cell::toned("if resumed", Tone::Warning),
            _ => Cell::new(""),
        };
        table.row(vec![
            Cell::new(instant(at)),
            Cell::new(zone.at(at).format("%a %F %T %:z").to_string()),
            Cell::new(roughly(at, now)),
            Cell::new(&job.row.name),
            paused,
        ]);
    }
    session.out.table(table)?;
    if !complete {
        session
            .out
            .print(format!("Only {MAX_JOBS} jobs were looked at; name those that you mean."))?;
    }
    Ok(())
}
