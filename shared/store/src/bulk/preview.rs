//! A preview of a bulk's selection.
//!
//! It reads page by page with the statement that selects a bulk's items, so that both select the same. It reads at
//! most [`MAX_PREVIEW_EXECUTIONS`]; if there are more, it says so and covers those that failed first.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::failures::FailureFilter;
use uuid::Uuid;

use super::later_success::LaterSuccesses;
use super::select::{self, PagePosition};
use crate::failures::{MutedMatches, count_muted};
use crate::platform::status;
use crate::{Now, Store, StoreError};

/// Maximum number of executions that a preview reads.
pub const MAX_PREVIEW_EXECUTIONS: u64 = 100_000;
/// Maximum number of failure groups in one preview.
const MAX_PREVIEW_GROUPS: usize = 100;
/// Number of executions in one page.
const PAGE_EXECUTIONS: i64 = 5_000;

/// The executions that a bulk would select.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Preview {
    /// Number of executions read.
    pub count: u64,
    /// Whether more match.
    pub more: bool,
    /// Number of executions of each job, the largest first.
    pub jobs: Vec<(String, u64)>,
    /// Number of executions of each pool, the largest first.
    pub pools: Vec<(String, u64)>,
    /// Number of executions of each failure group, by its fingerprint, the largest first; at most 100 groups.
    pub groups: Vec<(String, u64)>,
    /// Number of executions that run; to cancel them, their workers are asked.
    pub running: u64,
    /// When the first of them failed or was discarded; of executions to cancel, their nominal times.
    pub oldest: Option<DateTime<Utc>>,
    /// The same for the last of them.
    pub newest: Option<DateTime<Utc>>,
    /// Number of executions of which a later one of the same job, with the same idempotency key, has succeeded: their
    /// effect may have happened. Only where a job's template lets two executions have one key.
    pub succeeded_later: u64,
    /// Number of executions whose jobs have a verify task, which checks each first.
    pub verified: u64,
    /// Matches that are left out because their groups are muted.
    pub muted: MutedMatches,
    /// When the preview was made, by the database's clock: later failures are not selected.
    pub previewed_at: DateTime<Utc>,
}

/// The executions of one job, pool and failure group.
struct CountedRow {
    job: String,
    pool: String,
    fingerprint: Option<String>,
    count: i64,
    verified: i64,
    running: i64,
    /// Whether the job's template lets two of its executions have one key.
    may_share_keys: bool,
}

#[derive(Default)]
struct Counts {
    verified: u64,
    running: u64,
    jobs: BTreeMap<String, u64>,
    pools: BTreeMap<String, u64>,
    groups: BTreeMap<String, u64>,
    later: LaterSuccesses,
}

impl Counts {
    /// Returns whether a job's template lets two of its executions have one key.
    fn add(&mut self, rows: Vec<CountedRow>) -> bool {
        let mut may_share_keys = false;
        for row in rows {
            let count = row.count as u64;
            *self.jobs.entry(row.job).or_default() += count;
            *self.pools.entry(row.pool).or_default() += count;
            if let Some(fingerprint) = row.fingerprint {
                *self.groups.entry(fingerprint).or_default() += count;
            }
            self.verified += row.verified as u64;
            self.running += row.running as u64;
            may_share_keys |= row.may_share_keys;
        }
        may_share_keys
    }
}

/// Previews a filter's selection.
pub async fn preview(
    store: &Store,
    filter: &FailureFilter,
    now: Now,
) -> Result<Preview, StoreError> {
    let previewed_at = match now {
        Some(now) => now,
        None => status::clock(store).await?,
    };
    let mut preview = Preview { previewed_at, ..Preview::default() };
    let mut counts = Counts::default();
    let mut after: Option<PagePosition> = None;
    loop {
        let page = select::page(store, filter, previewed_at, after, PAGE_EXECUTIONS).await?;
        if preview.count >= MAX_PREVIEW_EXECUTIONS {
            preview.more = !page.places.is_empty() || !page.complete;
            break;
        }
        preview.oldest = preview.oldest.or_else(|| page.places.first().map(|place| place.0));
        preview.newest = page.places.last().map(|place| place.0).or(preview.newest);
        let ids: Vec<Uuid> = page.places.iter().map(|place| place.1).collect();
        preview.succeeded_later += count_failures(store, &ids, &mut counts).await?;
        // Without those that were requeued between the search and the count, as each part of the preview.
        preview.count = counts.jobs.values().sum();
        if page.complete {
            break;
        }
        after = page.last;
    }
    preview.muted = count_muted(store, filter, Some(previewed_at), MAX_PREVIEW_EXECUTIONS).await?;
    preview.verified = counts.verified;
    preview.jobs = sort_by_count(counts.jobs);
    preview.pools = sort_by_count(counts.pools);
    preview.groups = largest_groups(counts.groups);
    Ok(preview)
}

/// Previews the selection of a filter for a cancel.
pub async fn preview_cancel(
    store: &Store,
    filter: &ExecutionFilter,
    now: Now,
) -> Result<Preview, StoreError> {
    let previewed_at = match now {
        Some(now) => now,
        None => status::clock(store).await?,
    };
    let mut preview = Preview { previewed_at, ..Preview::default() };
    let mut counts = Counts::default();
    let mut after: Option<Uuid> = None;
    loop {
        let page =
            select::cancellable_page(store, filter, previewed_at, after, PAGE_EXECUTIONS).await?;
        if preview.count >= MAX_PREVIEW_EXECUTIONS {
            preview.more = !page.places.is_empty();
            break;
        }
        preview.count += page.places.len() as u64;
        let ids: Vec<Uuid> = page.places.iter().map(|place| place.1).collect();
        let range = nominal_range(store, &ids).await?;
        preview.oldest = [preview.oldest, range.0].into_iter().flatten().min();
        preview.newest = preview.newest.max(range.1);
        count_executions(store, &ids, &mut counts).await?;
        if page.complete {
            break;
        }
        after = page.last.map(|place| place.1);
    }
    preview.running = counts.running;
    preview.jobs = sort_by_count(counts.jobs);
    preview.pools = sort_by_count(counts.pools);
    preview.groups = largest_groups(counts.groups);
    Ok(preview)
}

async fn nominal_range(
    store: &Store,
    ids: &[Uuid],
) -> Result<(Option<DateTime<Utc>>, Option<DateTime<Utc>>), StoreError> {
    let range = sqlx::query!(
        "-- preview_nominal_range
        SELECT min(scheduled_for) AS oldest, max(scheduled_for) AS newest FROM sexton.executions WHERE id = ANY ($1)",
        ids
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok((range.oldest, range.newest))
}

/// Previews a cancel of these executions; counts those that wait or run.
pub async fn preview_cancel_of_ids(store: &Store, ids: &[Uuid]) -> Result<Preview, StoreError> {
    let previewed_at = status::clock(store).await?;
    let ids = sqlx::query_scalar!(
        "-- preview_cancellable
        SELECT id FROM sexton.executions
        WHERE id = ANY ($1) AND state IN ('pending', 'running', 'retrying') AND NOT cancel_requested",
        ids
    )
    .fetch_all(store.with_timeout())
    .await?;
    let mut counts = Counts::default();
    count_executions(store, &ids, &mut counts).await?;
    let (oldest, newest) = nominal_range(store, &ids).await?;
    Ok(Preview {
        previewed_at,
        count: ids.len() as u64,
        running: counts.running,
        jobs: sort_by_count(counts.jobs),
        pools: sort_by_count(counts.pools),
        groups: largest_groups(counts.groups),
        oldest,
        newest,
        ..Preview::default()
    })
}

/// Previews these executions.
pub async fn preview_ids(store: &Store, ids: &[Uuid]) -> Result<Preview, StoreError> {
    let previewed_at = status::clock(store).await?;
    let mut counts = Counts::default();
    let may_share_keys = count_executions(store, ids, &mut counts).await?;
    let succeeded_later = if may_share_keys { counts.later.count(store, ids).await? } else { 0 };
    let range = sqlx::query!(
        "-- preview_range
        SELECT min(finished_at) AS oldest, max(finished_at) AS newest FROM sexton.executions WHERE id = ANY ($1)",
        ids
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(Preview {
        count: ids.len() as u64,
        more: false,
        jobs: sort_by_count(counts.jobs),
        pools: sort_by_count(counts.pools),
        groups: largest_groups(counts.groups),
        oldest: range.oldest,
        newest: range.newest,
        succeeded_later,
        verified: counts.verified,
        running: counts.running,
        muted: MutedMatches::default(),
        previewed_at,
    })
}

/// Counts the executions among these whose jobs have a verify task.
pub async fn count_with_verify_task(store: &Store, ids: &[Uuid]) -> Result<u64, StoreError> {
    let count = sqlx::query_scalar!(
        r#"-- verified_executions
        SELECT count(*) AS "count!" FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
        WHERE e.id = ANY ($1) AND j.verify_task IS NOT NULL"#,
        ids
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(count as u64)
}

/// Returns whether any job has a verify task, so that a requeue by a filter may need verification of executions that
/// no preview covers.
///
/// # Errors
///
/// Those of the database.
pub async fn any_job_has_verify_task(store: &Store) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- some_job_asks
        SELECT EXISTS (SELECT FROM sexton.jobs WHERE verify_task IS NOT NULL) AS "some!""#
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Counts these failed or discarded executions. Returns of how many a later one has succeeded.
async fn count_failures(
    store: &Store,
    ids: &[Uuid],
    counts: &mut Counts,
) -> Result<u64, StoreError> {
    // The rows of failures hold all that is counted; those of executions are scattered over many more pages.
    let rows = sqlx::query_as!(
        CountedRow,
        r#"-- preview_failures
        SELECT coalesce(j.deleted_name, j.name) AS "job!", f.pool, f.fingerprint, count(*) AS "count!",
               count(*) FILTER (WHERE j.verify_task IS NOT NULL) AS "verified!", 0::bigint AS "running!",
               coalesce(bool_or(j.idempotency_template NOT LIKE '%{execution\_key}%'), false) AS "may_share_keys!"
        FROM sexton.failures f JOIN sexton.jobs j ON j.id = f.job_id WHERE f.execution_id = ANY ($1)
        GROUP BY 1, 2, 3"#,
        ids
    )
    .fetch_all(store.with_timeout())
    .await?;
    if counts.add(rows) { counts.later.count(store, ids).await } else { Ok(0) }
}

/// Counts these executions, in whatever state. Returns whether the template of a job lets two of its executions have one key.
async fn count_executions(
    store: &Store,
    ids: &[Uuid],
    counts: &mut Counts,
) -> Result<bool, StoreError> {
    let rows = sqlx::query_as!(
        CountedRow,
        r#"-- preview_executions
        SELECT coalesce(j.deleted_name, j.name) AS "job!", e.pool, e.fingerprint, count(*) AS "count!",
               count(*) FILTER (WHERE j.verify_task IS NOT NULL) AS "verified!",
               count(*) FILTER (WHERE e.state = 'running') AS "running!",
               coalesce(bool_or(j.idempotency_template NOT LIKE '%{execution\_key}%'), false) AS "may_share_keys!"
        FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id WHERE e.id = ANY ($1)
        GROUP BY 1, 2, 3"#,
        ids
    )
    .fetch_all(store.with_timeout())
    .await?;
    Ok(counts.add(rows))
}

fn largest_groups(counts: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut groups = sort_by_count(counts);
    groups.truncate(MAX_PREVIEW_GROUPS);
    groups
}

fn sort_by_count(counts: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = counts.into_iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all
}
