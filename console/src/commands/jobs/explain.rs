//! `sexton jobs explain`: what became of a firing, or of all of a range.

use chrono::{DateTime, Utc};
use sexton_model::zone::Zone;
use sexton_operations::instants::TimeRangeRequest;
use sexton_operations::job_names;
use sexton_operations::ledger::{Answer, ExplainedFiring, FiringRequest, FiringSelector, explain};
use sexton_operations::short_ids::{self, ShortIds};
use sexton_store::ledger::{MAX_FIRINGS, zone_of};
use uuid::Uuid;

use super::Explain;
use crate::commands::timeline::timeline_table;
use crate::failure::Failure;
use crate::options::render_next;
use crate::session::Session;
use crate::show::{Cell, Facts, Table, Tone, ago, instant, line};

/// The most characters of a sentence in a table.
const MAX_WHY_CHARS: usize = 200;

pub(super) async fn run(arguments: &Explain, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let name = &arguments.name;
    let job = job_names::find_including_deleted(&store, name).await?;
    let zone = arguments.tz.unwrap_or_else(|| zone_of(&job));
    let request = FiringRequest {
        at: arguments.at.as_deref(),
        range: TimeRangeRequest {
            since: arguments.since.as_deref(),
            until: arguments.until.as_deref(),
        },
        cursor: arguments.page.cursor.as_deref(),
        zone: Some(zone),
        limit: usize::try_from(arguments.page.limit).unwrap_or(MAX_FIRINGS),
    };
    let selector = request.read(&job, session.now(&store).await?)?;
    let answer = explain(&store, &job, selector, None).await?;
    if session.out.is_json() {
        return session.out.document(&answer);
    }
    if let Some(at) = answer.deleted_at {
        session.out.print(format!("{} was deleted at {}.", line(name, 200), instant(at)))?;
    }
    match (selector, answer.firings.as_slice()) {
        (FiringSelector::At(_), [firing]) => render_firing(firing, &answer, zone, session),
        (FiringSelector::At(at), _) => render_no_firing(at, &answer, zone, session),
        (FiringSelector::Range { since, until, .. }, []) => session.out.print(format!(
            "There are no firings from {} until {}.",
            instant(since),
            instant(until)
        )),
        (FiringSelector::Range { .. }, firings) => {
            let ids = firings.iter().filter_map(|firing| firing.execution.as_ref());
            let ids = short_ids::of_executions(&store, ids.map(|execution| execution.id)).await?;
            render_range(firings, &ids, &answer, zone, session)
        }
    }
}

/// An instant, in the zone as well.
fn describe_instant(at: DateTime<Utc>, zone: Zone) -> String {
    if zone.is_utc() {
        return instant(at);
    }
    format!("{} ({} {zone})", instant(at), zone.at(at).format("%a %F %T %:z"))
}

fn render_firing(
    firing: &ExplainedFiring,
    answer: &Answer,
    zone: Zone,
    session: &Session,
) -> Result<(), Failure> {
    let mut facts = Facts::default();
    facts.add("firing", describe_instant(firing.scheduled_for, zone));
    facts.cell("disposition", disposition_cell(&firing.disposition));
    facts.add("why", &firing.why);
    facts.add("key", &firing.execution_key);
    facts.add_optional("revision", firing.revision.map(|number| number.to_string()));
    facts.add_optional("due", firing.due_at.map(|at| ago(at, answer.now)));
    facts.add_optional(
        "execution",
        firing.execution.as_ref().map(|execution| execution.id.to_string()),
    );
    session.out.facts(facts)?;
    let Some(timeline) = &firing.timeline else { return Ok(()) };
    session.out.print("")?;
    session.out.table(timeline_table(timeline))
}

fn render_no_firing(
    at: DateTime<Utc>,
    answer: &Answer,
    zone: Zone,
    session: &Session,
) -> Result<(), Failure> {
    let Some(what) = &answer.no_firing else { return Ok(()) };
    let mut facts = Facts::default();
    facts.add("instant", describe_instant(at, zone));
    facts.cell("disposition", disposition_cell(what.disposition));
    facts.add("why", &what.why);
    let around =
        |at: Option<DateTime<Utc>>| at.map_or("none".to_owned(), |at| describe_instant(at, zone));
    facts.add("firing before", around(what.before));
    facts.add("firing after", around(what.after));
    session.out.facts(facts)
}

fn render_range(
    firings: &[ExplainedFiring],
    ids: &ShortIds<Uuid>,
    answer: &Answer,
    zone: Zone,
    session: &Session,
) -> Result<(), Failure> {
    let mut table = Table::new(&["FIRING", "DISPOSITION", "EXECUTION", "WHY"]).single_line_rows();
    for firing in firings {
        let id = firing.execution.as_ref().map(|execution| ids.get(&execution.id));
        table.row(vec![
            Cell::new(describe_instant(firing.scheduled_for, zone)),
            disposition_cell(&firing.disposition),
            id.map_or_else(Cell::none, Cell::new),
            Cell::new(line(&firing.why, MAX_WHY_CHARS)),
        ]);
    }
    session.out.table(table)?;
    render_next(answer.next_cursor.as_ref(), session)
}

fn disposition_cell(word: &str) -> Cell {
    let tone = match word {
        "ran" => Tone::Good,
        "running" | "queued" => Tone::Busy,
        "failed" | "unknown" => Tone::Bad,
        "paused" | "held" | "due" => Tone::Warning,
        "not_yet" => Tone::Plain,
        _ => Tone::Faint,
    };
    Cell::toned(word, tone)
}
