//! `sexton failed edit`: other params or another pool for a failed execution, and run it again.

use clap::Args;
use serde_json::{Value, json};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::pool::PoolName;
use sexton_operations::approvals::gate::Outcome;
use sexton_operations::bulks::verified_requeue::{EditOutcome, edit_and_requeue};
use sexton_operations::failed::edit::{Difference, EditOptions, EditTarget, read_params as parse};
use sexton_store::Store;
use sexton_store::executions::Execution;

use super::actions::follow_verified;
use crate::commands::approvals::report_waiting;
use crate::confirm::confirm;
use crate::editor::{self, EditedText, read_limited};
use crate::failure::Failure;
use crate::session::Session;
use crate::show::line;

/// Maximum number of differences shown.
const MAX_LISTED_CHANGES: usize = 50;

/// What to change.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, Args)]
pub struct Edit {
    /// Id of the execution, or a unique beginning of it
    id: String,
    /// New params: a JSON object, @FILE, or - for standard input; without --params and --pool, an editor
    /// ($VISUAL, $EDITOR) opens the current ones
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// New pool
    #[arg(long, value_name = "POOL")]
    pool: Option<PoolName>,
    /// Use that pool even if no worker consumes from it
    #[arg(long)]
    force: bool,
    /// Reason, recorded in the audit log
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
    /// Only if this is still the number of the next attempt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    attempt: Option<i32>,
    /// Leave it failed; `failed requeue` runs it later
    #[arg(long)]
    no_requeue: bool,
    /// Skip the verify task of its job; the audit log records it
    #[arg(long)]
    no_verify: bool,
    /// Show what would change, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(arguments: &Edit, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let options = EditOptions {
        pool: arguments.pool.as_ref(),
        is_pool_forced: arguments.force,
        attempt: arguments.attempt.and_then(AttemptNumber::new),
        requeue: !arguments.no_requeue,
        verify: !arguments.no_verify,
    };
    let target = EditTarget::find(&store, &arguments.id, options).await?;
    let (params, edited) = read_params(arguments, &target.row)?;
    let difference = target.compare(&params)?;
    if !session.out.is_json() {
        render_changes(&difference, session)?;
    }
    let keep = |failure| match edited {
        Some(edited) => edited.keep_file(failure),
        None => failure,
    };
    if !difference.params.is_empty()
        && let Err(failure) = check_params(&store, &target, &difference, &params, session).await
    {
        return Err(keep(failure));
    }
    let id = target.id();
    if arguments.dry_run {
        if let Some(demand) = target.demand(&store, &params, &difference).await? {
            session.out.note(&format!("It needs {}.", demand.describe()));
        }
        return render_outcome(id, &difference, "failed", session);
    }
    let what = if arguments.no_requeue { "edited" } else { "edited and requeued" };
    if let Err(failure) = confirm(&format!("{id} will be {what}"), arguments.yes) {
        return Err(keep(failure));
    }
    let reason = &arguments.reason;
    let by = (&session.actor, reason.as_str());
    match edit_and_requeue(&store, &target, &params, &difference, by).await {
        Err(error) => Err(keep(error.into())),
        Ok(Outcome::Waits(request)) => report_waiting(&request, session),
        Ok(Outcome::Done(EditOutcome::Verifying(bulk))) => {
            follow_verified(&store, bulk, false, session).await
        }
        Ok(Outcome::Done(EditOutcome::Done)) if session.out.is_json() => {
            let state = if arguments.no_requeue { "failed" } else { "pending" };
            render_outcome(id, &difference, state, session)
        }
        Ok(Outcome::Done(EditOutcome::Done)) => session.out.print(format!("{id} is {what}.")),
    }
}

/// Refuses params that do not fit; a warning names what could not be checked.
async fn check_params(
    store: &Store,
    target: &EditTarget<'_>,
    difference: &Difference<'_>,
    params: &Value,
    session: &Session,
) -> Result<(), Failure> {
    let schemas = target.schemas(store, difference).await?;
    if !session.out.is_json() {
        schemas.notes().iter().try_for_each(|note| session.out.print(note))?;
    }
    Ok(schemas.check(params)?)
}

fn render_outcome(
    id: ExecutionId,
    difference: &Difference<'_>,
    state: &str,
    session: &Session,
) -> Result<(), Failure> {
    if !session.out.is_json() {
        return session.out.print("Nothing was done.");
    }
    let places: Vec<String> = difference.params.iter().map(ToString::to_string).collect();
    session
        .out
        .document(&json!({"id": id, "state": state, "changes": places, "pool": difference.pool}))
}

fn render_changes(difference: &Difference<'_>, session: &Session) -> Result<(), Failure> {
    let Difference { params: found, pool } = difference;
    for change in found.iter().take(MAX_LISTED_CHANGES) {
        session.out.print(line(&change.to_string(), 200))?;
    }
    if found.len() > MAX_LISTED_CHANGES {
        session.out.print(format!("and {} more", found.len() - MAX_LISTED_CHANGES))?;
    }
    match pool {
        Some(pool) => session.out.print(format!("to pool {pool}")),
        None => Ok(()),
    }
}

/// The params it is to have, and where they were written if that was an editor.
fn read_params(arguments: &Edit, row: &Execution) -> Result<(Value, Option<EditedText>), Failure> {
    let Some(text) = &arguments.params else {
        if arguments.pool.is_some() {
            return Ok((row.params.clone(), None));
        }
        let before = serde_json::to_string_pretty(&row.params)
            .map_err(|error| Failure::Failed(format!("its params are no JSON: {error}")))?;
        let edited = editor::edit(&(before + "\n"))?;
        return match parse(&edited.text) {
            Ok(params) => Ok((params, Some(edited))),
            Err(invalid) => Err(edited.keep_file(invalid.into())),
        };
    };
    let text = if text == "-" {
        read_limited(&|| Ok(std::io::stdin().lock()), "standard input")
    } else if let Some(path) = text.strip_prefix('@') {
        read_limited(&|| std::fs::File::open(path), path)
    } else {
        Ok(text.clone())
    };
    Ok((parse(&text.map_err(Failure::Usage)?)?, None))
}
