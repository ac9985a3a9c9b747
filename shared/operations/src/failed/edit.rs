//! Edits a failed execution: other params or another pool.
//!
//! [`EditTarget::find`] checks that it may be edited, [`EditTarget::compare`] returns the changes, and
//! [`crate::bulks::verified_requeue::edit_and_requeue`] writes them unless somebody else has edited the execution
//! meanwhile.

use serde_json::{Map, Value};
use sexton_model::exact_json;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::params::check;
use sexton_model::pool::PoolName;
use sexton_service::fault;
use sexton_store::edits::{self, AfterEdit, Edit};
use sexton_store::executions::Execution;
use sexton_store::{Store, bulk};

use super::actions::{check_pool, conflict, find_failed};
use super::changes::{Change, changes};
use crate::actor::Actor;
use crate::approvals::gate::{self, ApprovalDemand, Clearance};
use crate::approvals::proposal::{EditProposal, MAX_LISTED_CHANGES, Proposal};
use crate::digest::sha256_hex;
use crate::error::{Conflict, ExecutionAction, InvalidRequest, OperationError};
use crate::execution_ids;
use crate::params_schemas::ParamsSchemas;

/// The options of an edit, besides the params.
#[derive(Clone, Copy, Debug)]
pub struct EditOptions<'a> {
    /// The new pool; `None`: unchanged.
    pub pool: Option<&'a PoolName>,
    /// Whether to accept a pool without workers.
    pub is_pool_forced: bool,
    /// The attempt number that the execution must still have.
    pub attempt: Option<AttemptNumber>,
    /// Whether to requeue it at once.
    pub requeue: bool,
    /// Whether to run its job's verify task before that.
    pub verify: bool,
}

/// A failed execution to edit.
#[derive(Debug)]
pub struct EditTarget<'a> {
    /// The row as the operator sees it.
    pub row: Execution,
    id: ExecutionId,
    attempt: AttemptNumber,
    has_verify_task: bool,
    options: EditOptions<'a>,
}

/// The changes of an edit.
#[derive(Debug)]
pub struct Difference<'a> {
    /// The changed places in the params.
    pub params: Vec<Change>,
    /// The new pool, if it changes.
    pub pool: Option<&'a str>,
}

impl<'a> EditTarget<'a> {
    /// Finds the execution whose id begins with `text`, and checks that it can be edited.
    ///
    /// # Errors
    ///
    /// As [`execution_ids::resolve`]; [`Conflict::Execution`] unless it is failed at the given attempt number;
    /// [`crate::error::NotFound::ServedPool`] for a pool without workers.
    pub async fn find(
        store: &Store,
        text: &str,
        options: EditOptions<'a>,
    ) -> Result<Self, OperationError> {
        let id = ExecutionId::new(execution_ids::resolve(store, text).await?);
        let (row, attempt) = find_failed(store, id, options.attempt).await?;
        if let Some(pool) = options.pool {
            check_pool(store, pool, options.is_pool_forced).await?;
        }
        let has_verify_task =
            options.requeue && bulk::count_with_verify_task(store, &[id.get()]).await? > 0;
        Ok(Self { row, id, attempt, has_verify_task, options })
    }

    /// Returns the execution's id.
    pub const fn id(&self) -> ExecutionId {
        self.id
    }

    /// Compares the execution with the edit.
    ///
    /// # Errors
    ///
    /// [`Conflict::Other`]: nothing would change.
    pub fn compare(&self, params: &Value) -> Result<Difference<'a>, Conflict> {
        let found = changes(&self.row.params, params);
        let pool = self.options.pool.map(PoolName::as_str).filter(|pool| *pool != self.row.pool);
        if found.is_empty() && pool.is_none() {
            return Err(Conflict::Other("nothing was changed, and nothing was done".to_owned()));
        }
        Ok(Difference { params: found, pool })
    }

    /// Makes the proposal of this edit.
    pub(crate) fn proposal(&self, params: &Value, difference: &Difference<'_>) -> Proposal {
        Proposal::Edit(EditProposal {
            execution: self.id.get(),
            job: self.row.job_name.clone(),
            attempt: self.attempt.get(),
            seen: sha256_hex(self.row.params.to_string().as_bytes()),
            params: params.clone(),
            changes: difference
                .params
                .iter()
                .take(MAX_LISTED_CHANGES)
                .map(ToString::to_string)
                .collect(),
            change_count: difference.params.len(),
            pool: difference.pool.map(str::to_owned),
            requeue: self.options.requeue,
            verify: self.options.verify,
        })
    }

    /// Returns what the edit needs; `None`: nobody else's approval.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn demand(
        &self,
        store: &Store,
        params: &Value,
        difference: &Difference<'_>,
    ) -> Result<Option<ApprovalDemand>, OperationError> {
        gate::preview(store, &self.proposal(params, difference)).await
    }

    /// Returns the schemas of the workers in its new pool.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn schemas(
        &self,
        store: &Store,
        difference: &Difference<'_>,
    ) -> Result<ParamsSchemas, OperationError> {
        let pool = difference.pool.unwrap_or(&self.row.pool);
        ParamsSchemas::load(store, &self.row.task_type, pool).await
    }

    /// Writes the edit and what follows it, with the record in the audit, in one transaction. Returns the number of the bulk that verifies it.
    ///
    /// # Errors
    ///
    /// [`Conflict`] after another operator's change; nothing was written.
    pub(crate) async fn apply(
        &self,
        store: &Store,
        params: &Value,
        difference: &Difference<'_>,
        clearance: Clearance,
        (actor, reason): (&Actor, &str),
    ) -> Result<Option<i64>, OperationError> {
        let then = match self.options {
            EditOptions { requeue: false, .. } => AfterEdit::Stay,
            EditOptions { verify: true, .. } if self.has_verify_task => AfterEdit::Verify,
            _ => AfterEdit::Requeue { unverified: self.has_verify_task },
        };
        let edit = Edit { seen: &self.row.params, params, pool: difference.pool, then };
        let (id, attempt, by) = (self.id, self.attempt, actor.because(Some(reason)));
        let claim = clearance.claim();
        let verifying = match edits::edit(store, id, attempt, edit, claim, by, None).await {
            Ok(verifying) => verifying,
            Err(error) => return Err(conflict(store, error, ExecutionAction::Requeue).await),
        };
        fault::point("console.edited");
        Ok(verifying)
    }
}

/// Parses params: a JSON object that can be stored.
///
/// # Errors
///
/// [`InvalidRequest`] with the place.
pub fn read_params(text: &str) -> Result<Value, InvalidRequest> {
    let invalid =
        |problem: String| InvalidRequest::Other(format!("the params {problem}; nothing was done"));
    exact_json::check(text.as_bytes())
        .map_err(|error| invalid(format!("are not exact: {error}")))?;
    let params: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| invalid(format!("are no JSON object: {error}")))?;
    check(&params).map_err(|error| invalid(error.to_string()))?;
    Ok(Value::Object(params))
}
