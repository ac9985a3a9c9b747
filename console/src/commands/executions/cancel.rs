//! `sexton executions cancel`: of one or of several, each by itself; of many, as a bulk.

use clap::Args;
use sexton_model::bulk::BulkKind;
use sexton_model::state::State;
use sexton_operations::bulks::request::{BulkAction, preview_cancel};
use sexton_operations::bulks::ruled::ruled_bulk;
use sexton_operations::executions::cancel;
use sexton_operations::selection::{Selection, SelectionRequest};
use sexton_store::operator::Cancelled;

use crate::commands::bulks::{BulkOptions, request_bulk};
use crate::commands::report::{ActionResult, Report};
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::options::FilterOptions;
use crate::session::Session;

/// What to cancel.
#[derive(Debug, Args)]
pub struct Cancel {
    /// Ids of executions, or unique beginnings of them
    #[arg(num_args = 0..=1_000, value_name = "ID")]
    ids: Vec<String>,
    /// Only executions in this state; repeatable
    #[arg(long, value_parser = parse_state, value_name = "STATE")]
    state: Vec<State>,
    #[command(flatten)]
    filter: FilterOptions,
    /// Select all executions that wait or run; required if nothing else selects
    #[arg(long)]
    all: bool,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    options: BulkOptions,
}

fn parse_state(text: &str) -> Result<State, String> {
    match State::parse(text) {
        Some(state) if BulkKind::Cancel.acts_on(state) => Ok(state),
        Some(State::Failed) => {
            Err("a failed execution is given up with `sexton failed discard`".to_owned())
        }
        _ => Err("write one of pending, retrying, running".to_owned()),
    }
}

pub(super) async fn run(arguments: &Cancel, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let filter = arguments.filter.request();
    let request = SelectionRequest { ids: &arguments.ids, filter: &filter, all: arguments.all };
    let selection = request.read_executions(&store, &arguments.state, now).await?;
    let (options, reason) = (&arguments.options, arguments.reason.as_deref());
    let ids = match selection {
        Selection::Ids(ids) if options.rate.is_none() && !options.dry_run => ids,
        selection => {
            let action = BulkAction::new(BulkKind::Cancel, options.rate, reason);
            let bulk = preview_cancel(&store, &selection, None).await?;
            return request_bulk(&store, &bulk, action, options, session).await;
        }
    };
    let action = BulkAction::new(BulkKind::Cancel, None, reason);
    if let Some(bulk) = ruled_bulk(&store, action, &ids, None).await? {
        return request_bulk(&store, &bulk, action, options, session).await;
    }
    if ids.len() > 1 {
        confirm(&format!("{} executions will be cancelled", ids.len()), options.yes)?;
    }
    let mut report = Report::new("cancelled", ids.len());
    for id in ids {
        let result = cancel::cancel(&store, id, &session.actor, reason).await;
        report.add(id, result.map(describe))?;
    }
    report.render(session)
}

const fn describe(cancelled: Cancelled) -> ActionResult {
    match cancelled {
        Cancelled::Immediately => ActionResult { state: "cancelled", text: "is cancelled" },
        Cancelled::Requested => {
            ActionResult { state: "running", text: "is running; its worker ends it" }
        }
    }
}
