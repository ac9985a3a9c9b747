//! `sexton jobs next`: the next firings of some jobs or of all, in the order in which they come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::json;
use sexton_model::plan::Timetable;
use sexton_model::zone::Zone;
use sexton_store::jobs;

use super::upcoming::{MAX_JOBS, ScheduledJob, ScheduledJobs, load_jobs, load_jobs_by_name};
use crate::commands::cron::{parse_count, parse_instant, parse_zone};
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, instant, roughly};

/// When jobs fire next.
#[derive(Debug, Args)]
pub struct Next {
    /// Jobs; without one all active ones
    names: Vec<String>,
    /// How many firings in all, from 1 to 1,000
    #[arg(long, default_value_t = 10, value_parser = parse_count)]
    count: usize,
    /// Firings strictly after this instant (RFC 3339); default: what is not planned yet
    #[arg(long, value_parser = parse_instant)]
    from: Option<DateTime<Utc>>,
    /// Show the clocks of this zone; default: of each job's own
    #[arg(long, visible_alias = "zone", value_parser = parse_zone)]
    tz: Option<Zone>,
}

/// One firing to come.
struct UpcomingFiring<'j> {
    job: &'j ScheduledJob,
    at: DateTime<Utc>,
}

pub(super) async fn run(arguments: &Next, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let ScheduledJobs { jobs, complete } = if arguments.names.is_empty() && arguments.from.is_none()
    {
        // Each firing that is among the soonest is of a job that is.
        let names = jobs::list_upcoming(&store, arguments.count as i64).await?;
        let jobs =
            if names.is_empty() { Vec::new() } else { load_jobs_by_name(&store, &names).await? };
        ScheduledJobs { jobs, complete: true }
    } else {
        load_jobs(&store, &arguments.names).await?
    };
    let now = session.now(&store).await?;
    let firings = soonest(&jobs, arguments, now);
    if session.out.is_json() {
        let rows = firings.iter().map(|UpcomingFiring { job, at }| {
            let zone = arguments.tz.unwrap_or(job.spec.timezone);
            json!({
                "job_name": job.row.name,
                "at": at,
                "tz": zone.name(),
                "wall": zone.at(*at).to_rfc3339(),
                "status": job.row.status,
            })
        });
        return session.out.document(&json!({
            "from": arguments.from,
            "complete": complete,
            "next": rows.collect::<Vec<_>>(),
        }));
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

/// The firings that come first, over all of these jobs: each job waits with its next one.
fn soonest<'j>(
    jobs: &'j [ScheduledJob],
    arguments: &Next,
    now: DateTime<Utc>,
) -> Vec<UpcomingFiring<'j>> {
    let tables: Vec<Option<Timetable>> =
        jobs.iter().map(|job| Timetable::of(&job.spec).ok()).collect();
    let after =
        |index: usize, from| tables[index].as_ref().and_then(|table| table.next_after(from));
    let first = |index: usize| match (arguments.from, jobs[index].row.status.as_str()) {
        (Some(from), _) => after(index, from),
        // What passed while it was paused does not fire when it is resumed.
        (None, "paused") => after(index, now),
        (None, _) => jobs[index].row.cursor().ok().flatten().map(|cursor| cursor.nominal),
    };
    let mut left: Vec<Option<u32>> = jobs
        .iter()
        .map(|job| job.spec.constraints.runs_left(job.row.runs_used.max(0) as u32))
        .collect();
    let mut heap: BinaryHeap<Reverse<(DateTime<Utc>, usize)>> =
        (0..jobs.len()).filter_map(|index| Some(Reverse((first(index)?, index)))).collect();
    let mut firings = Vec::new();
    while firings.len() < arguments.count
        && let Some(Reverse((at, index))) = heap.pop()
    {
        if let Some(left) = &mut left[index] {
            let Some(fewer) = left.checked_sub(1) else { continue };
            *left = fewer;
        }
        firings.push(UpcomingFiring { job: &jobs[index], at });
        heap.extend(after(index, at).map(|next| Reverse((next, index))));
    }
    firings
}
