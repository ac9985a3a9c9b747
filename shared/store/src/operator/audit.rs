//! The audit: who did what, when, why, and what it changed. Append-only, and written in the transaction of the
//! action, so that neither exists without the other.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::error::DatabaseError;
use uuid::Uuid;

use super::AuditContext;
use crate::connection::client_timeout::WithTimeout;
use crate::notifications::{CHANNEL, Notification};
use crate::{Store, StoreError};

/// A row of `operator_actions`; the fields are named after the columns.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OperatorAction {
    pub id: i64,
    pub at: DateTime<Utc>,
    pub actor: String,
    pub action: String,
    pub job_id: Option<Uuid>,
    pub execution_id: Option<Uuid>,
    pub reason: Option<String>,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub from_where: Option<String>,
    pub from_address: Option<String>,
    pub bulk_id: Option<i64>,
}

/// An action to record.
#[derive(Debug)]
pub(crate) struct NewAction {
    pub(crate) action: &'static str,
    pub(crate) job_id: Uuid,
    pub(crate) execution_id: Option<Uuid>,
    pub(crate) reason: Option<String>,
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
}

/// Records actions in the caller's transaction, in one statement.
pub(crate) async fn record_actions(
    connection: &mut PgConnection,
    actor: &str,
    actions: &[NewAction],
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    record_bulk_actions(connection, actor, None, actions, at).await
}

/// Records a bulk's actions.
pub(crate) async fn record_bulk_actions(
    connection: &mut PgConnection,
    actor: &str,
    bulk: Option<i64>,
    actions: &[NewAction],
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    let names: Vec<String> = actions.iter().map(|action| action.action.to_owned()).collect();
    let jobs: Vec<Uuid> = actions.iter().map(|action| action.job_id).collect();
    let executions: Vec<Option<Uuid>> = actions.iter().map(|action| action.execution_id).collect();
    let reasons: Vec<Option<String>> = actions.iter().map(|action| action.reason.clone()).collect();
    let before: Vec<Option<Value>> = actions.iter().map(|action| action.before.clone()).collect();
    let after: Vec<Option<Value>> = actions.iter().map(|action| action.after.clone()).collect();
    sqlx::query!(
        "-- record_operator_actions
        INSERT INTO sexton.operator_actions (at, actor, bulk_id, action, job_id, execution_id, reason, before, after)
        SELECT $1, $2, $3, d.*
        FROM unnest($4::text[], $5::uuid[], $6::uuid[], $7::text[], $8::jsonb[], $9::jsonb[]) AS d",
        at,
        actor,
        bulk,
        &names,
        &jobs,
        &executions as &[Option<Uuid>],
        &reasons as &[Option<String>],
        &before as &[Option<Value>],
        &after as &[Option<Value>]
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// Records one action on something that belongs to no job, such as a token or a channel, in the caller's transaction.
pub(crate) async fn record_jobless_action(
    connection: &mut PgConnection,
    action: &str,
    (before, after): (Option<Value>, Option<Value>),
    by: AuditContext<'_>,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- record_jobless_action
        INSERT INTO sexton.operator_actions (at, actor, action, reason, before, after) VALUES ($1, $2, $3, $4, $5, $6)",
        at,
        by.actor,
        action,
        by.reason,
        before,
        after
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// Wakes schedulers and workers when the caller's transaction commits.
pub(crate) async fn notify(
    connection: &mut PgConnection,
    wake: Notification,
) -> Result<(), StoreError> {
    sqlx::query!("-- wake\nSELECT pg_notify($1, $2)", CHANNEL, wake.as_str())
        .execute(WithTimeout(connection))
        .await?;
    Ok(())
}

/// Limits how long the caller's transaction waits for a lock.
pub(crate) async fn set_lock_timeout(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("SET LOCAL lock_timeout = '5s'").execute(WithTimeout(connection)).await?;
    Ok(())
}

/// Returns whether a statement failed because another transaction kept a lock for too long.
pub(crate) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(DatabaseError::code).is_some_and(|code| code == "55P03")
}

/// Returns the actions on an execution, oldest first.
pub async fn list_by_execution(store: &Store, id: Uuid) -> Result<Vec<OperatorAction>, StoreError> {
    Ok(sqlx::query_as!(
        OperatorAction,
        "-- actions_of_execution
        SELECT id, at, actor, action, job_id, execution_id, reason, before, after, from_where,
               host(from_address) AS from_address, bulk_id
        FROM sexton.operator_actions WHERE execution_id = $1 ORDER BY id LIMIT 1000",
        id
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns the actions on a job, newest first: neither those on its executions, nor what was enqueued.
pub async fn list_by_job(
    store: &Store,
    id: Uuid,
    limit: i64,
) -> Result<Vec<OperatorAction>, StoreError> {
    Ok(sqlx::query_file_as!(OperatorAction, "src/operator/actions_of_job.sql", id, limit)
        .fetch_all(store.with_timeout())
        .await?)
}
