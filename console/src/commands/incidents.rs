//! `sexton incidents`: what is wrong, and who responds.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use sexton_model::duration;
use sexton_model::incident::{Severity, SubjectKind};
use sexton_model::remedy::section_of;
use sexton_operations::incidents::{self, IncidentRequest};
use sexton_operations::paging::Page;
use sexton_store::incidents::{Incident, IncidentFilter};

use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
use crate::session::Session;
use crate::show::{Cell, Facts, Table, Tone, ago, lines, precise};

/// Characters of an id in a table: those that say its time, and a number within a millisecond.
const SHORT_ID_CHARS: usize = 18;

/// Incidents.
#[derive(Debug, Subcommand)]
pub enum IncidentsCommand {
    /// List open incidents, the newest first
    List(List),
    /// Show an incident with its timeline
    Show(Reference),
    /// Take an incident on: no reminders and no escalation any more
    Ack(ActionArguments),
    /// Send nothing about an incident, nor about a further one of its subject, for some time
    Silence(SilenceArguments),
    /// End a silence
    Unsilence(ActionArguments),
    /// End an incident; the next violation opens a new one
    Resolve(ActionArguments),
}

/// Which incidents to list.
#[derive(Debug, Args)]
pub struct List {
    /// Include resolved incidents
    #[arg(long)]
    all: bool,
    /// Only incidents of this severity: low, medium or high
    #[arg(long, value_parser = parse_severity, value_name = "SEVERITY")]
    severity: Option<Severity>,
    /// Only incidents about subjects of this kind: job, check, group, platform or channel
    #[arg(long, value_parser = parse_kind, value_name = "KIND")]
    kind: Option<SubjectKind>,
    /// Only incidents of subjects whose name contains this text
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

/// An incident.
#[derive(Debug, Args)]
pub struct Reference {
    /// Id of the incident, the beginning of it, or the name of the job or other subject of an open one
    incident: String,
}

/// An incident, and why.
#[derive(Debug, Args)]
pub struct ActionArguments {
    #[command(flatten)]
    incident: Reference,
    /// Reason, recorded in the audit log and in the timeline
    #[arg(long)]
    reason: Option<String>,
}

/// A silence.
#[derive(Debug, Args)]
pub struct SilenceArguments {
    #[command(flatten)]
    incident: Reference,
    /// How long, as in 2h or 3d
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse)]
    time: Duration,
    /// Reason, recorded in the audit log and in the timeline
    #[arg(long)]
    reason: String,
}

fn parse_severity(text: &str) -> Result<Severity, String> {
    Severity::parse(text).ok_or_else(|| "write low, medium or high".to_owned())
}

fn parse_kind(text: &str) -> Result<SubjectKind, String> {
    SubjectKind::parse(text)
        .ok_or_else(|| "write job, check, group, platform or channel".to_owned())
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &IncidentsCommand, session: &Session) -> Result<(), Failure> {
    match command {
        IncidentsCommand::List(arguments) => list(arguments, session).await,
        IncidentsCommand::Show(reference) => show(reference, session).await,
        IncidentsCommand::Ack(arguments) => {
            act(arguments, IncidentRequest::Acknowledge, "acknowledged", session).await
        }
        IncidentsCommand::Unsilence(arguments) => {
            act(arguments, IncidentRequest::Unsilence, "not silenced any more", session).await
        }
        IncidentsCommand::Resolve(arguments) => {
            act(arguments, IncidentRequest::Resolve, "resolved", session).await
        }
        IncidentsCommand::Silence(arguments) => silence(arguments, session).await,
    }
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let filter = IncidentFilter {
        with_resolved: arguments.all,
        severity: arguments.severity,
        subject_kind: arguments.kind,
        containing: arguments.contains.clone(),
        before: None,
    };
    let PageOptions { limit, cursor } = &arguments.page;
    let page = incidents::list(&store, filter, cursor.as_deref(), *limit).await?;
    if session.out.is_json() {
        return session.out.document(&page);
    }
    let Page { items, next_cursor } = page;
    if items.is_empty() {
        let text = if arguments.all {
            "There are no such incidents."
        } else {
            "No such incident is open."
        };
        return session.out.print(text);
    }
    session.out.table(table(&items, now))?;
    render_next(next_cursor.as_ref(), session)
}

fn table(incidents: &[Incident], now: DateTime<Utc>) -> Table {
    let headings = ["ID", "SEVERITY", "STATE", "ABOUT", "CAUSE", "TIMES", "OPENED", "LAST", "WHAT"];
    let mut table = Table::new(&headings).unclipped(0).single_line_rows();
    for incident in incidents {
        table.row(vec![
            Cell::new(short_id(incident)),
            severity(&incident.severity),
            state(incident, now),
            Cell::new(format!("{} {}", incident.subject_kind, incident.name)),
            Cell::new(incident.cause.replace('_', " ")),
            Cell::number(i64::from(incident.occurrences)),
            Cell::new(ago(incident.opened_at, now)),
            Cell::new(ago(incident.changed_at, now)),
            Cell::new(incident.detail.lines().next().unwrap_or_default()),
        ]);
    }
    table
}

fn short_id(incident: &Incident) -> String {
    incident.id.to_string().chars().take(SHORT_ID_CHARS).collect()
}

fn severity(text: &str) -> Cell {
    match text {
        "high" => Cell::toned(text, Tone::Bad),
        "medium" => Cell::toned(text, Tone::Warning),
        _ => Cell::new(text),
    }
}

fn state(incident: &Incident, now: DateTime<Utc>) -> Cell {
    let silenced = incident.silenced_until.is_some_and(|until| until > now);
    match (incident.state.as_str(), silenced) {
        ("resolved", _) => Cell::toned("resolved", Tone::Good),
        (state, true) => Cell::new(format!("{state}, silenced")),
        (state, false) => Cell::new(state),
    }
}

async fn show(reference: &Reference, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let incident = incidents::find(&store, &reference.incident).await?;
    let details = incidents::details(&store, incident).await?;
    if session.out.is_json() {
        return session.out.document(&details);
    }
    let incident = &details.incident;
    let mut facts = Facts::default();
    facts.add("incident", incident.id.to_string());
    facts.add("about", format!("{} {}", incident.subject_kind, incident.name));
    facts.add("cause", incident.cause.replace('_', " "));
    facts.add("severity", &incident.severity);
    facts.add("state", &incident.state);
    facts.add("times", incident.occurrences.to_string());
    facts.add("opened", precise(incident.opened_at));
    facts.add_optional(
        "acknowledged",
        by(incident.acknowledged_at, incident.acknowledged_by.as_ref()),
    );
    if let Some(until) = incident.silenced_until.filter(|until| *until > now) {
        let reason = incident.silence_reason.as_deref().unwrap_or_default();
        facts.add("silenced until", format!("{} {reason}", precise(until)));
    }
    facts.add_optional("resolved", by(incident.resolved_at, incident.resolved_by.as_ref()));
    facts.add_optional("execution", incident.execution_id.map(|id| id.to_string()));
    let section = SubjectKind::parse(&incident.subject_kind)
        .map(|kind| section_of(kind, &incident.cause).to_owned());
    facts.add_optional("what to do", section);
    session.out.facts(facts)?;
    session.out.print(lines(&format!("\n{}\n", incident.detail)))?;
    let mut table = Table::new(&["AT", "WHAT", "WHO", "DETAIL"]).unclipped(0).single_line_rows();
    for event in &details.timeline {
        let detail = event.detail.as_deref().and_then(|text| text.lines().next());
        table.row(vec![
            Cell::new(precise(event.at)),
            Cell::new(&event.kind),
            Cell::new(event.actor.as_deref().unwrap_or("sexton")),
            Cell::new(detail.unwrap_or_default()),
        ]);
    }
    session.out.table(table)
}

fn by(at: Option<DateTime<Utc>>, who: Option<&String>) -> Option<String> {
    let at = precise(at?);
    Some(who.map_or_else(|| at.clone(), |who| format!("{at} by {who}")))
}

async fn act(
    arguments: &ActionArguments,
    request: IncidentRequest,
    done: &str,
    session: &Session,
) -> Result<(), Failure> {
    let store = session.store().await?;
    let incident = incidents::find(&store, &arguments.incident.incident).await?;
    let reason = arguments.reason.as_deref();
    let after = incidents::act(&store, incident.id, request, &session.actor, reason, None).await?;
    if session.out.is_json() {
        return session.out.document(&after);
    }
    let Incident { id, subject_kind, name, .. } = after;
    session.out.print(format!("Incident {id} of {subject_kind} {name} is {done}."))
}

async fn silence(arguments: &SilenceArguments, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let incident = incidents::find(&store, &arguments.incident.incident).await?;
    let request = IncidentRequest::Silence(arguments.time);
    let reason = Some(arguments.reason.as_str());
    let after = incidents::act(&store, incident.id, request, &session.actor, reason, None).await?;
    if session.out.is_json() {
        return session.out.document(&after);
    }
    let until = after.silenced_until.map(precise).unwrap_or_default();
    let Incident { id, subject_kind, name, .. } = after;
    session.out.print(format!("Incident {id} of {subject_kind} {name} is silenced until {until}."))
}
