//! `sexton audit`: who did what, when, from where, and why.

mod export;

use clap::{Args, Subcommand};
use sexton_operations::audit::{self, AuditRequest};
use sexton_operations::short_ids::{self, ShortIds};
use sexton_store::operator::{OperatorAction, PageStart};
use uuid::Uuid;

use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, line, precise};
pub use export::{Export, Format};

/// What operators did.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List what was done, newest first
    List(List),
    /// Write all of it, oldest first, a line each
    Export(Export),
}

/// Which actions; all that is given must hold.
#[derive(Debug, Args)]
pub struct Selector {
    /// By this operator: as the audit has it, or only what stands before the @
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// This action: requeue, discard, restore, edit, cancel, pause, apply, bulk …
    #[arg(long, value_name = "WORD")]
    action: Option<String>,
    /// On this job or its executions
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// On this execution
    #[arg(long, value_name = "ID")]
    execution: Option<String>,
    /// By this bulk, or on it
    #[arg(long, value_name = "ID")]
    bulk: Option<i64>,
    /// At or after this: 2025-12-01T08:00:00Z, 2025-12-01 or, so long ago, 36h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Before this
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
}

/// Which page.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    selector: Selector,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1_000))]
    limit: i64,
    /// Only older ones than this: where the page before ended
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
    /// With what before and after hold under names such as password or token
    #[arg(long)]
    unmasked: bool,
}

impl Selector {
    fn request(&self) -> AuditRequest<'_> {
        AuditRequest {
            actor: self.actor.as_deref(),
            action: self.action.as_deref(),
            job: self.job.as_deref(),
            execution: self.execution.as_deref(),
            bulk: self.bulk,
            since: self.since.as_deref(),
            until: self.until.as_deref(),
        }
    }
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: AuditCommand, session: &Session) -> Result<(), Failure> {
    match command {
        AuditCommand::List(arguments) => list(&arguments, session).await,
        AuditCommand::Export(arguments) => export::run(&arguments, session).await,
    }
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let filter = arguments.selector.request().read(&store, now).await?;
    let beginning = PageStart::Newest(arguments.before);
    let is_json = session.out.is_json();
    // The table has no column for what an action changed.
    let unmasked = arguments.unmasked || !is_json;
    let found = audit::list(&store, &filter, beginning, arguments.limit, unmasked).await?;
    if is_json {
        return session.out.document(&found);
    }
    if found.is_empty() {
        return session.out.print("There is nothing of that in the audit.");
    }
    let ids = found.iter().filter_map(|action| action.execution_id);
    let ids = short_ids::of_executions(&store, ids).await?;
    session.out.table(table(&found, &ids))?;
    if found.len() as i64 == arguments.limit
        && let Some(last) = found.last()
    {
        session.out.print(format!("There may be more: add --before {}", last.id))?;
    }
    Ok(())
}

fn table(found: &[OperatorAction], ids: &ShortIds<Uuid>) -> Table {
    let mut table =
        Table::new(&["ID", "WHEN", "WHO", "WHAT", "ON", "WHY", "FROM"]).single_line_rows();
    for action in found {
        let execution = action.execution_id.map(|id| ids.get(&id));
        let on = execution.or_else(|| action.job_id.map(|id| id.to_string()));
        let on = on.or_else(|| action.bulk_id.map(|id| format!("bulk {id}")));
        table.row(vec![
            Cell::number(action.id),
            Cell::new(precise(action.at)),
            Cell::new(line(&action.actor, 100)),
            Cell::new(line(&action.action, 50)),
            Cell::new(on.unwrap_or_default()),
            Cell::new(line(action.reason.as_deref().unwrap_or(""), 200)),
            Cell::new(line(action.from_where.as_deref().unwrap_or(""), 200)),
        ]);
    }
    table
}
