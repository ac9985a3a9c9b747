//! Counts matches that a filter leaves out because their groups are muted.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::failures::FailureFilter;

use super::search::SearchQuery;
use super::statements;
use crate::filter_values::begin_with_custom_plans;
use crate::{Store, StoreError};

/// Maximum number of muted groups that are counted.
const MAX_MUTED_GROUPS: i64 = 1_000;

/// Executions that match a filter, except that their groups are muted.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MutedMatches {
    /// Number of executions counted.
    pub count: u64,
    /// Whether there may be more; the groups then cover only those counted.
    pub more: bool,
    /// Number of executions of each group, by its fingerprint, the largest first.
    pub groups: Vec<(String, u64)>,
}

/// Counts the executions that `filter` leaves out among those that had failed by `until` (`None`: until now), up to
/// `limit`.
///
/// # Errors
///
/// As [`super::search()`].
pub async fn count_muted(
    store: &Store,
    filter: &FailureFilter,
    until: Option<DateTime<Utc>>,
    limit: u64,
) -> Result<MutedMatches, StoreError> {
    if !filter.excludes_muted() {
        return Ok(MutedMatches::default());
    }
    // The statement names the fingerprints, so that the planner knows how rare they are and does not walk through all
    // failures.
    let muted = muted_fingerprints(store).await?;
    if muted.is_empty() {
        return Ok(MutedMatches::default());
    }
    let with_muted = FailureFilter { muted: true, ..filter.clone() };
    let terms = SearchQuery::of(store, &with_muted, None, limit as i64).await?;
    let mut tx = begin_with_custom_plans(store).await?;
    let groups = statements::count_by_group(&mut tx, &terms, &muted, until).await?;
    let count: u64 = groups.iter().map(|(_, count)| count).sum();
    let more = count >= limit || muted.len() as i64 >= MAX_MUTED_GROUPS;
    Ok(MutedMatches { count, more, groups })
}

async fn muted_fingerprints(store: &Store) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- muted_fingerprints
        SELECT fingerprint FROM sexton.failure_groups WHERE state = 'muted' ORDER BY fingerprint LIMIT $1",
        MAX_MUTED_GROUPS
    )
    .fetch_all(store.with_timeout())
    .await?)
}
