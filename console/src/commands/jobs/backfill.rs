//! `sexton jobs backfill`: count, ask, then batch by batch.

use chrono::{DateTime, SecondsFormat, Utc};
use sexton_operations::approvals::gate::Outcome;
use sexton_operations::job_names;
use sexton_operations::jobs::backfill::{BackfillRange, BackfillRequest, Totals};
use sexton_operations::short_ids;
use sexton_store::Store;

use super::Backfill;
use crate::commands::approvals::report_waiting;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, duration, instant};

/// The most that are shown to people.
const MAX_SHOWN: usize = 50;

pub(super) async fn run(arguments: &Backfill, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let job = job_names::find(&store, &arguments.name).await?;
    let request = BackfillRequest {
        job: &arguments.name,
        since: &arguments.since,
        until: arguments.until.as_deref(),
        zone: arguments.tz,
        rate: arguments.rate,
        allow_overlap: arguments.overlap.is_some(),
        reason: arguments.reason.as_deref(),
    };
    let range = request.read(&job, session.now(&store).await?)?;
    let preview = range.preview(&store, &session.actor).await?;
    if arguments.dry_run {
        if let Some(demand) = range.demand(&store, &preview).await? {
            session.out.note(&format!("It needs {}.", demand.describe()));
        }
        return render(&store, preview, arguments, &range, session).await;
    }
    if preview.made == 0 {
        return Err(Failure::NothingDone(format!(
            "nothing to backfill: the range has {} firings, all with an execution",
            preview.known
        )));
    }
    confirm(&question(&preview, arguments), arguments.yes)?;
    let done = match range.run(&store, &session.actor).await? {
        Outcome::Done(done) => done,
        Outcome::Waits(request) => return report_waiting(&request, session),
    };
    render(&store, done, arguments, &range, session).await
}

fn question(preview: &Totals, arguments: &Backfill) -> String {
    let last = match (preview.first_due_at, preview.last_due_at) {
        (Some(first), Some(last)) if last > first => {
            format!(", the last one due after {}", duration((last - first).num_milliseconds()))
        }
        _ => ", all due at once".to_owned(),
    };
    format!("{} firings of {} will run{last}", preview.made, arguments.name)
}

async fn render(
    store: &Store,
    sum: Totals,
    arguments: &Backfill,
    range: &BackfillRange<'_>,
    session: &Session,
) -> Result<(), Failure> {
    if session.out.is_json() {
        return session.out.document(&range.report(sum, arguments.dry_run));
    }
    let shown = || sum.listed.iter().take(MAX_SHOWN);
    let ids = shown().filter_map(|firing| firing.execution);
    let ids = short_ids::of_executions(store, ids).await?;
    let mut table = Table::new(&["FIRING", "DUE", "EXECUTION"]).single_line_rows();
    for firing in shown() {
        let id = firing.execution.map(|id| ids.get(&id));
        table.row(vec![
            Cell::new(instant(firing.scheduled_for)),
            Cell::new(firing.due_at.map_or("has an execution".to_owned(), instant)),
            id.map_or_else(Cell::none, Cell::new),
        ]);
    }
    if !table.is_empty() {
        session.out.table(table)?;
    }
    if sum.firing_count() > MAX_SHOWN as u64 {
        session.out.print(format!("  … and {} more", sum.firing_count() - MAX_SHOWN as u64))?;
    }
    let (made, known) = (sum.made, sum.known);
    session.out.print(if arguments.dry_run {
        format!("Nothing was written; {made} firings would run, {known} have an execution.")
    } else {
        let at = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        format!(
            "{made} firings are claimed, {known} had an execution. How they go: sexton jobs explain {} \
             --since {} --until {}",
            arguments.name,
            at(range.since),
            at(range.until)
        )
    })
}
