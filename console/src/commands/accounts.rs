//! `sexton accounts`: who may log in, and what for.

use clap::{Args, Subcommand};
use serde_json::json;
use sexton_model::access::Role;
use sexton_model::job_scope::{Grant, JobScope, ScopeChange};
use sexton_operations::accounts;
use sexton_operations::passwords::Password;

use crate::commands::tokens::parse_role;
use crate::failure::Failure;
use crate::password;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, ago};

/// Accounts by which people log in.
#[derive(Debug, Subcommand)]
pub enum AccountsCommand {
    /// List accounts by name
    List(List),
    /// Create an account; the password is typed, or read from standard input
    Create(Create),
    /// Give an account another password, and end its sessions
    SetPassword(SetPassword),
    /// Give an account another role, and end its sessions
    SetRole(SetRole),
    /// Let nobody log in with an account any more, and end its sessions
    Disable(Change),
    /// Let people log in with an account again
    Enable(Change),
    /// End all sessions of somebody, who may log in again unless that is forbidden elsewhere
    EndSessions(EndSessions),
}

/// Which accounts to list.
#[derive(Debug, Args)]
pub struct List {
    /// Include disabled accounts
    #[arg(long)]
    all: bool,
}

/// The account to create.
#[derive(Debug, Args)]
pub struct Create {
    /// Its name, by which the person logs in and the audit knows what is done with it
    name: String,
    /// What it may do: viewer looks; operator also triggers, requeues, pauses, cancels and enqueues; editor also applies and deletes
    /// jobs and edits params; admin also manages accounts, tokens and channels
    #[arg(long, value_name = "ROLE", value_parser = parse_role)]
    role: Role,
    /// Restrict it to jobs: billing.* by the beginning of their names, or team=billing by a label; it may change no others
    #[arg(long, value_name = "SCOPE")]
    only_jobs: Option<JobScope>,
    /// Make a random password, and print it this once
    #[arg(long)]
    generate: bool,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// The account that gets another password.
#[derive(Debug, Args)]
pub struct SetPassword {
    /// Its name
    name: String,
    /// Make a random password, and print it this once
    #[arg(long)]
    generate: bool,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// The account that gets another role.
#[derive(Debug, Args)]
pub struct SetRole {
    /// Its name
    name: String,
    /// What it may do from now on: viewer, operator, editor or admin
    #[arg(value_name = "ROLE", value_parser = parse_role)]
    role: Role,
    /// Restrict it to jobs: billing.* by the beginning of their names, or team=billing by a label; as before if not given
    #[arg(long, value_name = "SCOPE", conflicts_with = "all_jobs")]
    only_jobs: Option<JobScope>,
    /// Restrict it to no jobs any more
    #[arg(long)]
    all_jobs: bool,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// The account to disable or enable.
#[derive(Debug, Args)]
pub struct Change {
    /// Its name
    name: String,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// Whose sessions to end.
#[derive(Debug, Args)]
pub struct EndSessions {
    /// As the audit names them: "account NAME" or "oidc NAME"
    name: String,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &AccountsCommand, session: &Session) -> Result<(), Failure> {
    match command {
        AccountsCommand::List(arguments) => list(arguments, session).await,
        AccountsCommand::Create(arguments) => create(arguments, session).await,
        AccountsCommand::SetPassword(arguments) => set_password(arguments, session).await,
        AccountsCommand::SetRole(SetRole { name, role, only_jobs, all_jobs, reason }) => {
            let store = session.store().await?;
            let (actor, reason) = (&session.actor, reason.as_deref());
            let is_kept = only_jobs.is_none() && !all_jobs;
            let change =
                if is_kept { ScopeChange::Keep } else { ScopeChange::To(only_jobs.clone()) };
            let ended = accounts::set_role(&store, name, (*role, &change), actor, reason).await?;
            let grant = Grant { role: *role, only_jobs: only_jobs.clone() };
            let all = if *all_jobs { " for all jobs" } else { "" };
            let text = format!("account {name} has {}{all} now", describe(&grant));
            report(session, name, "role set", &text, Some(ended), None)
        }
        AccountsCommand::Disable(Change { name, reason }) => {
            let store = session.store().await?;
            let ended = accounts::disable(&store, name, &session.actor, reason.as_deref()).await?;
            report(
                session,
                name,
                "disabled",
                &format!("account {name} is disabled"),
                Some(ended),
                None,
            )
        }
        AccountsCommand::Enable(Change { name, reason }) => {
            let store = session.store().await?;
            accounts::enable(&store, name, &session.actor, reason.as_deref()).await?;
            report(session, name, "enabled", &format!("account {name} is enabled"), None, None)
        }
        AccountsCommand::EndSessions(EndSessions { name, reason }) => {
            let store = session.store().await?;
            let (actor, reason) = (&session.actor, reason.as_deref());
            let ended = accounts::end_sessions(&store, name, actor, reason).await?;
            if session.out.is_json() {
                return report(session, name, "sessions ended", "", Some(ended), None);
            }
            let have_ended = if ended == 1 { "session has ended" } else { "sessions have ended" };
            session.out.print(format!("{ended} {have_ended}: {name}."))
        }
    }
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let mut all = accounts::list(&store).await?;
    if !arguments.all {
        all.retain(|account| account.disabled_at.is_none());
    }
    if session.out.is_json() {
        return session.out.document(&json!({"items": all}));
    }
    if all.is_empty() {
        let hint = "There are no accounts. `sexton accounts create NAME --role admin` creates one.";
        return session.out.print(hint);
    }
    let now = session.now(&store).await?;
    let mut table =
        Table::new(&["NAME", "ROLE", "JOBS", "CREATED BY", "LAST LOG-IN", "STATE"]).unclipped(0);
    for account in &all {
        let last = account.last_log_in_at.map_or_else(|| "never".to_owned(), |at| ago(at, now));
        let state = match account.disabled_at {
            Some(at) => Cell::toned(format!("disabled {}", ago(at, now)), Tone::Faint),
            None => Cell::new("enabled"),
        };
        table.row(vec![
            Cell::new(&account.name),
            Cell::new(&account.role),
            Cell::new(account.only_jobs.as_deref().unwrap_or("all")),
            Cell::new(&account.created_by),
            Cell::new(last),
            state,
        ]);
    }
    session.out.table(table)
}

async fn create(arguments: &Create, session: &Session) -> Result<(), Failure> {
    let Create { name, role, only_jobs, generate, reason } = arguments;
    let password = choose(name, *generate)?;
    let store = session.store().await?;
    let (actor, reason) = (&session.actor, reason.as_deref());
    let grant = Grant { role: *role, only_jobs: only_jobs.clone() };
    let text = format!("account {name} is created, with {}", describe(&grant));
    accounts::create(&store, name, grant, &password, actor, reason).await?;
    report(session, name, "created", &text, None, generate.then_some(&password))
}

fn describe(grant: &Grant) -> String {
    let role = grant.role.as_str();
    match &grant.only_jobs {
        Some(only) => format!("the role {role} for the jobs {only}"),
        None => format!("the role {role}"),
    }
}

async fn set_password(arguments: &SetPassword, session: &Session) -> Result<(), Failure> {
    let SetPassword { name, generate, reason } = arguments;
    let password = choose(name, *generate)?;
    let store = session.store().await?;
    let (actor, reason) = (&session.actor, reason.as_deref());
    let ended = accounts::set_password(&store, name, &password, actor, reason).await?;
    let text = format!("account {name} has another password");
    report(session, name, "password set", &text, Some(ended), generate.then_some(&password))
}

fn choose(name: &str, generate: bool) -> Result<Password, Failure> {
    if generate { Ok(Password::generate()?) } else { password::read(name) }
}

/// Prints what was done; `password`: one that was generated, which is shown this once.
fn report(
    session: &Session,
    name: &str,
    done: &str,
    text: &str,
    ended_sessions: Option<u64>,
    password: Option<&Password>,
) -> Result<(), Failure> {
    if session.out.is_json() {
        let mut document = json!({"name": name, "done": done});
        if let Some(ended) = ended_sessions {
            document["ended_sessions"] = json!(ended);
        }
        if let Some(password) = password {
            document["password"] = json!(password.expose());
        }
        return session.out.document(&document);
    }
    let sessions = match ended_sessions {
        None | Some(0) => String::new(),
        Some(1) => "; 1 session has ended".to_owned(),
        Some(ended) => format!("; {ended} sessions have ended"),
    };
    match password {
        None => session.out.print(format!("{text}{sessions}.")),
        Some(password) => {
            let shown = password.expose();
            session
                .out
                .print(format!("{text}{sessions}. Its password is shown this once:\n\n{shown}"))
        }
    }
}
