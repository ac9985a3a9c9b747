//! Retention: what is old goes, a portion at a time; what failed never does.
//!
//! Each [`RetentionTarget`] has portions of its own, each of bounded length, and a [`Position`] behind which the next one goes
//! on; so a pass that takes them in turn lets none wait for another. A portion is read first, without a lock on anything,
//! and what can go is locked and removed in one transaction. What somebody else has locked is passed over, and found
//! again by the next pass.
//!
//! Up to where executions and gaps were removed stands in `retention`, written in the transaction that removes them
//! and before it locks any of them. A key that is gone could be claimed a second time, so a backfill
//! ([`crate::backfill`]) asks there, and shares that row until its commit.
//!
//! There, too, stands when a pass came to its end. A pass that broke off leaves nothing behind but what it has not
//! reached.

mod audit;
mod executions;
mod jobs;
mod others;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::client_timeout::WithTimeout;
use crate::{Now, Store, StoreError, bulk, unknown_messages};

pub use audit::MIN_AUDIT_DAYS;

/// For how long a caller's own key deduplicates, in days. So long a one-shot job that is over is kept as well, since
/// nothing but its row says that it has run.
pub const OWN_KEY_RETENTION_DAYS: i32 = 400;

/// For how long things are kept.
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
    /// Executions with a caller's own key, when the key's time is over.
    OwnKeys,
    /// All but the key and the outcome of executions with a caller's own key.
    Contents,
    /// Firings that no execution stands for.
    Gaps,
    /// What schedules were before they were changed.
    Revisions,
    /// Processes that are gone.
    Instances,
    /// Messages that no row knows, and that are in the queue no more.
    RawMessages,
    /// Bulks that have ended, with their items and questions.
    Bulks,
    /// Holds of catch-up that have ended.
    Holds,
    /// What operators did.
    Audit,
    /// Jobs that were deleted, and one-shot jobs that are over, when nothing is left of them.
    Jobs,
}

impl RetentionTarget {
    /// All of them, in the order of their turns.
    pub const ALL: [Self; 11] = [
        Self::Executions,
        Self::OwnKeys,
        Self::Contents,
        Self::Gaps,
        Self::Revisions,
        Self::Instances,
        Self::RawMessages,
        Self::Bulks,
        Self::Holds,
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
            Self::Audit => "the audit",
            Self::Jobs => "jobs",
        }
    }
}

/// Where the next portion of a thing begins; the default: at its beginning, or where the pass before came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    at: Option<DateTime<Utc>>,
    id: Uuid,
    number: i64,
    /// Something was passed over, so the next pass begins before it.
    left: bool,
}

/// What a portion did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrunedBatch {
    /// Rows that went.
    pub removed: u64,
    /// Rows with a caller's own key that were stripped to it.
    pub stripped: u64,
    /// Nothing is left behind the position that could go.
    pub is_last: bool,
}

/// Whether a pass is due: none has come to its end since `latest`, the last 3:00, or the last one kept things for
/// longer than these terms.
pub async fn is_due(
    store: &Store,
    terms: RetentionPolicy,
    latest: DateTime<Utc>,
) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar!(
        // Not "before": after a clock that was ahead, passes go on.
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

/// Notes that the pass of `latest` has come to its end.
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

/// Removes the next of a thing behind `position`, at most `most` rows, those that go with them not counted, and moves
/// the position on. After an error nothing of the portion was removed, unless its answer was lost, and the position is
/// where it was.
///
/// # Errors
///
/// [`StoreError`]; with [`StoreError::TooSlow`] a smaller portion may do.
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
        RetentionTarget::Audit => {
            audit::forget(store, position, terms.audit_days, limit, now).await
        }
        RetentionTarget::Jobs => jobs::remove(store, position, days, limit, now).await,
    }
}

/// The database's present, or the given one.
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

/// Says that executions and gaps of before `cut` may be gone, and keeps backfills waiting until the commit.
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
