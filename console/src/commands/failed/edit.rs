//! `sexton failed edit`: other params or another pool for a failed execution, and run it again.

use clap::Args;
use serde_json::{Map, Value, json};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::params::check;
use sexton_model::pool::PoolName;
use sexton_model::state::State;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::executions::{self, Execution};
use sexton_store::operator::{self, AuditContext, OperatorError};

use super::actions::{check_pool, conflict};
use super::requeue_request;
use crate::changes::{Change, changes};
use crate::commands::reference;
use crate::confirm::confirm;
use crate::editor::{self, EditedText, read_limited};
use crate::failure::Failure;
use crate::params_validation::ParamsSchemas;
use crate::session::Session;
use crate::show::line;

/// Differences that are told.
const MAX_LISTED_CHANGES: usize = 50;

/// What to change.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, Args)]
pub struct Edit {
    /// The execution's id, or its beginning as far as it is unique
    id: String,
    /// The params it is to have: a JSON object, @FILE or - for standard input; without it, and without
    /// --pool, an editor ($VISUAL, $EDITOR) opens those it has
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// The pool it is to have
    #[arg(long, value_name = "POOL")]
    pool: Option<PoolName>,
    /// That pool though no worker consumes from it
    #[arg(long)]
    force: bool,
    /// Why, for the audit
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
    /// Only if this attempt is still the next
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    attempt: Option<i32>,
    /// Leave it failed; `failed requeue` runs it later
    #[arg(long)]
    no_requeue: bool,
    /// Run it without asking its job's verify task first; the audit says so
    #[arg(long)]
    no_verify: bool,
    /// Only show which places would change
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(arguments: &Edit, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let id = ExecutionId::new(reference::execution(&store, &arguments.id).await?);
    let row = executions::find(&store, id.get()).await?.ok_or_else(|| reference::missing(id))?;
    let state = State::parse(&row.state).unwrap_or(State::Pending);
    let attempt = AttemptNumber::new(row.attempt).unwrap_or(AttemptNumber::FIRST);
    if state != State::Failed || arguments.attempt.is_some_and(|seen| seen != row.attempt) {
        return Err(
            conflict(&store, OperatorError::Conflict { id, state, attempt }, "requeued").await
        );
    }
    if let Some(pool) = &arguments.pool {
        check_pool(&store, pool, arguments.force).await?;
    }
    let has_verify_task =
        !arguments.no_requeue && requeue_request::count_with_verify_task(&store, &[id]).await? > 0;
    let (params, edited) = read_params(arguments, &row)?;
    let found = changes(&row.params, &params);
    let pool = arguments.pool.as_ref().map(PoolName::as_str).filter(|pool| *pool != row.pool);
    if found.is_empty() && pool.is_none() {
        return Err(Failure::NothingDone("nothing was changed, and nothing was done".to_owned()));
    }
    if !session.out.is_json() {
        render_changes(&found, pool, session)?;
    }
    let keep = |failure| match edited {
        Some(edited) => edited.keep_file(failure),
        None => failure,
    };
    if !found.is_empty()
        && let Err(failure) =
            check_params(&store, &row.task_type, pool.unwrap_or(&row.pool), &params, session).await
    {
        return Err(keep(failure));
    }
    if arguments.dry_run {
        return render_outcome(id, &found, pool, "failed", session);
    }
    let what = if arguments.no_requeue { "edited" } else { "edited and requeued" };
    if let Err(failure) = confirm(&format!("{id} will be {what}"), arguments.yes) {
        return Err(keep(failure));
    }
    let by = AuditContext { actor: &session.actor, reason: Some(&arguments.reason) };
    // Its verify task is asked before it runs again: the edit alone is done here.
    let runs_verify_task = has_verify_task && !arguments.no_verify;
    let change = operator::Edit {
        seen: &row.params,
        params: &params,
        pool,
        requeue: !arguments.no_requeue && !runs_verify_task,
        unverified: has_verify_task && !runs_verify_task,
    };
    if let Err(error) = operator::edit(&store, id, attempt, change, by, None).await {
        return Err(keep(conflict(&store, error, "requeued").await));
    }
    fault::point("console.edited");
    if runs_verify_task {
        let request = requeue_request::RequeueRequest {
            ids: &[id],
            attempt: Some(attempt),
            pool: None,
            detach: false,
        };
        return requeue_request::requeue(&store, request, by, session).await;
    }
    if session.out.is_json() {
        let state = if arguments.no_requeue { "failed" } else { "pending" };
        return render_outcome(id, &found, pool, state, session);
    }
    session.out.print(format!("{id} is {what}."))
}

/// Refuses params that do not fit; what could not be checked is said to people, and holds nothing up.
async fn check_params(
    store: &Store,
    task_type: &str,
    pool: &str,
    params: &Value,
    session: &Session,
) -> Result<(), Failure> {
    let params_schemas = ParamsSchemas::load(store, task_type, pool).await?;
    if !session.out.is_json() {
        params_schemas.notes().iter().try_for_each(|note| session.out.print(note))?;
    }
    params_schemas.check(params)
}

fn render_outcome(
    id: ExecutionId,
    found: &[Change],
    pool: Option<&str>,
    state: &str,
    session: &Session,
) -> Result<(), Failure> {
    if !session.out.is_json() {
        return session.out.print("Nothing was done.");
    }
    let places: Vec<String> = found.iter().map(ToString::to_string).collect();
    session.out.document(&json!({"id": id, "state": state, "changes": places, "pool": pool}))
}

fn render_changes(found: &[Change], pool: Option<&str>, session: &Session) -> Result<(), Failure> {
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
            Err(failure) => Err(edited.keep_file(failure)),
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

fn parse(text: &str) -> Result<Value, Failure> {
    let params: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        Failure::Usage(format!("the params are no JSON object: {error}; nothing was done"))
    })?;
    check(&params)
        .map_err(|error| Failure::Usage(format!("the params {error}; nothing was done")))?;
    Ok(Value::Object(params))
}
