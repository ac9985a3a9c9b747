//! `sexton jobs backfill`: count, ask, then batch by batch.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use sexton_model::id::ExecutionId;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::backfill::{
    self, BackfillError, BackfilledFiring, BatchStart, MAX_BACKFILL_EXECUTIONS,
};
use sexton_store::jobs;
use sexton_store::ledger::zone_of;
use sexton_store::operator::AuditContext;
use uuid::Uuid;

use super::{Backfill, missing, time_argument};
use crate::actor;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, duration, instant};

/// The most firings that are looked at.
const MAX_FIRINGS: u64 = 100_000;
/// The most firings that are told one by one.
const MAX_LISTED: usize = 1_000;
/// The most that are shown to people.
const MAX_SHOWN: usize = 50;

/// What was done, or would be.
#[derive(Debug, Default)]
struct Totals {
    made: u64,
    known: u64,
    first_due_at: Option<DateTime<Utc>>,
    last_due_at: Option<DateTime<Utc>>,
    listed: Vec<BackfilledFiring>,
}

impl Totals {
    fn add(&mut self, firings: Vec<BackfilledFiring>) {
        for firing in firings {
            match firing.due_at {
                Some(due) => {
                    self.made += 1;
                    self.first_due_at.get_or_insert(due);
                    self.last_due_at = Some(due);
                }
                None => self.known += 1,
            }
            if self.listed.len() < MAX_LISTED {
                self.listed.push(firing);
            }
        }
    }

    const fn firing_count(&self) -> u64 {
        self.made + self.known
    }
}

pub(super) async fn run(arguments: &Backfill, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let name = &arguments.name;
    let Some(job) = jobs::find(&store, name).await? else {
        return Err(missing(&store, name).await);
    };
    let (zone, now) = (arguments.tz.unwrap_or_else(|| zone_of(&job)), session.now(&store).await?);
    let to = arguments
        .to
        .as_deref()
        .map(|to| time_argument::parse("--to", to, zone, now))
        .transpose()?;
    let claimed_by = actor::claimer();
    let request = backfill::Backfill {
        job: name,
        from: time_argument::parse("--from", &arguments.from, zone, now)?,
        to: to.unwrap_or(now),
        rate: arguments.rate,
        allow_overlap: arguments.overlap.is_some(),
        claimed_by: &claimed_by,
        dry_run: true,
    };
    let by = AuditContext { actor: &session.actor, reason: arguments.reason.as_deref() };
    let preview = run_batches(&store, request, by).await?;
    if preview.made > MAX_BACKFILL_EXECUTIONS {
        return Err(Failure::Usage(format!(
            "{} firings have no execution; {MAX_BACKFILL_EXECUTIONS} at most at once: narrow the range",
            preview.made
        )));
    }
    if arguments.dry_run {
        return render(&preview, arguments, &request, session);
    }
    if preview.made == 0 {
        return Err(Failure::NothingDone(format!(
            "nothing to backfill: the range has {} firings, all with an execution",
            preview.known
        )));
    }
    confirm(&question(&preview, arguments), arguments.yes)?;
    let done = run_batches(&store, backfill::Backfill { dry_run: false, ..request }, by).await?;
    render(&done, arguments, &request, session)
}

/// Batch by batch, to the end.
async fn run_batches(
    store: &Store,
    request: backfill::Backfill<'_>,
    by: AuditContext<'_>,
) -> Result<Totals, Failure> {
    let mut sum = Totals::default();
    let mut position: Option<BatchStart> = None;
    loop {
        let fresh_id = || ExecutionId::new(Uuid::now_v7());
        let batch = match backfill::create_batch(store, request, position, fresh_id, by, None).await
        {
            Ok(batch) => batch,
            Err(BackfillError::Missing(name)) => return Err(missing(store, &name).await),
            Err(error) => return Err(backfill_failure(error, sum.made)),
        };
        sum.add(batch.firings);
        if sum.firing_count() > MAX_FIRINGS {
            return Err(Failure::Usage(format!(
                "the range has more than {MAX_FIRINGS} firings: narrow it"
            )));
        }
        position = batch.next;
        if !request.dry_run && sum.made > 0 {
            fault::point("console.backfilled");
        }
        if position.is_none() {
            return Ok(sum);
        }
    }
}

fn backfill_failure(error: BackfillError, made: u64) -> Failure {
    let hint = match &error {
        BackfillError::Overlap(_) => {
            "; --overlap allow lets these run beside each other and beside others"
        }
        BackfillError::Locked(_) if made > 0 => "; the same command goes on where this one ended",
        _ => "",
    };
    let text = format!("{error}{hint}");
    match error {
        BackfillError::Backwards | BackfillError::Ahead { .. } | BackfillError::Overlap(_) => {
            Failure::Usage(text)
        }
        BackfillError::Store(error) => error.into(),
        _ => Failure::Failed(text),
    }
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

fn render(
    sum: &Totals,
    arguments: &Backfill,
    request: &backfill::Backfill<'_>,
    session: &Session,
) -> Result<(), Failure> {
    if session.out.is_json() {
        let firings = sum.listed.iter().map(|firing| {
            json!({
                "scheduled_for": firing.scheduled_for,
                "execution_key": firing.execution_key,
                "execution_id": firing.execution,
                "made": firing.due_at.is_some(),
                "due_at": firing.due_at,
            })
        });
        return session.out.document(&json!({
            "job_name": arguments.name,
            "dry_run": arguments.dry_run,
            "from": request.from,
            "to": request.to,
            "rate": request.rate.map(|rate| rate.to_string()),
            "overlap_override": request.allow_overlap.then_some("allow"),
            "made": sum.made,
            "known": sum.known,
            "first_due_at": sum.first_due_at,
            "last_due_at": sum.last_due_at,
            "firings": firings.collect::<Value>(),
            "firings_are_all": sum.firing_count() == sum.listed.len() as u64,
        }));
    }
    let mut table = Table::new(&["FIRING", "DUE", "EXECUTION"]).single_line_rows();
    for firing in sum.listed.iter().take(MAX_SHOWN) {
        let id = firing.execution.map(|id| id.to_string());
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
             --from {} --to {}",
            arguments.name,
            at(request.from),
            at(request.to)
        )
    })
}
