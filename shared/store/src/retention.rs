//! Retention: removes old rows, a batch at a time; never a failed execution.
//!
//! Each [`RetentionTarget`] has its own batches of bounded length, and a [`Position`] from which the next one
//! continues; a pass that takes the targets in turn lets none wait for another. A batch is read first, without
//! locks, and removed in one transaction that locks its rows. Rows that another transaction has locked are skipped,
//! and the next pass finds them again.
//!
//! The table `retention` holds the instant up to which executions and gaps were removed, written in the transaction
//! that removes them and before it locks any of them. A removed key could be claimed a second time, so a backfill
//! ([`crate::backfill`]) checks that instant, and shares that row until its commit.
//!
//! The table also holds when a pass ended. An interrupted pass leaves only what it has not reached.

mod audit;
mod executions;
mod heartbeats;
mod incidents;
mod jobs;
mod others;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::connection::client_timeout::WithTimeout;
use crate::{Now, Store, StoreError, bulk, unknown_messages};

pub use audit::MIN_AUDIT_DAYS;

/// How long a caller's own key deduplicates, in days. A finished one-shot job is kept as long, because only its row
/// says that it has run.
pub const OWN_KEY_RETENTION_DAYS: i32 = 400;

/// How long rows are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetentionPolicy {
    /// `RETENTION_DAYS`.
    pub days: i32,
    /// `AUDIT_DAYS`; `None`: for ever.
    pub audit_days: Option<i32>,
}

/// What retention removes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetentionTarget {
    /// Executions that ended, those with a caller's own key excepted.
    Executions,
    /// Executions with a caller's own key, when the key has expired.
    OwnKeys,
    /// All but the key and the outcome of executions with a caller's own key.
    Contents,
    /// Firings without an execution.
    Gaps,
    /// Earlier versions of jobs' schedules.
    Revisions,
    /// Processes that have stopped or vanished.
    Instances,
    /// Unknown messages that are no longer in the queue.
    RawMessages,
    /// Bulks that have ended, with their items and questions.
    Bulks,
    /// Holds of catch-up that have ended.
    Holds,
    /// Ticks of jobs that services guard.
    Ticks,
    /// Incidents that are resolved, with their timelines and notifications.
    Incidents,
    /// Heartbeats, and the addresses of which none is left.
    Heartbeats,
    /// Tokens that are revoked or expired.
    Tokens,
    /// Sessions that have ended or expired.
    Sessions,
    /// Keys of requests to the API.
    RequestKeys,
    /// Requests for approval that have ended or expired.
    ApprovalRequests,
    /// Operators' actions.
    Audit,
    /// Deleted jobs and finished one-shot jobs of which no other row is left.
    Jobs,
}

impl RetentionTarget {
    /// All targets, in the order of their turns.
    pub const ALL: [Self; 18] = [
        Self::Executions,
        Self::OwnKeys,
        Self::Contents,
        Self::Gaps,
        Self::Revisions,
        Self::Instances,
        Self::RawMessages,
        Self::Bulks,
        Self::Holds,
        Self::Ticks,
        Self::Incidents,
        Self::Heartbeats,
        Self::Tokens,
        Self::Sessions,
        Self::RequestKeys,
        Self::ApprovalRequests,
        Self::Audit,
        Self::Jobs,
    ];

    /// For logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Executions => "executions",
            Self::OwnKeys => "own keys",
            Self::Contents => "contents behind own keys",
            Self::Gaps => "gaps",
            Self::Revisions => "revisions of jobs",
            Self::Instances => "instances",
            Self::RawMessages => "unknown messages",
            Self::Bulks => "bulks",
            Self::Holds => "holds",
            Self::Ticks => "ticks of guards",
            Self::Incidents => "incidents",
            Self::Heartbeats => "heartbeats",
            Self::Tokens => "tokens",
            Self::Sessions => "sessions",
            Self::RequestKeys => "keys of requests",
            Self::ApprovalRequests => "requests for approval",
            Self::Audit => "the audit",
            Self::Jobs => "jobs",
        }
    }
}

/// Where the next batch of a target begins; the default: at the target's beginning, or where the previous pass
/// ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    at: Option<DateTime<Utc>>,
    id: Uuid,
    number: i64,
    /// Whether rows were skipped, so that the next pass begins before them.
    left: bool,
}

/// The result of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrunedBatch {
    /// Number of rows removed.
    pub removed: u64,
    /// Number of rows with a caller's own key that were reduced to it.
    pub stripped: u64,
    /// Whether no removable rows are left behind the position.
    pub is_last: bool,
}

/// Returns whether a pass is due: none has ended since `latest`, the last 3:00, or the last one kept rows longer than
/// these terms.
pub async fn is_due(
    store: &Store,
    terms: RetentionPolicy,
    latest: DateTime<Utc>,
) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar!(
        // Compares for inequality rather than order, so that passes continue after the clock was ahead.
        r#"-- retention_due
        SELECT passed_at IS DISTINCT FROM $1 OR $2 < passed_days OR $3 < passed_audit_days AS "due!"
        FROM sexton.retention"#,
        latest,
        terms.days,
        terms.audit_days.unwrap_or(i32::MAX)
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Records that the pass of `latest` has ended.
///
/// # Errors
///
/// [`StoreError`]; the pass is made again.
pub async fn record_pass(
    store: &Store,
    terms: RetentionPolicy,
    latest: DateTime<Utc>,
) -> Result<(), StoreError> {
    let done = sqlx::query!(
        "-- retention_passed
        UPDATE sexton.retention SET passed_at = $1, passed_days = $2, passed_audit_days = $3",
        latest,
        terms.days,
        terms.audit_days.unwrap_or(i32::MAX)
    )
    .execute(store.with_timeout())
    .await?;
    check_one_row(done.rows_affected())
}

fn check_one_row(rows: u64) -> Result<(), StoreError> {
    let value = format!("{rows} rows");
    if rows == 1 { Ok(()) } else { Err(StoreError::Inconsistent { place: "retention", value }) }
}

/// Removes the next rows of a target behind `position`, at most `limit`, not counting dependent rows, and moves the
/// position. After an error nothing of the batch was removed, unless the answer was lost, and the position is
/// unchanged.
///
/// # Errors
///
/// [`StoreError`]; after [`StoreError::TooSlow`] a smaller batch may succeed.
pub async fn prune_batch(
    store: &Store,
    thing: RetentionTarget,
    position: &mut Position,
    terms: RetentionPolicy,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let days = terms.days;
    match thing {
        RetentionTarget::Executions => {
            executions::remove(store, false, position, days, limit, now).await
        }
        RetentionTarget::OwnKeys => {
            executions::remove(store, true, position, days, limit, now).await
        }
        RetentionTarget::Contents => executions::strip(store, position, days, limit, now).await,
        RetentionTarget::Gaps => others::gaps(store, position, days, limit, now).await,
        RetentionTarget::Revisions => others::revisions(store, position, days, limit, now).await,
        RetentionTarget::Instances => others::instances(store, position, days, limit, now).await,
        RetentionTarget::RawMessages => {
            let removed = unknown_messages::prune(store, days, limit, now).await?;
            Ok(PrunedBatch { removed, is_last: removed < limit.unsigned_abs(), stripped: 0 })
        }
        RetentionTarget::Bulks => {
            let removed = bulk::prune(store, days, limit, now).await?;
            Ok(PrunedBatch { removed, is_last: removed == 0, stripped: 0 })
        }
        RetentionTarget::Holds => others::holds(store, days, limit, now).await,
        RetentionTarget::Ticks => others::ticks(store, days, limit, now).await,
        RetentionTarget::Incidents => incidents::remove(store, days, limit, now).await,
        RetentionTarget::Heartbeats => heartbeats::remove(store, position, days, limit, now).await,
        RetentionTarget::Tokens => others::tokens(store, days, limit, now).await,
        RetentionTarget::Sessions => others::sessions(store, days, limit, now).await,
        RetentionTarget::RequestKeys => others::request_keys(store, limit, now).await,
        RetentionTarget::ApprovalRequests => {
            others::approval_requests(store, days, limit, now).await
        }
        RetentionTarget::Audit => audit::forget(store, terms.audit_days, limit, now).await,
        RetentionTarget::Jobs => jobs::remove(store, position, days, limit, now).await,
    }
}

/// Returns the database's time, or the given one.
async fn read_now(store: &Store, now: Now) -> Result<DateTime<Utc>, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- retention_present
        SELECT coalesce($1, now()) AS "now!""#,
        now
    )
    .fetch_one(store.with_timeout())
    .await?)
}

fn days_before(now: DateTime<Utc>, days: i32) -> DateTime<Utc> {
    now - chrono::Duration::days(i64::from(days))
}

/// Records that executions and gaps from before `cut` may be removed, and blocks backfills until the commit.
async fn fence(connection: &mut PgConnection, cut: DateTime<Utc>) -> Result<(), StoreError> {
    let done = sqlx::query!(
        "-- retention_fence
        UPDATE sexton.retention SET pruned_before = greatest(pruned_before, $1)",
        cut
    )
    .execute(WithTimeout(connection))
    .await?;
    check_one_row(done.rows_affected())
}
