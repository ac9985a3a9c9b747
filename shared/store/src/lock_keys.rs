//! The registry of lock keys: which service has which numbers, and which job has which of them.
//!
//! Two constraints hold whatever is written at once: no two ranges of `lock_key_ranges` overlap, and no two jobs have one
//! `lock_key`. That a job's key is one of its service's range is judged by [`crate::jobs::apply()`], when a job is created or its
//! key changes.

mod assign;
mod remove;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::job::RESERVED_PREFIXES;
use sexton_model::lock_key::ServerHash;
use sexton_model::lock_key::range::{KeyRange, MAX_RANGES, usage};
use sexton_model::lock_key::registry::Registry;
use sqlx::PgConnection;

use crate::connection::client_timeout::WithTimeout;
use crate::{Store, StoreError};

pub use assign::{AssignError, assign};
pub use remove::{RemoveError, remove};

/// Number of jobs of one statement.
const PAGE_JOBS: i64 = 20_000;
/// Maximum number of jobs that a [`Registry`] has.
const MAX_JOBS: usize = 2_000_000;

/// A range, and how much of it jobs use.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AssignedRange {
    /// The range.
    #[serde(flatten)]
    pub range: KeyRange,
    /// Its last key.
    pub end: i64,
    /// Number of its keys that jobs have.
    pub used: usize,
    /// The first of its keys that no job has; `None`: all are taken.
    pub next: Option<i64>,
    /// The operator who assigned or last changed it.
    pub assigned_by: String,
    /// When that was.
    pub assigned_at: DateTime<Utc>,
}

struct RangeRow {
    service: String,
    first_key: i64,
    keys: i32,
}

impl RangeRow {
    fn range(&self) -> Result<KeyRange, StoreError> {
        let made = KeyRange::new(&self.service, self.first_key, self.keys.max(0) as u32);
        made.map_err(|error| StoreError::Inconsistent {
            place: "lock_key_ranges.service",
            value: error.to_string(),
        })
    }
}

/// Lists the ranges whose service contains a text, by their numbers; `None`: all.
pub async fn list(
    store: &Store,
    containing: Option<&str>,
) -> Result<Vec<AssignedRange>, StoreError> {
    let rows = sqlx::query!(
        "-- assigned_ranges
        SELECT service, first_key, keys, assigned_by, assigned_at FROM sexton.lock_key_ranges
        WHERE $1::text IS NULL OR strpos(lower(service), lower($1)) > 0 ORDER BY first_key LIMIT $2",
        containing,
        MAX_RANGES as i64
    )
    .fetch_all(store.with_timeout())
    .await?;
    let used = sqlx::query_scalar!(
        r#"-- used_lock_keys
        SELECT lock_key AS "key!" FROM sexton.jobs
        WHERE lock_key IS NOT NULL AND deleted_at IS NULL ORDER BY lock_key"#
    )
    .fetch_all(store.with_timeout())
    .await?;
    rows.into_iter()
        .map(|row| {
            let range = RangeRow { service: row.service, first_key: row.first_key, keys: row.keys };
            let range = range.range()?;
            let (used, next) = usage(&range, &used);
            let (end, assigned_by, assigned_at) = (range.last(), row.assigned_by, row.assigned_at);
            Ok(AssignedRange { range, end, used, next, assigned_by, assigned_at })
        })
        .collect()
}

/// Returns all ranges and jobs.
///
/// # Errors
///
/// [`StoreError::Inconsistent`] for more than two million jobs.
pub async fn read_registry(store: &Store) -> Result<Registry, StoreError> {
    // One transaction would have to wait for a pooled connection for as long as the pages take; a job that is applied
    // meanwhile may be missing.
    let ranges = read_ranges(store.with_timeout()).await?;
    let reserved = RESERVED_PREFIXES.map(str::to_owned);
    let mut jobs: Vec<(String, Option<i64>)> = Vec::new();
    loop {
        let after = jobs.last().map(|(name, _)| name.clone());
        let page = sqlx::query!(
            "-- lock_keys_of_jobs
            SELECT name, lock_key FROM sexton.jobs
            WHERE deleted_at IS NULL AND ($1::text IS NULL OR name > $1)
              AND NOT EXISTS (SELECT FROM unnest($2::text[]) p WHERE starts_with(name, p))
            ORDER BY name LIMIT $3",
            after,
            &reserved,
            PAGE_JOBS
        )
        .fetch_all(store.with_timeout())
        .await?;
        let is_last = (page.len() as i64) < PAGE_JOBS;
        jobs.extend(page.into_iter().map(|row| (row.name, row.lock_key)));
        if jobs.len() > MAX_JOBS {
            let value = format!("more than {MAX_JOBS} jobs");
            return Err(StoreError::Inconsistent { place: "jobs.name", value });
        }
        if is_last {
            return Ok(Registry { ranges, jobs });
        }
    }
}

/// Returns the hash of a name, and of a namespace as its seed, as this server computes it.
pub async fn server_hash(
    store: &Store,
    hash: ServerHash,
    name: &str,
    namespace: Option<&str>,
) -> Result<i64, StoreError> {
    let key = match hash {
        ServerHash::Text => {
            sqlx::query_scalar!(
                r#"-- hashtext
                SELECT hashtext($1)::bigint AS "key!""#,
                name
            )
            .fetch_one(store.with_timeout())
            .await?
        }
        ServerHash::TextExtended => {
            sqlx::query_scalar!(
                r#"-- hashtextextended
                SELECT hashtextextended($1::text COLLATE "C",
                           coalesce(hashtextextended($2::text COLLATE "C", 0), 0)) AS "key!""#,
                name,
                namespace
            )
            .fetch_one(store.with_timeout())
            .await?
        }
    };
    Ok(key)
}

/// Returns all ranges, by their numbers.
pub(crate) async fn read_ranges(
    executor: impl sqlx::PgExecutor<'_>,
) -> Result<Vec<KeyRange>, StoreError> {
    let rows = sqlx::query_as!(
        RangeRow,
        "-- lock_key_ranges
        SELECT service, first_key, keys FROM sexton.lock_key_ranges ORDER BY first_key LIMIT $1",
        MAX_RANGES as i64
    )
    .fetch_all(executor)
    .await?;
    rows.iter().map(RangeRow::range).collect()
}

/// Returns the jobs that have these keys, deleted ones left out.
pub(crate) async fn holders(
    connection: &mut PgConnection,
    keys: &[i64],
) -> Result<Vec<(String, i64)>, StoreError> {
    let rows = sqlx::query!(
        r#"-- holders_of_lock_keys
        SELECT name, lock_key AS "key!" FROM sexton.jobs WHERE lock_key = ANY ($1) AND deleted_at IS NULL"#,
        keys
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows.into_iter().map(|row| (row.name, row.key)).collect())
}

/// Returns the keys of a range that jobs have, in order.
pub(crate) async fn used_keys(
    connection: &mut PgConnection,
    range: &KeyRange,
) -> Result<Vec<i64>, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- used_keys_of_range
        SELECT lock_key AS "key!" FROM sexton.jobs
        WHERE lock_key BETWEEN $1 AND $2 AND deleted_at IS NULL ORDER BY lock_key"#,
        range.first(),
        range.last()
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}
