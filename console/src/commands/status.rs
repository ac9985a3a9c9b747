//! `sexton status`: the platform's state.
//!
//! The exit status is 0 whatever the state; problems are part of the answer, as `warnings`. With `--check`, warnings
//! have an exit status of their own, for monitoring.
//!
//! The rows make up the answer, and the broker adds how full its queues are. If the broker does not answer, the
//! answer says so.

use chrono::{DateTime, Utc};
use clap::Args;
use sexton_operations::status::{self, Queues, RecordedStatus, Status as PlatformStatus, Warning};
use sexton_operations::workers::MAX_HEARTBEAT_AGE_MS;
use sexton_store::incidents::OpenIncidents;
use sexton_store::instances::Instance;
use sexton_store::status::{Overview, PoolCounts};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Facts, Table, Tone, ago, duration, instant};

/// Tickets are published within a second or so; the relay takes over after five.
const MAX_UNPUBLISHED_MS: i64 = 15_000;
/// Clocks of hosts that keep time differ by less.
const MAX_CLOCK_OFFSET_MS: i64 = 1_000;

/// Options of `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// End with status 10 if there are warnings
    #[arg(long)]
    check: bool,
}

/// Shows processes, pools with their queues, failed executions and unpublished tickets.
///
/// # Errors
///
/// [`Failure`]; a broker that does not answer is none.
pub async fn run(arguments: &Status, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let status = status::read(&store, &session.settings()?).await?;
    if session.out.is_json() {
        session.out.document(&status.report())?;
        return arguments.judge(&status.recorded.warnings);
    }
    let PlatformStatus { recorded, queues } = &status;
    let RecordedStatus { overview, host_now, instances, incidents, warnings, .. } = recorded;
    let mut facts = facts(overview, *host_now, queues);
    facts.cell("incidents", incident_counts(incidents));
    for warning in warnings {
        facts.cell("warning", Cell::toned(warning.to_string(), Tone::Warning));
    }
    session.out.facts(facts)?;
    render_incidents(incidents, overview.now, session)?;
    session.out.print("")?;
    session.out.table(pools_table(&status))?;
    session.out.print("")?;
    if instances.is_empty() {
        session.out.print("No scheduler and no worker has sent a heartbeat for a day.")?;
    } else {
        session.out.table(instances_table(instances, overview.now))?;
    }
    arguments.judge(warnings)
}

impl Status {
    fn judge(&self, warnings: &[Warning]) -> Result<(), Failure> {
        let message = match warnings.len() {
            1 => "1 warning".to_owned(),
            count => format!("{count} warnings"),
        };
        if self.check && !warnings.is_empty() {
            return Err(Failure::Reported { exit: Exit::Warnings, message });
        }
        Ok(())
    }
}

fn facts(overview: &Overview, host_now: DateTime<Utc>, queues: &Result<Queues, String>) -> Facts {
    let now = overview.now;
    let mut facts = Facts::default();
    let version = overview.schema_version.map_or_else(String::new, |v| format!(", schema {v}"));
    facts.add("database", format!("answers; its clock says {}{version}", instant(now)));
    let off = (host_now - now).num_milliseconds();
    if off.abs() > MAX_CLOCK_OFFSET_MS {
        let side = if off > 0 { "ahead of" } else { "behind" };
        let text =
            format!("this host is {} {side} the database, which decides", duration(off.abs()));
        facts.cell("clock", Cell::toned(text, Tone::Warning));
    }
    match queues {
        Ok(queues) => match queues.missing() {
            Some(missing) => {
                facts.cell("broker", Cell::toned(format!("answers, but {missing}"), Tone::Warning));
            }
            None => facts.add("broker", format!("answers; namespace {}", queues.namespace)),
        },
        Err(why) => facts.cell("broker", Cell::toned(format!("unavailable: {why}"), Tone::Warning)),
    }
    let next = overview.next_fire_at.map_or_else(
        || "nothing is scheduled".to_owned(),
        |at| format!("the next fires {}", ago(at, now)),
    );
    let (active, paused) = (overview.jobs_active, overview.jobs_paused);
    facts.add("jobs", format!("{active} active, {paused} paused; {next}"));
    facts.cell("failed", failed(overview, queues));
    facts.cell("tickets", tickets(overview));
    facts
}

fn failed(overview: &Overview, queues: &Result<Queues, String>) -> Cell {
    let ready = queues.as_ref().ok().and_then(|queues| queues.failed_ready);
    let queue = ready.map_or_else(String::new, |ready| format!("; {ready} in the failed queue"));
    match overview.oldest_failed_at {
        Some(oldest) => {
            let when = ago(oldest, overview.now);
            let text = format!("{} failed executions, the oldest {when}{queue}", overview.failed);
            Cell::toned(text, Tone::Bad)
        }
        None => Cell::toned(format!("none{queue}"), Tone::Good),
    }
}

fn tickets(overview: &Overview) -> Cell {
    match overview.oldest_unpublished_ms {
        Some(ms) => {
            let tone = if ms > MAX_UNPUBLISHED_MS { Tone::Warning } else { Tone::Plain };
            let text =
                format!("{} not published, the oldest for {}", overview.unpublished, duration(ms));
            Cell::toned(text, tone)
        }
        None => Cell::toned("all published", Tone::Good),
    }
}

fn incident_counts(incidents: &OpenIncidents) -> Cell {
    let OpenIncidents { high, medium, low, .. } = *incidents;
    let counts = [("high", high), ("medium", medium), ("low", low)];
    let named: Vec<String> = (counts.iter().filter(|(_, count)| *count > 0))
        .map(|(severity, count)| format!("{count} {severity}"))
        .collect();
    match (high, named.is_empty()) {
        (_, true) => Cell::toned("none open", Tone::Good),
        (0, false) => Cell::toned(format!("{} open", named.join(", ")), Tone::Warning),
        (_, false) => Cell::toned(format!("{} open", named.join(", ")), Tone::Bad),
    }
}

fn render_incidents(
    incidents: &OpenIncidents,
    now: DateTime<Utc>,
    session: &Session,
) -> Result<(), Failure> {
    if incidents.worst.is_empty() {
        return Ok(());
    }
    let mut table =
        Table::new(&["INCIDENT", "CAUSE", "SEVERITY", "STATE", "SINCE"]).single_line_rows();
    for one in &incidents.worst {
        table.row(vec![
            Cell::new(format!("{} {}", one.subject_kind, one.name)),
            Cell::new(one.cause.replace('_', " ")),
            Cell::new(&one.severity),
            Cell::new(&one.state),
            Cell::new(ago(one.opened_at, now)),
        ]);
    }
    session.out.print("")?;
    session.out.table(table)?;
    match incidents.count() - incidents.worst.len() as i64 {
        0 => Ok(()),
        more => session.out.print(format!("… and {more} more: sexton incidents list")),
    }
}

fn pools_table(status: &PlatformStatus) -> Table {
    let mut table = Table::new(&[
        "POOL",
        "PENDING",
        "WAITING",
        "RUNNING",
        "RETRYING",
        "OLDEST DUE",
        "SLOTS",
        "QUEUE",
        "DELAYED",
        "CONSUMERS",
    ]);
    for pool in &status.recorded.pools {
        let pool_queues = status.queues_of(pool);
        let count = |number: Option<u64>| {
            number.map_or_else(Cell::none, |number| Cell::number(number as i64))
        };
        table.row(vec![
            Cell::new(&pool.pool),
            Cell::number(pool.pending),
            Cell::number(pool.waiting),
            Cell::number(pool.running),
            Cell::number(pool.retrying),
            pool.oldest_due_ms.map_or_else(Cell::none, |ms| Cell::new(duration(ms))),
            slots(pool),
            count(pool_queues.and_then(|pool_queues| pool_queues.ready)),
            count(pool_queues.and_then(|pool_queues| pool_queues.retry_ready)),
            count(pool_queues.and_then(|pool_queues| pool_queues.consumers)),
        ]);
    }
    table
}

fn slots(pool: &PoolCounts) -> Cell {
    match Warning::of(pool) {
        Some(_) => Cell::toned("none", Tone::Warning),
        None => Cell::number(pool.slots),
    }
}

fn instances_table(instances: &[Instance], now: DateTime<Utc>) -> Table {
    let headings =
        ["INSTANCE", "KIND", "PID", "POOLS", "BUSY", "TZ DATA", "UP", "HEARTBEAT", "STATE"];
    let mut table = Table::new(&headings).unclipped(0);
    for instance in instances {
        let (state, tone) = match instance {
            it if it.silent_ms > MAX_HEARTBEAT_AGE_MS => ("silent", Tone::Bad),
            it if it.ready => ("ready", Tone::Good),
            _ => ("not ready", Tone::Warning),
        };
        let busy = match instance.kind.as_str() {
            "worker" => Cell::new(format!("{}/{}", instance.running, instance.slots)),
            _ => Cell::none(),
        };
        table.row(vec![
            Cell::new(&instance.name),
            Cell::new(&instance.kind),
            Cell::new(instance.pid.to_string()),
            Cell::new(instance.pools.join(",")),
            busy,
            instance.tz_version.as_ref().map_or_else(Cell::none, Cell::new),
            Cell::new(duration((now - instance.started_at).num_milliseconds())),
            Cell::new(format!("{} ago", duration(instance.silent_ms))),
            Cell::toned(state, tone),
        ]);
    }
    table
}
