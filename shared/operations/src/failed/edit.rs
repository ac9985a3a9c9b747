//! Other params or another pool for a failed execution.
//!
//! [`EditTarget::find`] says what may be edited, [`EditTarget::compare`] what would change, and [`EditTarget::apply`]
//! writes it if nobody else has edited the execution meanwhile.

use serde_json::{Map, Value};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::params::check;
use sexton_model::pool::PoolName;
use sexton_service::fault;
use sexton_store::executions::Execution;
use sexton_store::operator;
use sexton_store::{Store, bulk};

use super::actions::{check_pool, conflict, find_failed};
use super::changes::{Change, changes};
use crate::actor::Actor;
use crate::error::{Conflict, ExecutionAction, InvalidRequest, OperationError};
use crate::execution_ids;
use crate::params_schemas::ParamsSchemas;

/// How an execution is to be edited, beside its params.
#[derive(Clone, Copy, Debug)]
pub struct EditOptions<'a> {
    /// The pool it is to have; `None`: the same.
    pub pool: Option<&'a PoolName>,
    /// That pool though no worker consumes from it.
    pub is_pool_forced: bool,
    /// Only if this attempt is still the next.
    pub attempt: Option<AttemptNumber>,
    /// Whether it runs again at once.
    pub requeue: bool,
    /// Whether its job's verify task is asked before it does.
    pub verify: bool,
}

/// A failed execution that is to be edited.
#[derive(Debug)]
pub struct EditTarget<'a> {
    /// The row as the operator sees it.
    pub row: Execution,
    id: ExecutionId,
    attempt: AttemptNumber,
    has_verify_task: bool,
    options: EditOptions<'a>,
}

/// What an edit changes.
#[derive(Debug)]
pub struct Difference<'a> {
    /// The params, place by place.
    pub params: Vec<Change>,
    /// The pool, if it is another one.
    pub pool: Option<&'a str>,
}

/// What became of an edited execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edited {
    /// It is edited, and requeued if that was wanted.
    Done,
    /// It is edited; before it runs its job's verify task is to be asked, with
    /// [`crate::bulks::verified_requeue::requeue`].
    ToVerify {
        /// The execution.
        id: ExecutionId,
        /// Its attempt number.
        attempt: AttemptNumber,
    },
}

impl<'a> EditTarget<'a> {
    /// Finds the execution whose id begins with `text`, and checks that it can be edited so.
    ///
    /// # Errors
    ///
    /// As [`execution_ids::resolve`]; [`Conflict::Execution`] unless it is failed at the attempt that was seen;
    /// [`crate::error::NotFound::ServedPool`] for a pool that no worker consumes from.
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

    /// The execution's id.
    pub const fn id(&self) -> ExecutionId {
        self.id
    }

    /// What would change.
    ///
    /// # Errors
    ///
    /// [`Conflict::Other`]: nothing.
    pub fn compare(&self, params: &Value) -> Result<Difference<'a>, Conflict> {
        let found = changes(&self.row.params, params);
        let pool = self.options.pool.map(PoolName::as_str).filter(|pool| *pool != self.row.pool);
        if found.is_empty() && pool.is_none() {
            return Err(Conflict::Other("nothing was changed, and nothing was done".to_owned()));
        }
        Ok(Difference { params: found, pool })
    }

    /// What workers of the pool that it will have say of the params.
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

    /// Writes the edit, with its record in the audit, in one transaction.
    ///
    /// # Errors
    ///
    /// [`Conflict`] when somebody else was faster; nothing was written then.
    pub async fn apply(
        &self,
        store: &Store,
        params: &Value,
        difference: &Difference<'_>,
        (actor, reason): (&Actor, &str),
    ) -> Result<Edited, OperationError> {
        // Its verify task is asked before it runs again: the edit alone is done here.
        let is_verified = self.has_verify_task && self.options.verify;
        let edit = operator::Edit {
            seen: &self.row.params,
            params,
            pool: difference.pool,
            requeue: self.options.requeue && !is_verified,
            unverified: self.has_verify_task && !is_verified,
        };
        let (id, attempt, by) = (self.id, self.attempt, actor.because(Some(reason)));
        if let Err(error) = operator::edit(store, id, attempt, edit, by, None).await {
            return Err(conflict(store, error, ExecutionAction::Requeue).await);
        }
        fault::point("console.edited");
        Ok(if is_verified { Edited::ToVerify { id, attempt } } else { Edited::Done })
    }
}

/// Reads params: a JSON object that can be stored.
///
/// # Errors
///
/// [`InvalidRequest`] with the place.
pub fn read_params(text: &str) -> Result<Value, InvalidRequest> {
    let params: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        InvalidRequest::Other(format!("the params are no JSON object: {error}; nothing was done"))
    })?;
    check(&params)
        .map_err(|error| InvalidRequest::Other(format!("the params {error}; nothing was done")))?;
    Ok(Value::Object(params))
}
