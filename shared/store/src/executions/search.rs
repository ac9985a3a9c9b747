//! Finds executions that match a filter, page by page.
//!
//! Rows are walked in the order of their claims, of one job by `executions_of_job`, of all by the primary key. Other
//! conditions have no index: each would cost every claim and every end a write. Instead a page looks at no more than
//! [`MAX_WALKED_EXECUTIONS`] rows, and may end before it is full, with the position from which the next one
//! continues. If only executions under way, or only failed ones, are wanted and there are few, all of them are read by
//! their own index.
//!
//! Statements are planned each time with their values, so that unused conditions are not in the plan.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::id::JobId;
use sexton_model::state::State;
use sqlx::PgConnection;
use uuid::Uuid;

use super::statements::{FewStates, are_few, list_few, select_cancellable, walk_all, walk_job};
use super::{Execution, list_by_ids};
use crate::filter_values::{begin_with_custom_plans, find_jobs, search_words};
use crate::{Store, StoreError};

/// Maximum number of rows of one page.
pub const MAX_PAGE: i64 = 1_000;
/// Maximum number of rows that a page looks at.
pub const MAX_WALKED_EXECUTIONS: i64 = 200_000;
/// The same for pages of a browser, whose readers wait a tenth of a second and no longer.
pub const MAX_BRIEFLY_WALKED_EXECUTIONS: i64 = WALK_ROWS;
/// Number of rows that one statement looks at.
const WALK_ROWS: i64 = 10_000;

/// The position of an execution in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExecutionPosition {
    /// `executions.claimed_at`.
    pub claimed_at: DateTime<Utc>,
    /// The execution.
    pub id: Uuid,
}

/// A page of executions.
#[derive(Clone, PartialEq, Debug)]
pub struct ExecutionPage {
    /// The matches, the latest claim first.
    pub executions: Vec<Execution>,
    /// The position behind which the next page begins; `None`: nothing is left.
    pub next: Option<ExecutionPosition>,
    /// Whether the page ended because it had looked at as many rows as it may.
    pub is_cut_short: bool,
}

/// Returns the next executions that match `filter`, after `after`, the latest claim first; at most `limit`, up to
/// [`MAX_PAGE`]. Looks at about `most_walked` rows, up to [`MAX_WALKED_EXECUTIONS`].
///
/// # Errors
///
/// Those of the database.
pub async fn list(
    store: &Store,
    filter: &ExecutionFilter,
    after: Option<ExecutionPosition>,
    limit: i64,
    most_walked: i64,
) -> Result<ExecutionPage, StoreError> {
    let limit = limit.clamp(1, MAX_PAGE);
    let query = ExecutionQuery::of(store, filter, after, limit + 1).await?;
    let mut tx = begin_with_custom_plans(store).await?;
    let mut found = find(&mut tx, query, most_walked, None).await?;
    drop(tx);
    let more = found.positions.len() as i64 > limit;
    found.positions.truncate(limit as usize);
    let next = if more { found.positions.last().copied() } else { found.walked_to };
    let ids: Vec<Uuid> = found.positions.iter().map(|position| position.id).collect();
    let mut executions = list_by_ids(store, &ids).await?;
    let place = |id: &Uuid| ids.iter().position(|one| one == id);
    executions.sort_by_key(|execution| place(&execution.id));
    Ok(ExecutionPage { executions, next, is_cut_short: !more && next.is_some() })
}

/// Returns the executed plans of the statements of [`list`], as `EXPLAIN` writes them. For tests.
///
/// # Errors
///
/// Those of the database.
pub async fn explain(
    store: &Store,
    filter: &ExecutionFilter,
    after: Option<ExecutionPosition>,
    limit: i64,
) -> Result<Vec<Value>, StoreError> {
    let query = ExecutionQuery::of(store, filter, after, limit.clamp(1, MAX_PAGE) + 1).await?;
    let mut tx = begin_with_custom_plans(store).await?;
    let mut plans = Vec::new();
    find(&mut tx, query, MAX_WALKED_EXECUTIONS, Some(&mut plans)).await?;
    Ok(plans)
}

/// Returns the next executions, by their ids, that match `filter` and can be cancelled: they wait or run, were claimed
/// by `claimed_by`, and nobody has requested their cancel. Each call reads all executions under way.
pub(crate) async fn list_cancellable(
    store: &Store,
    filter: &ExecutionFilter,
    claimed_by: DateTime<Utc>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<ExecutionPosition>, StoreError> {
    let query = ExecutionQuery::of(store, filter, None, limit).await?;
    let mut tx = begin_with_custom_plans(store).await?;
    select_cancellable(&mut tx, &query, claimed_by, after).await
}

#[derive(Default)]
struct Found {
    positions: Vec<ExecutionPosition>,
    /// The last row that a walk looked at; `None`: it has reached the end.
    walked_to: Option<ExecutionPosition>,
}

async fn find(
    connection: &mut PgConnection,
    mut query: ExecutionQuery<'_>,
    most_walked: i64,
    mut plans: Option<&mut Vec<Value>>,
) -> Result<Found, StoreError> {
    let rare_states = if query.filter.selects_only(State::is_under_way) {
        Some(FewStates::UnderWay)
    } else if query.filter.selects_only(|state| state == State::Failed) {
        Some(FewStates::Failed)
    } else {
        None
    };
    if let Some(rare_states) = rare_states
        && are_few(connection, rare_states).await?
    {
        let positions = list_few(connection, &query, rare_states, plans).await?;
        return Ok(Found { positions, walked_to: None });
    }
    let mut found = Found::default();
    for _ in 0..most_walked.clamp(WALK_ROWS, MAX_WALKED_EXECUTIONS) / WALK_ROWS {
        let plans = plans.as_deref_mut();
        let rows = match query.job {
            Some(_) => walk_job(connection, &query, WALK_ROWS, plans).await?,
            None => walk_all(connection, &query, WALK_ROWS, plans).await?,
        };
        let last = rows.iter().find(|row| row.n == WALK_ROWS);
        query.after = last.map(|row| ExecutionPosition { claimed_at: row.claimed_at, id: row.id });
        let matching = rows.iter().filter(|row| row.matches);
        found.positions.extend(
            matching.map(|row| ExecutionPosition { claimed_at: row.claimed_at, id: row.id }),
        );
        query.limit -= rows.iter().filter(|row| row.matches).count() as i64;
        if query.limit <= 0 {
            return Ok(found);
        }
        if query.after.is_none() {
            return Ok(found);
        }
    }
    found.walked_to = query.after;
    Ok(found)
}

/// A filter as the statements' arguments.
pub(super) struct ExecutionQuery<'a> {
    pub(super) filter: &'a ExecutionFilter,
    pub(super) states: Vec<String>,
    pub(super) job: Option<Uuid>,
    /// The jobs with the filter's labels.
    pub(super) jobs: Option<Vec<Uuid>>,
    pub(super) fingerprint: Option<String>,
    pub(super) words: Option<String>,
    pub(super) params: Option<Value>,
    pub(super) after: Option<ExecutionPosition>,
    pub(super) limit: i64,
}

impl<'a> ExecutionQuery<'a> {
    async fn of(
        store: &Store,
        filter: &'a ExecutionFilter,
        after: Option<ExecutionPosition>,
        limit: i64,
    ) -> Result<Self, StoreError> {
        let params: Vec<Value> =
            filter.params.iter().map(|m| json!({"path": m.path, "value": m.value})).collect();
        Ok(Self {
            filter,
            states: filter.states.iter().map(|state| state.as_str().to_owned()).collect(),
            job: filter.job.map(JobId::get),
            jobs: find_jobs(store, &filter.labels, filter.job_prefix.as_deref()).await?,
            fingerprint: filter.fingerprint.map(|fingerprint| fingerprint.to_string()),
            words: filter.text.as_deref().map(search_words).transpose()?,
            params: (!params.is_empty()).then_some(Value::Array(params)),
            after,
            limit,
        })
    }
}
