//! What a bulk would mean, before it is asked for.
//!
//! Read page by page, along the same statement that selects a bulk's items, so that the preview cannot mean
//! anything else. Looked at are at most [`MAX_PREVIEW_EXECUTIONS`]; where there are more, it says so and is about those that
//! failed first.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::failures::FailureFilter;
use uuid::Uuid;

use super::later_success::LaterSuccesses;
use super::select::{self, PagePosition};
use crate::failures::{MutedMatches, count_muted};
use crate::{Now, Store, StoreError, status};

/// The most executions that are looked at.
pub const MAX_PREVIEW_EXECUTIONS: u64 = 100_000;
/// Executions of one page.
const PAGE_EXECUTIONS: i64 = 5_000;

/// What is meant.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Preview {
    /// How many were looked at.
    pub count: u64,
    /// Whether there are more than were looked at.
    pub more: bool,
    /// How many of each job, the most first.
    pub jobs: Vec<(String, u64)>,
    /// How many of each pool, the most first.
    pub pools: Vec<(String, u64)>,
    /// When the first of them failed (or was discarded).
    pub oldest: Option<DateTime<Utc>>,
    /// And the last.
    pub newest: Option<DateTime<Utc>>,
    /// Of how many a later execution of the same job, with the same idempotency key, has succeeded: their
    /// effect may have happened. Only where a job's template lets two executions have one key.
    pub succeeded_later: u64,
    /// How many are of jobs that have a verify task, which is asked of each first.
    pub verified: u64,
    /// What would fit, and is left out because its groups are muted.
    pub muted: MutedMatches,
    /// By the database's clock, when it was made: what fails later is not meant.
    pub previewed_at: DateTime<Utc>,
}

#[derive(Default)]
struct Counts {
    verified: u64,
    jobs: BTreeMap<String, u64>,
    pools: BTreeMap<String, u64>,
    later: LaterSuccesses,
}

/// Looks.
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
        preview.count += page.places.len() as u64;
        let ids: Vec<Uuid> = page.places.iter().map(|place| place.1).collect();
        preview.succeeded_later += count_page(store, &ids, &mut counts).await?;
        if page.complete {
            break;
        }
        after = page.last;
    }
    preview.muted = count_muted(store, filter, Some(previewed_at), MAX_PREVIEW_EXECUTIONS).await?;
    preview.verified = counts.verified;
    preview.jobs = sort_by_count(counts.jobs);
    preview.pools = sort_by_count(counts.pools);
    Ok(preview)
}

/// The same of these executions.
pub async fn preview_ids(store: &Store, ids: &[Uuid]) -> Result<Preview, StoreError> {
    let previewed_at = status::clock(store).await?;
    let mut counts = Counts::default();
    let succeeded_later = count_page(store, ids, &mut counts).await?;
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
        oldest: range.oldest,
        newest: range.newest,
        succeeded_later,
        verified: counts.verified,
        muted: MutedMatches::default(),
        previewed_at,
    })
}

/// How many of these are of jobs that have a verify task.
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

/// Whether any job has a verify task: then a requeue by a filter may mean executions that are to be asked about,
/// though nobody has looked at all of them.
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

async fn count_page(store: &Store, ids: &[Uuid], counts: &mut Counts) -> Result<u64, StoreError> {
    let rows = sqlx::query!(
        r#"-- preview_page
        SELECT coalesce(j.deleted_name, j.name) AS "job!", e.pool, count(*) AS "count!",
               count(*) FILTER (WHERE j.verify_task IS NOT NULL) AS "verified!"
        FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id WHERE e.id = ANY ($1)
        GROUP BY 1, 2"#,
        ids
    )
    .fetch_all(store.with_timeout())
    .await?;
    for row in rows {
        *counts.jobs.entry(row.job).or_default() += row.count as u64;
        *counts.pools.entry(row.pool).or_default() += row.count as u64;
        counts.verified += row.verified as u64;
    }
    counts.later.count(store, ids).await
}

fn sort_by_count(counts: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = counts.into_iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all
}
