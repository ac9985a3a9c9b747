//! `sexton jobs catch-up`: what is late, what is held, and what becomes of it.

use sexton_operations::jobs::catch_up::{
    self, CatchUpPreview, Entry, MAX_ENTRIES, check_names, count_held, preview,
};
use sexton_store::Store;
use sexton_store::catch_up::{Hold, HoldDecision, MAX_COUNTED_LATE_JOBS, SettledHold};

use super::CatchUp;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, duration, instant};

pub(super) async fn run(arguments: &CatchUp, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    check_names(&store, &arguments.names).await?;
    let names = Some(&arguments.names[..]).filter(|names| !names.is_empty());
    if arguments.dry_run {
        return show(&store, names, session).await;
    }
    let verdict = if arguments.discard { HoldDecision::Discard } else { HoldDecision::Release };
    settle(&store, (verdict, names), arguments, session).await
}

async fn show(store: &Store, names: Option<&[String]>, session: &Session) -> Result<(), Failure> {
    let preview = preview(store, names).await?;
    if session.out.is_json() {
        return session.out.document(&preview);
    }
    let CatchUpPreview { hold, entries, unreadable, is_cut, .. } = preview;
    match &hold {
        Some(hold) => session.out.print(describe_hold(hold))?,
        None => session.out.print("Catch-up is not held.")?,
    }
    for name in &unreadable {
        session.out.print(format!("{name} cannot be planned: its row cannot be read."))?;
    }
    if entries.is_empty() {
        return session.out.print("No firing is late.");
    }
    session.out.table(table(&entries))?;
    if is_cut {
        session.out.print(format!(
            "More is left out: only the first {MAX_ENTRIES} late jobs and runs that were set aside are \
             judged here. Ask for single jobs by their names."
        ))?;
    }
    Ok(())
}

fn describe_hold(hold: &Hold) -> String {
    let direction = if hold.reason == "backward" { "back" } else { "ahead" };
    format!(
        "Catch-up is held: the database's time went {direction} from {} to {}. {} firings of {} jobs \
         are set aside; --release lets their jobs' policies judge them, --discard gives them up.",
        instant(hold.last_seen),
        instant(hold.noticed_at),
        hold.firings,
        hold.jobs
    )
}

fn table(entries: &[Entry]) -> Table {
    let headings = ["JOB", "LATE", "POLICY", "WOULD RUN", "OF", "SPREAD", "SKIPPED", "GAPS"];
    let mut table = Table::new(&headings);
    for entry in entries {
        let gaps: Vec<_> =
            entry.gaps.iter().map(|gap| format!("{} {}", gap.count, gap.reason)).collect();
        let of = match &entry.runs[..] {
            [] => Cell::none(),
            [one] => Cell::new(instant(*one)),
            [first, .., last] => Cell::new(format!("{} to {}", instant(*first), instant(*last))),
        };
        let spread = match entry.spread_ms {
            0 => Cell::none(),
            ms => Cell::new(duration(ms)),
        };
        let tone = if entry.state == "held" { Tone::Warning } else { Tone::Plain };
        table.row(vec![
            Cell::new(&entry.job_name),
            Cell::toned(entry.state, tone),
            Cell::new(entry.policy),
            Cell::number(entry.runs.len() as i64),
            of,
            spread,
            Cell::number(entry.skipped as i64),
            if gaps.is_empty() { Cell::none() } else { Cell::new(gaps.join(", ")) },
        ]);
    }
    table
}

async fn settle(
    store: &Store,
    (verdict, names): (HoldDecision, Option<&[String]>),
    arguments: &CatchUp,
    session: &Session,
) -> Result<(), Failure> {
    let firings = count_held(store, names).await?;
    let verb = match verdict {
        HoldDecision::Release => "will be judged by their jobs' misfire policies",
        HoldDecision::Discard => "will be given up",
    };
    confirm(&format!("{firings} firings that are set aside {verb}"), arguments.yes)?;
    let by = (&session.actor, arguments.reason.as_deref());
    let settled = catch_up::settle(store, verdict, names, by).await?;
    if session.out.is_json() {
        session.out.document(&settled)?;
    } else {
        session.out.print(format!(
            "{} jobs: {} executions are pending, {} firings are skipped, {} are counted in gaps, {} \
             had been claimed before.",
            settled.jobs, settled.claimed, settled.skipped, settled.missed, settled.known
        ))?;
        let over = match (settled.ended, names) {
            (true, _) => "The hold is over.",
            (false, Some(_)) => "The hold goes on; without a name it ends.",
            (false, None) => "The hold goes on, because something is set aside still.",
        };
        session.out.print(over)?;
        if settled.late_jobs > 0 {
            session.out.print(describe_late_jobs(&settled))?;
        }
    }
    if settled.unreadable.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "these jobs cannot be read, and theirs stays set aside: {}; correct them, or --discard it",
        settled.unreadable.join(", ")
    )))
}

/// What a discard could not give up.
fn describe_late_jobs(settled: &SettledHold) -> String {
    let or_more = if settled.late_jobs >= MAX_COUNTED_LATE_JOBS { " or more" } else { "" };
    format!(
        "{}{or_more} jobs are late and no scheduler has set them aside: they will be caught up by their \
         policies. sexton jobs catch-up --dry-run shows what would run; pause at once what must not \
         (sexton jobs pause NAME): resuming it passes over what was due.",
        settled.late_jobs
    )
}
