//! Groups of failures, counted.
//!
//! Each statement reads the counts and the pending changes from one snapshot, so a group's count equals its number of
//! failed executions at any time.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sexton_model::failures::{GroupDecision, GroupState};
use sexton_model::fingerprint::pattern;
use uuid::Uuid;

use crate::error::parse_column;
use crate::{Now, Store, StoreError};

/// Number of hours in a trend.
pub const TREND_HOURS: usize = 24;

/// A group of failures.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Group {
    /// The fingerprint of all its failures.
    pub fingerprint: String,
    /// Class of the error; empty: none, or not known any more.
    pub error_class: String,
    /// The message with placeholders; empty: none, or not known any more.
    pub pattern: String,
    /// Its state.
    pub state: GroupState,
    /// The operators' note.
    pub note: Option<String>,
    /// The operator who decided last.
    pub decided_by: Option<String>,
    /// When that was.
    pub decided_at: Option<DateTime<Utc>>,
    /// Number of its failed executions.
    pub standing: i64,
    /// Number of their jobs.
    pub jobs: i64,
    /// When the first failed.
    pub first_seen: Option<DateTime<Utc>>,
    /// When the last failed.
    pub last_seen: Option<DateTime<Utc>>,
    /// One of its executions, which may have been requeued since.
    pub example: Option<Uuid>,
}

/// A filter for groups; a group must meet every condition that is set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupFilter {
    /// Groups with failed executions of this job.
    pub job: Option<Uuid>,
    /// Groups in this state.
    pub state: Option<GroupState>,
    /// Only this group.
    pub fingerprint: Option<String>,
    /// Also groups without failed executions.
    pub empty: bool,
}

/// The order of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum GroupOrder {
    /// Most failed executions first.
    #[default]
    Count,
    /// Last failure first.
    Last,
    /// Newest group first.
    First,
}

impl GroupOrder {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Last => "last",
            Self::First => "first",
        }
    }
}

/// The position of a group in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupPosition {
    /// Number of its failed executions.
    pub standing: i64,
    /// When its first or last execution failed, whichever orders the list.
    pub at: Option<DateTime<Utc>>,
    /// Its fingerprint.
    pub fingerprint: String,
}

/// Lists groups behind `after`; at most `limit`, up to 1,000 and one more. With a job, only its executions are counted.
pub async fn list_groups(
    store: &Store,
    filter: &GroupFilter,
    order: GroupOrder,
    after: Option<&GroupPosition>,
    limit: i64,
) -> Result<Vec<Group>, StoreError> {
    let rows = sqlx::query_file!(
        "src/failures/groups.sql",
        filter.job,
        filter.state.map(GroupState::as_str),
        filter.fingerprint.as_deref(),
        filter.empty,
        order.as_str(),
        limit,
        after.map(|after| after.standing),
        after.and_then(|after| after.at),
        after.map(|after| after.fingerprint.as_str())
    )
    .fetch_all(store.with_timeout())
    .await?;
    rows.into_iter()
        .map(|row| {
            let decision =
                parse_column("failure_groups.state", &row.decision, GroupDecision::parse)?;
            Ok(Group {
                fingerprint: row.fingerprint,
                error_class: row.error_class.unwrap_or_default(),
                pattern: row.pattern.or(row.message.as_deref().map(pattern)).unwrap_or_default(),
                state: decision.group_state(row.decided_at, row.last_seen),
                note: row.note,
                decided_by: row.decided_by,
                decided_at: row.decided_at,
                standing: row.standing,
                jobs: row.jobs,
                first_seen: row.first_seen,
                last_seen: row.last_seen,
                example: row.example,
            })
        })
        .collect()
}

/// Returns how many executions of each group failed in each of the last [`TREND_HOURS`] hours, the oldest first; the
/// last is the current hour.
pub async fn trends(
    store: &Store,
    fingerprints: &[String],
    now: Now,
) -> Result<HashMap<String, [u64; TREND_HOURS]>, StoreError> {
    let rows = sqlx::query!(
        r#"-- failure_trends
        SELECT fingerprint AS "fingerprint!", sum(failed)::bigint AS "failed!",
               (extract(epoch FROM date_trunc('hour', coalesce($2, now()), 'UTC') - hour) / 3600)::int
                   AS "ago!"
        FROM (
            SELECT fingerprint, hour, failed FROM sexton.failure_hours WHERE fingerprint = ANY ($1)
              AND hour > date_trunc('hour', coalesce($2, now()), 'UTC') - interval '24 hours'
            UNION ALL
            SELECT fingerprint, date_trunc('hour', failed_at, 'UTC'), 1 FROM sexton.failure_changes
            WHERE fingerprint = ANY ($1)
              AND failed_at >= date_trunc('hour', coalesce($2, now()), 'UTC') - interval '23 hours') h
        GROUP BY 1, 3"#,
        fingerprints,
        now
    )
    .fetch_all(store.with_timeout())
    .await?;
    let mut trends: HashMap<String, [u64; TREND_HOURS]> = HashMap::new();
    for row in rows {
        let place =
            usize::try_from(row.ago).ok().and_then(|ago| (TREND_HOURS - 1).checked_sub(ago));
        if let Some(place) = place {
            trends.entry(row.fingerprint).or_default()[place] += row.failed.max(0) as u64;
        }
    }
    Ok(trends)
}

/// Returns the fingerprints of groups that begin with `prefix`, in their order; at most `limit`.
pub async fn known_fingerprints(
    store: &Store,
    prefix: &str,
    limit: i64,
) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- known_fingerprints
        SELECT fingerprint AS "fingerprint!" FROM (
            SELECT fingerprint FROM sexton.failure_groups UNION SELECT fingerprint FROM sexton.failure_changes) f
        WHERE left(fingerprint, length($1)) = $1 ORDER BY fingerprint LIMIT $2"#,
        prefix,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}
