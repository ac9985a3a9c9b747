//! Creates a bulk: one transaction, after which the schedulers carry it out.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::bulk::{BulkKind, BulkState};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::rate::Rate;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::approved::{Claim, end_carried_out};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::notifications::Notification;
use crate::operator::transitions::UNVERIFIED;
use crate::operator::{AuditContext, notify};
use crate::{Store, StoreError};

/// [`NewBulk::verify`]: the jobs' verify tasks answer.
pub const VERIFY_BY_TASK: &str = "task";
/// [`NewBulk::verify`]: a command on an operator's machine answers.
pub const VERIFY_BY_COMMAND: &str = "command";
/// [`NewBulk::verify`]: nobody answers, although jobs may have a verify task.
pub const VERIFY_BY_NOBODY: &str = "none";

/// The executions that a bulk selects.
#[derive(Clone, PartialEq, Debug)]
pub enum BulkSelector<'a> {
    /// All that match this filter, and had ended by the preview.
    Filter(&'a Value),
    /// These, at these attempt numbers; at most 1,000.
    Ids(&'a [(ExecutionId, AttemptNumber)]),
    /// The executions on which another bulk acted.
    Bulk(i64),
}

/// A bulk to create.
#[derive(Clone, PartialEq, Debug)]
pub struct NewBulk<'a> {
    /// The action.
    pub kind: BulkKind,
    /// The executions.
    pub selector: BulkSelector<'a>,
    /// When the operator looked, by the database's clock: executions that ended later are not selected.
    pub previewed_at: DateTime<Utc>,
    /// How many per time; `None`: as fast as the tickets are published.
    pub rate: Option<Rate>,
    /// Size of the canary, 1 to 1,000: the other items wait until it has ended well.
    pub canary: Option<u32>,
    /// The pool for the executions; `None`: each its own.
    pub pool: Option<&'a str>,
    /// `task` or `command`: who first checks whether the effect has happened; `none`: no check although jobs have a
    /// verify task, which the audit records.
    pub verify: Option<&'a str>,
}

impl<'a> NewBulk<'a> {
    /// Makes a bulk that requeues these executions, each after the verify task of its job.
    pub const fn verifying(
        seen: &'a [(ExecutionId, AttemptNumber)],
        previewed_at: DateTime<Utc>,
    ) -> Self {
        Self {
            kind: BulkKind::Requeue,
            selector: BulkSelector::Ids(seen),
            previewed_at,
            rate: None,
            canary: None,
            pool: None,
            verify: Some(VERIFY_BY_TASK),
        }
    }
}

impl BulkSelector<'_> {
    fn to_json(&self) -> Value {
        match self {
            Self::Filter(filter) => json!({"filter": filter}),
            Self::Ids(ids) => json!({"ids": ids.len()}),
            Self::Bulk(id) => json!({"bulk": id}),
        }
    }
}

/// Writes the bulk and its operator. Returns its id. A crash before the commit leaves nothing; after it the
/// schedulers carry the bulk out, whether or not anybody watches.
///
/// # Errors
///
/// Those of the database: whether the bulk was created is then unknown; `bulks` has it, or not.
pub async fn create(
    store: &Store,
    bulk: &NewBulk<'_>,
    by: AuditContext<'_>,
) -> Result<i64, StoreError> {
    create_with(store, bulk, None, by).await
}

/// Like [`create`]; with a claim it also ends that request for approval.
///
/// # Errors
///
/// As [`create`].
pub async fn create_with(
    store: &Store,
    bulk: &NewBulk<'_>,
    claim: Option<Claim>,
    by: AuditContext<'_>,
) -> Result<i64, StoreError> {
    let mut tx = store.begin().await?;
    let inserted = insert(&mut tx, bulk, by).await?;
    if let Some(claim) = claim {
        let outcome = outcome(inserted.id, bulk.verify);
        end_carried_out(&mut tx, claim, Some(inserted.id), &outcome, inserted.created_at).await?;
    }
    commit(tx).await?;
    Ok(inserted.id)
}

/// What a request for approval became.
fn outcome(id: i64, verify: Option<&str>) -> String {
    if verify == Some(VERIFY_BY_COMMAND) {
        // Its answers come from the operator's machine.
        return format!("bulk {id} waits for `sexton bulks verify {id} COMMAND`");
    }
    format!("bulk {id} carries it out")
}

/// A bulk that was inserted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InsertedBulk {
    /// Its number.
    pub(crate) id: i64,
    created_at: DateTime<Utc>,
}

/// Inserts the bulk, its items and its record in the audit in a transaction of the caller's.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    bulk: &NewBulk<'_>,
    by: AuditContext<'_>,
) -> Result<InsertedBulk, StoreError> {
    let selector = bulk.selector.to_json();
    let state = match bulk.selector {
        BulkSelector::Ids(_) => BulkState::Running,
        BulkSelector::Filter(_) | BulkSelector::Bulk(_) => BulkState::Preparing,
    };
    let rate = bulk.rate.map(|rate| rate.to_string());
    let row = sqlx::query!(
        r#"-- create_bulk
        INSERT INTO sexton.bulks (kind, selector, previewed_at, actor, reason, rate, canary, pool, verify, state,
                           created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now()) RETURNING id, created_at"#,
        bulk.kind.as_str(),
        selector,
        bulk.previewed_at,
        by.actor,
        by.reason,
        rate,
        bulk.canary.map(|canary| canary as i32),
        bulk.pool,
        bulk.verify.filter(|verify| *verify != UNVERIFIED),
        state.as_str()
    )
    .fetch_one(WithTimeout(&mut *connection))
    .await?;
    if let BulkSelector::Ids(ids) = bulk.selector {
        let (ids, seen): (Vec<Uuid>, Vec<i32>) =
            ids.iter().map(|(id, attempt)| (id.get(), attempt.get())).unzip();
        sqlx::query!(
            "-- items_of_ids
            WITH i AS (
                INSERT INTO sexton.bulk_items (bulk_id, ordinal, execution_id, seen, state)
                SELECT $1, n, id, seen, $4
                FROM unnest($2::uuid[], $3::int[]) WITH ORDINALITY AS s (id, seen, n) RETURNING 1)
            UPDATE sexton.bulks SET selected = (SELECT count(*) FROM i), prepared_at = now() WHERE id = $1",
            row.id,
            &ids,
            &seen,
            initial_item_state(bulk.verify)
        )
        .execute(WithTimeout(&mut *connection))
        .await?;
    }
    let after = json!({
        "bulk": row.id, "kind": bulk.kind.as_str(), "asked": selector, "rate": rate,
        "canary": bulk.canary, "pool": bulk.pool, "verify": bulk.verify,
    });
    sqlx::query!(
        "-- record_bulk
        INSERT INTO sexton.operator_actions (at, actor, action, reason, after, bulk_id)
        VALUES ($1, $2, 'bulk', $3, $4, $5)",
        row.created_at,
        by.actor,
        by.reason,
        after,
        row.id
    )
    .execute(WithTimeout(&mut *connection))
    .await?;
    notify(connection, Notification::Bulk).await?;
    Ok(InsertedBulk { id: row.id, created_at: row.created_at })
}

/// Returns the state in which an item begins.
pub(super) fn initial_item_state(verify: Option<&str>) -> &'static str {
    if matches!(verify, Some(VERIFY_BY_COMMAND | VERIFY_BY_TASK)) { "unasked" } else { "waiting" }
}
