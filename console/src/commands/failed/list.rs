//! `sexton failed list`.

use chrono::{DateTime, Utc};
use clap::{Args, ValueEnum};
use sexton_model::failures::{FailureFilter, Order};
use sexton_operations::failed::list::{LeftOut, left_out, page, read_cursor};
use sexton_operations::filter::FailureScope;
use sexton_operations::paging::Page;
use sexton_operations::short_ids;
use sexton_store::Store;
use sexton_store::failures::FailedExecution;

use super::selector::MutedOption;
use crate::failure::Failure;
use crate::muted::describe_muted;
use crate::options::{FilterOptions, PageOptions, render_next};
use crate::session::Session;
use crate::show::{Cell, Table, ago, line};

/// Of a message, in a table.
const MAX_MESSAGE_CHARS: usize = 200;

/// Which failed executions to list.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    filter: FilterOptions,
    #[command(flatten)]
    muted: MutedOption,
    /// List discarded executions instead
    #[arg(long)]
    discarded: bool,
    /// Order of the failures
    #[arg(long, value_enum, default_value_t = Sort::Newest)]
    sort: Sort,
    #[command(flatten)]
    page: PageOptions,
}

/// The order of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Sort {
    /// The latest failure first
    Newest,
    /// The oldest failure first
    Oldest,
}

impl List {
    const fn order(&self) -> Order {
        match self.sort {
            Sort::Newest => Order::Newest,
            Sort::Oldest => Order::Oldest,
        }
    }
}

pub(super) async fn run(arguments: &List, session: &Session) -> Result<(), Failure> {
    let order = arguments.order();
    let PageOptions { limit, cursor } = &arguments.page;
    let after = read_cursor(cursor.as_deref(), order)?;
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let scope = FailureScope { discarded: arguments.discarded, muted: arguments.muted.muted };
    let filter = arguments.filter.request().read_failures(&store, scope, now).await?;
    let Page { items: rows, next_cursor } = page(&store, &filter, order, after, *limit).await?;
    if session.out.is_json() {
        session.out.document(&Page { items: rows, next_cursor })?;
        return render_left_out(&store, &filter, session).await;
    }
    if rows.is_empty() {
        session.out.print("There are no such executions.")?;
    } else {
        session.out.table(table(&store, &rows, now).await?)?;
    }
    render_next(next_cursor.as_ref(), session)?;
    render_left_out(&store, &filter, session).await
}

/// Says on standard error what a list leaves out because its groups are muted.
async fn render_left_out(
    store: &Store,
    filter: &FailureFilter,
    session: &Session,
) -> Result<(), Failure> {
    let text = match left_out(store, filter).await? {
        LeftOut::Counted(matches) => {
            describe_muted(&matches).map(|text| format!("left out: {text}"))
        }
        LeftOut::Uncounted => {
            Some("left out: executions of muted groups; --muted selects them as well".to_owned())
        }
    };
    if let Some(text) = text {
        session.out.note(&text);
    }
    Ok(())
}

async fn table(
    store: &Store,
    rows: &[FailedExecution],
    now: DateTime<Utc>,
) -> Result<Table, Failure> {
    let ids = short_ids::of_executions(store, rows.iter().map(|row| row.execution.id)).await?;
    let groups = rows.iter().filter_map(|row| row.execution.fingerprint.clone());
    let groups = short_ids::of_fingerprints(store, groups).await?;
    let mut table =
        Table::new(&["ID", "JOB", "ATTEMPTS", "FAILED", "WORKER", "GROUP", "CLASS", "MESSAGE"])
            .unclipped(0)
            .single_line_rows();
    for FailedExecution { execution, worker } in rows {
        let or_none = |text: &Option<String>| text.as_deref().map_or_else(Cell::none, Cell::new);
        table.row(vec![
            Cell::new(ids.get(&execution.id)),
            Cell::new(&execution.job_name),
            execution.attempts_made.map_or_else(Cell::none, Cell::number),
            Cell::new(execution.finished_at.map(|at| ago(at, now)).unwrap_or_default()),
            or_none(worker),
            or_none(&execution.fingerprint.as_ref().map(|fingerprint| groups.get(fingerprint))),
            or_none(&execution.error_class),
            Cell::new(line(execution.error_message.as_deref().unwrap_or(""), MAX_MESSAGE_CHARS)),
        ]);
    }
    Ok(table)
}
