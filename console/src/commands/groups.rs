//! `sexton groups`: groups of similar failures.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use sexton_model::failures::{GroupDecision, GroupState};
use sexton_operations::groups::{self, GroupWithTrend, Remark, check_note};
use sexton_operations::job_names::find_optional_id;
use sexton_operations::paging::Page;
use sexton_operations::short_ids::{self, ShortIds};
use sexton_store::failures::{GroupFilter, GroupOrder};

use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
use crate::session::Session;
use crate::show::{Cell, Facts, Table, Tone, ago, line, precise, sparkline};

/// Of a note, in a table.
const MAX_SHORT_NOTE_CHARS: usize = 40;

/// Which groups to list.
#[derive(Debug, Args)]
pub struct List {
    /// Only groups with failed executions of this job; only those are counted
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Only groups in this state: open, muted, resolved or reopened
    #[arg(long, value_parser = parse_state, value_name = "STATE")]
    state: Option<GroupState>,
    /// Include groups without a failed execution
    #[arg(long)]
    all: bool,
    /// Order of the groups
    #[arg(long, value_enum, default_value_t = Sort::Count)]
    sort: Sort,
    #[command(flatten)]
    page: PageOptions,
}

/// The order of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Sort {
    /// Most failed executions first
    Count,
    /// The latest failure first
    Last,
    /// The newest group first
    First,
}

/// Groups of similar failures.
#[derive(Debug, Subcommand)]
pub enum GroupsCommand {
    /// List groups of similar failures, with counts, trend, note and state
    List(List),
    /// Show a group
    Show(Reference),
    /// Write a note about a group; an empty text removes it
    Note {
        /// The group.
        #[command(flatten)]
        group: Reference,
        /// The note
        text: String,
    },
    /// Mute a group: leave its executions out of lists, and go on counting them
    Mute(DecisionArguments),
    /// Resolve a group: its cause is gone; it is reopened if it fails again
    Resolve(DecisionArguments),
    /// Reopen a muted or resolved group
    Reopen(DecisionArguments),
}

/// A group.
#[derive(Debug, Args)]
pub struct Reference {
    /// Fingerprint of the group, or a unique beginning of it
    fingerprint: String,
}

/// A group, and why.
#[derive(Debug, Args)]
pub struct DecisionArguments {
    #[command(flatten)]
    group: Reference,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

impl DecisionArguments {
    fn remark(&self, decision: GroupDecision) -> Remark<'_> {
        Remark::Decide(decision, self.reason.as_deref())
    }
}

fn parse_state(text: &str) -> Result<GroupState, String> {
    GroupState::parse(text).ok_or_else(|| {
        let all: Vec<&str> = GroupState::ALL.iter().map(|state| state.as_str()).collect();
        format!("write one of {}", all.join(", "))
    })
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let job = find_optional_id(&store, arguments.job.as_deref()).await?;
    let filter =
        GroupFilter { job, state: arguments.state, fingerprint: None, empty: arguments.all };
    let order = match arguments.sort {
        Sort::Count => GroupOrder::Count,
        Sort::Last => GroupOrder::Last,
        Sort::First => GroupOrder::First,
    };
    let PageOptions { limit, cursor } = &arguments.page;
    let page = groups::list(&store, &filter, order, cursor.as_deref(), *limit, None).await?;
    if session.out.is_json() {
        return session.out.document(&page);
    }
    let Page { items: groups, next_cursor } = page;
    if groups.is_empty() {
        return session.out.print("There are no such groups.");
    }
    let fingerprints = groups.iter().map(|entry| entry.group.fingerprint.clone());
    let short = short_ids::of_fingerprints(&store, fingerprints).await?;
    session.out.table(table(&groups, &short, now))?;
    render_next(next_cursor.as_ref(), session)
}

fn table(groups: &[GroupWithTrend], short: &ShortIds<String>, now: DateTime<Utc>) -> Table {
    let headings =
        ["FINGERPRINT", "STATE", "FAILED", "JOBS", "FIRST", "LAST", "24 HOURS", "CLASS", "WHAT"];
    let mut table = Table::new(&headings).unclipped(0).single_line_rows();
    for entry in groups {
        let group = &entry.group;
        let at =
            |at: Option<DateTime<Utc>>| at.map_or_else(Cell::none, |at| Cell::new(ago(at, now)));
        let note = group.note.as_deref().map(|note| line(note, MAX_SHORT_NOTE_CHARS));
        let what = note.map(|note| format!("{} [{note}]", group.pattern));
        table.row(vec![
            Cell::new(short.get(&group.fingerprint)),
            state(group.state),
            Cell::number(group.standing),
            Cell::number(group.jobs),
            at(group.first_seen),
            at(group.last_seen),
            Cell::new(sparkline(&entry.trend)),
            Cell::new(&group.error_class),
            Cell::new(what.as_ref().unwrap_or(&group.pattern)),
        ]);
    }
    table
}

fn state(state: GroupState) -> Cell {
    let tone = match state {
        GroupState::Open => Tone::Plain,
        GroupState::Muted => Tone::Faint,
        GroupState::Resolved => Tone::Good,
        GroupState::Reopened => Tone::Bad,
    };
    Cell::toned(state.as_str(), tone)
}

/// A group, for people.
pub(super) fn facts(entry: &GroupWithTrend, now: DateTime<Utc>) -> Facts {
    let group = &entry.group;
    let at = |at: DateTime<Utc>| format!("{} ({})", precise(at), ago(at, now));
    let mut facts = Facts::default();
    facts.add("fingerprint", &group.fingerprint);
    facts.cell("state", state(group.state));
    let decided = group.decided_by.as_ref().zip(group.decided_at);
    facts.add_optional("decided", decided.map(|(by, when)| format!("{} by {by}", at(when))));
    facts.add_optional("note", group.note.as_ref());
    facts.add("class", &group.error_class);
    facts.add("pattern", &group.pattern);
    facts.add("failed now", format!("{} of {} jobs", group.standing, group.jobs));
    facts.add_optional("first seen", group.first_seen.map(at));
    facts.add_optional("last seen", group.last_seen.map(at));
    facts.add("last 24 hours", sparkline(&entry.trend));
    facts
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &GroupsCommand, session: &Session) -> Result<(), Failure> {
    let (reference, remark, done) = match command {
        GroupsCommand::List(arguments) => return list(arguments, session).await,
        GroupsCommand::Show(reference) => return show(reference, session).await,
        GroupsCommand::Note { group, text } => {
            check_note(text)?;
            (group, Remark::Note(text), "noted")
        }
        GroupsCommand::Mute(arguments) => {
            (&arguments.group, arguments.remark(GroupDecision::Muted), "muted")
        }
        GroupsCommand::Resolve(arguments) => {
            (&arguments.group, arguments.remark(GroupDecision::Resolved), "resolved")
        }
        GroupsCommand::Reopen(arguments) => {
            (&arguments.group, arguments.remark(GroupDecision::Open), "open")
        }
    };
    let store = session.store().await?;
    let (fingerprint, decided) =
        groups::remark(&store, &reference.fingerprint, remark, &session.actor).await?;
    if session.out.is_json() {
        return session.out.document(&json!({
            "fingerprint": fingerprint, "state": decided.decision.as_str(), "note": decided.note,
        }));
    }
    session.out.print(format!("Group {fingerprint} is {done}."))
}

async fn show(reference: &Reference, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let entry = groups::show(&store, &reference.fingerprint).await?;
    if session.out.is_json() {
        return session.out.document(&entry);
    }
    let (now, fingerprint) = (session.now(&store).await?, &entry.group.fingerprint);
    session.out.facts(facts(&entry, now))?;
    let mut hints = Facts::default();
    hints.add("its executions", format!("sexton failed list --group {fingerprint}"));
    hints.add_optional(
        "one of them",
        entry.group.example.map(|id| format!("sexton failed show {id}")),
    );
    session.out.print("")?;
    session.out.facts(hints)
}
