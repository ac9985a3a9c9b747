//! A command's answer about an item: whether its effect has happened.
//!
//! The command runs on the operator's machine; only its answer arrives here. One transaction for each: the item is
//! locked, and the answer counts only if the item has none yet. So the asking command may die at any time: questions
//! without a recorded answer get another run of the command.

use serde_json::{Value, json};
use sexton_model::id::ExecutionId;
use sexton_model::verify_task::VerifyAnswer;

use crate::attempts::open::parse_attempt_number;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::notifications::Notification;
use crate::operator::{AuditContext, NewAction, notify, record_bulk_actions, transitions};
use crate::{Now, Store, StoreError};

/// Records an answer; returns whether it counted: `false` if the item has an answer already, or the bulk was stopped.
/// `seen_params` are the params that the command saw: the answer does not cover others, and the execution is left. A
/// resolution by the answer is the action of `by`, who ran the command, for that person's reason or else the bulk's.
pub async fn record_answer(
    store: &Store,
    bulk: i64,
    ordinal: i64,
    answer: &VerifyAnswer,
    seen_params: &Value,
    by: AuditContext<'_>,
    now: Now,
) -> Result<bool, StoreError> {
    let mut tx = store.begin().await?;
    // The bulk first, as a batch does, so that one transaction at a time changes its counts.
    let row = sqlx::query!(
        r#"-- lock_unasked_item
        SELECT b.reason, i.execution_id, i.seen, coalesce($3, clock_timestamp()) AS "now!",
               (SELECT e.params <> $4 FROM sexton.executions e WHERE e.id = i.execution_id) AS edited
        FROM sexton.bulks b JOIN sexton.bulk_items i ON i.bulk_id = b.id
        WHERE b.id = $1 AND b.state IN ('preparing', 'running') AND i.ordinal = $2
          AND i.state = 'unasked' FOR NO KEY UPDATE OF b, i"#,
        bulk,
        ordinal,
        now,
        seen_params
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    let Some(row) = row else { return Ok(false) };
    let (state, note) = match answer {
        VerifyAnswer::Happened | VerifyAnswer::NotYet if row.edited == Some(true) => {
            ("left", Some("its params were changed while the command was asked".to_owned()))
        }
        VerifyAnswer::NotYet => ("waiting", None),
        VerifyAnswer::Unknown(why) => ("left", Some(why.clone())),
        VerifyAnswer::Happened => {
            let seen = (ExecutionId::new(row.execution_id), parse_attempt_number(row.seen)?);
            let moved = transitions::resolve(&mut tx, &[seen], row.now).await?;
            if moved.is_empty() {
                ("refused", Some("it was not failed any more, or failed once more".to_owned()))
            } else {
                let job = sqlx::query_scalar!(
                    "-- job_of_item\nSELECT job_id FROM sexton.executions WHERE id = $1",
                    row.execution_id
                )
                .fetch_one(WithTimeout(&mut *tx))
                .await?;
                let action = NewAction {
                    action: "resolve",
                    job_id: job,
                    execution_id: Some(row.execution_id),
                    reason: by.reason.map(str::to_owned).or(row.reason),
                    before: Some(json!({"state": "failed", "attempt": row.seen})),
                    after: Some(json!({"state": "succeeded", "outcome": "verified"})),
                };
                record_bulk_actions(&mut tx, by.actor, Some(bulk), &[action], row.now).await?;
                ("resolved", None)
            }
        }
    };
    sqlx::query!(
        "-- judge_item
        WITH i AS (
            UPDATE sexton.bulk_items SET state = $3, note = $4 WHERE bulk_id = $1 AND ordinal = $2)
        UPDATE sexton.bulks SET resolved = resolved + ($3 = 'resolved')::int,
            refused = refused + ($3 = 'refused')::int, left_alone = left_alone + ($3 = 'left')::int
        WHERE id = $1",
        bulk,
        ordinal,
        state,
        note
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    notify(&mut tx, Notification::Bulk).await?;
    commit(tx).await?;
    Ok(true)
}
