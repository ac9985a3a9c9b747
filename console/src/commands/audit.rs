//! `sexton audit`: operators' actions.

mod chain;
mod export;

use clap::{Args, Subcommand};
use sexton_operations::audit::{self, AuditRequest};
use sexton_operations::paging::Page;
use sexton_operations::short_ids::{self, ShortIds};
use sexton_store::operator::OperatorAction;
use uuid::Uuid;

use crate::failure::Failure;
use crate::options::{PageOptions, TimeRangeOptions, render_next};
use crate::session::Session;
use crate::show::{Cell, Table, line, precise};
pub use chain::Verify;
pub use export::{Export, Format};

/// What operators did.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List operators' actions, newest first
    List(List),
    /// Write operators' actions, oldest first, one on each line
    Export(Export),
    /// Verify that nobody has changed, removed or inserted actions
    Verify(Verify),
    /// Print the head of the audit's chain, to be kept where the database's owner cannot change it
    Head,
}

/// Which actions; an action must meet all conditions.
#[derive(Debug, Args)]
pub struct Selector {
    /// Only actions by this operator: the whole name, or only the part before the @
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Only actions of this kind: requeue, discard, restore, edit, cancel, pause, apply, bulk, …
    #[arg(long, value_name = "WORD")]
    action: Option<String>,
    /// Only actions on this job or its executions
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Only actions on this execution
    #[arg(long, value_name = "ID")]
    execution: Option<String>,
    /// Only actions by this bulk or on it
    #[arg(long, value_name = "ID")]
    bulk: Option<i64>,
    #[command(flatten)]
    range: TimeRangeOptions,
}

/// Which page.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    selector: Selector,
    #[command(flatten)]
    page: PageOptions,
    /// Show values that look like secrets, which are masked otherwise
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
            range: self.range.request(),
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
        AuditCommand::Verify(arguments) => chain::verify(&arguments, session).await,
        AuditCommand::Head => chain::head(session).await,
    }
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let filter = arguments.selector.request().read(&store, now).await?;
    let PageOptions { limit, cursor } = &arguments.page;
    let is_json = session.out.is_json();
    // The table has no column for what an action changed.
    let unmasked = arguments.unmasked || !is_json;
    let page = audit::page(&store, &filter, cursor.as_deref(), *limit, unmasked).await?;
    if is_json {
        return session.out.document(&page);
    }
    let Page { items: found, next_cursor } = page;
    if found.is_empty() {
        return session.out.print("There is nothing of that in the audit.");
    }
    let ids = found.iter().filter_map(|action| action.execution_id);
    let ids = short_ids::of_executions(&store, ids).await?;
    session.out.table(table(&found, &ids))?;
    render_next(next_cursor.as_ref(), session)
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
