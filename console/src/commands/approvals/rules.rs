//! `sexton approvals rules`: by which rules actions wait.

use clap::{Args, Subcommand};
use serde_json::json;
use sexton_operations::approvals::rules::{self, ApprovalRule, DEFAULT_ABOVE, RuleRequest};

use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table};

/// Rules by which edits, discards, large bulks and large backfills wait for others.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// List rules by name
    List,
    /// Set a rule, in place of one of the same name
    Set(Set),
    /// Delete a rule
    Delete(Delete),
}

/// The rule to set.
#[derive(Debug, Args)]
pub struct Set {
    /// Its name
    name: String,
    /// Only for jobs with this label; all jobs if not given
    #[arg(long, value_name = "KEY=VALUE")]
    label: Option<String>,
    /// How many people it takes, the one who requests included: 2 to 5
    #[arg(long, value_name = "N", default_value_t = 2)]
    people: i64,
    /// Bulks that requeue or cancel, and backfills, wait above this number of executions; edits, discards and requeues into another pool always
    #[arg(long, value_name = "N", default_value_t = DEFAULT_ABOVE.into())]
    above: i64,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// The rule to delete.
#[derive(Debug, Args)]
pub struct Delete {
    /// Its name
    name: String,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

pub(super) async fn run(command: &RulesCommand, session: &Session) -> Result<(), Failure> {
    match command {
        RulesCommand::List => list(session).await,
        RulesCommand::Set(arguments) => set(arguments, session).await,
        RulesCommand::Delete(arguments) => delete(arguments, session).await,
    }
}

async fn list(session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let all = rules::list(&store).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"items": all}));
    }
    if all.is_empty() {
        return session
            .out
            .print("Nothing needs approval. `sexton approvals rules set NAME` sets a rule.");
    }
    let mut table = Table::new(&["NAME", "JOBS", "PEOPLE", "ABOVE", "SET BY"]).unclipped(0);
    for rule in &all {
        table.row(vec![
            Cell::new(&rule.name),
            Cell::new(jobs(rule)),
            Cell::number(rule.people.into()),
            Cell::number(rule.above.into()),
            Cell::new(&rule.set_by),
        ]);
    }
    session.out.table(table)
}

fn jobs(rule: &ApprovalRule) -> String {
    match (&rule.label, &rule.label_value) {
        (Some(label), Some(value)) => format!("{label}={value}"),
        _ => "all".to_owned(),
    }
}

async fn set(arguments: &Set, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let Set { name, label, people, above, reason } = arguments;
    let request = RuleRequest { name, label: label.as_deref(), people: *people, above: *above };
    let rule = rules::set(&store, request, &session.actor, reason.as_deref()).await?;
    if session.out.is_json() {
        return session.out.document(&rule);
    }
    session.out.print(format!("rule {name} holds: {} people, jobs: {}.", rule.people, jobs(&rule)))
}

async fn delete(arguments: &Delete, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let Delete { name, reason } = arguments;
    rules::delete(&store, name, &session.actor, reason.as_deref()).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"name": name, "done": "deleted"}));
    }
    session.out.print(format!("rule {name} is deleted."))
}
