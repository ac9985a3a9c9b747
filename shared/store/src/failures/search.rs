//! Finds the rows of `failures` that match a filter.
//!
//! All queries share one set of conditions. Conditions with an ordered index (job, task type, pool, class, group,
//! worker, time) are walked in the order of the list, so a page costs what it shows. Words and params have no ordered
//! index: a walk of the newest rows finds common matches; rare ones come from the inverted index and are sorted. So
//! are the rows of jobs with a label, if they are few.
//!
//! Statements are planned each time with their values, so that unused conditions are not in the plan.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::failures::{FailureFilter, Order, PageCursor, ParamCondition};
use sexton_model::id::JobId;
use sqlx::PgConnection;
use uuid::Uuid;

use super::statements::{
    self, WalkStatistics, have_few_failures, look_up, read_walk_statistics, walk,
};
use crate::filter_values::{begin_with_custom_plans, find_jobs, search_words};
use crate::{Store, StoreError};

/// Maximum number of rows in one answer; one more says whether a further page follows.
pub const MAX_SEARCH_ROWS: i64 = 1_000;
/// Number of conditions on params that use the inverted index; further ones are compared row by row.
const INDEXED_CONDITIONS: usize = 3;

/// An execution that matches a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundFailure {
    /// The execution.
    pub execution_id: Uuid,
    /// `executions.finished_at`.
    pub failed_at: DateTime<Utc>,
}

impl FoundFailure {
    /// Returns the cursor of a page that ends with this execution.
    pub const fn cursor(&self, order: Order) -> PageCursor {
        PageCursor { order, at: self.failed_at, id: self.execution_id }
    }
}

/// Returns the next executions that match `filter`, after `after`; at most `limit`, up to [`MAX_SEARCH_ROWS`] and one more. Fewer:
/// no further ones match. Serves pages, and batches for actions on all of them: with [`Order::Oldest`], nothing new
/// comes before the cursor.
///
/// # Errors
///
/// [`StoreError::TooSlow`] for a combination that no index fits, among millions; nothing is locked.
pub async fn search(
    store: &Store,
    filter: &FailureFilter,
    order: Order,
    after: Option<PageCursor>,
    limit: i64,
) -> Result<Vec<FoundFailure>, StoreError> {
    let limit = limit.clamp(1, MAX_SEARCH_ROWS + 1);
    let mut terms = SearchQuery::of(store, filter, after, limit).await?;
    let mut tx = begin_with_custom_plans(store).await?;
    if terms.has_few_jobs_failures(&mut tx).await? {
        return look_up(&mut tx, &terms, order, None).await;
    }
    let walked = walk(&mut tx, &terms, order, None).await?;
    if !terms.searches || walked.len() as i64 == limit {
        return Ok(walked);
    }
    let passed = read_walk_statistics(&mut tx, &terms, order).await?;
    if passed.is_all() {
        return Ok(walked);
    }
    terms.choose_index(passed);
    look_up(&mut tx, &terms, order, None).await
}

/// Returns the executed plans of the statements of [`search`], as `EXPLAIN` writes them. For benchmarks and tests.
///
/// # Errors
///
/// As [`search`].
pub async fn explain(
    store: &Store,
    filter: &FailureFilter,
    order: Order,
    after: Option<PageCursor>,
    limit: i64,
) -> Result<Vec<Value>, StoreError> {
    let mut terms =
        SearchQuery::of(store, filter, after, limit.clamp(1, MAX_SEARCH_ROWS + 1)).await?;
    let mut tx = begin_with_custom_plans(store).await?;
    let mut plans = Vec::new();
    if terms.has_few_jobs_failures(&mut tx).await? {
        look_up(&mut tx, &terms, order, Some(&mut plans)).await?;
        return Ok(plans);
    }
    let walked = walk(&mut tx, &terms, order, None).await?;
    walk(&mut tx, &terms, order, Some(&mut plans)).await?;
    if terms.searches && (walked.len() as i64) < terms.limit {
        let passed = read_walk_statistics(&mut tx, &terms, order).await?;
        if !passed.is_all() {
            terms.choose_index(passed);
            look_up(&mut tx, &terms, order, Some(&mut plans)).await?;
        }
    }
    Ok(plans)
}

/// Counts the executions that match `filter`, up to `limit`.
///
/// # Errors
///
/// As [`search`].
pub async fn count(store: &Store, filter: &FailureFilter, limit: i64) -> Result<i64, StoreError> {
    let terms = SearchQuery::of(store, filter, None, limit).await?;
    let mut tx = begin_with_custom_plans(store).await?;
    Ok(statements::count(&mut tx, &terms).await?)
}

/// A filter as the statements' arguments.
pub(super) struct SearchQuery<'a> {
    pub(super) filter: &'a FailureFilter,
    pub(super) job: Option<Uuid>,
    /// The jobs with the filter's labels.
    pub(super) jobs: Option<Vec<Uuid>>,
    pub(super) fingerprint: Option<String>,
    pub(super) after: Option<PageCursor>,
    pub(super) words: Option<String>,
    pub(super) shapes: [Option<Vec<Value>>; INDEXED_CONDITIONS],
    pub(super) exact: Option<Value>,
    /// Whether the filter has words or params.
    pub(super) searches: bool,
    pub(super) limit: i64,
}

impl<'a> SearchQuery<'a> {
    pub(super) async fn of(
        store: &Store,
        filter: &'a FailureFilter,
        after: Option<PageCursor>,
        limit: i64,
    ) -> Result<Self, StoreError> {
        let words = filter.text.as_deref().map(search_words);
        let exact: Vec<Value> =
            filter.params.iter().map(|m| json!({"path": m.path, "value": m.value})).collect();
        let mut shapes = filter.params.iter().filter_map(ParamCondition::shapes);
        Ok(Self {
            filter,
            job: filter.job.map(JobId::get),
            jobs: find_jobs(store, &filter.labels, filter.job_prefix.as_deref()).await?,
            fingerprint: filter.fingerprint.map(|fingerprint| fingerprint.to_string()),
            after,
            words: words.transpose()?,
            shapes: std::array::from_fn(|_| shapes.next()),
            searches: filter.text.is_some() || !exact.is_empty(),
            exact: (!exact.is_empty()).then_some(Value::Array(exact)),
            limit,
        })
    }

    /// Returns whether the labels' jobs have so few rows that sorting them all costs less than a walk in the order of
    /// the list, past many other rows.
    async fn has_few_jobs_failures(
        &self,
        connection: &mut PgConnection,
    ) -> Result<bool, StoreError> {
        match &self.jobs {
            Some(jobs) if !self.searches => {
                have_few_failures(connection, jobs, self.filter.discarded).await
            }
            _ => Ok(false),
        }
    }

    /// Chooses between the indexes of words and of params. The server can estimate how many rows have a word, but not
    /// how many have a param, so params are only compared where the words are rarer.
    fn choose_index(&mut self, passed: WalkStatistics) {
        if self.words.is_some() && passed.words_are_rarer() {
            self.shapes = Default::default();
        }
    }
}
