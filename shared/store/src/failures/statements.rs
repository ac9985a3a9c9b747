//! The statements for rows of `failures` that match a filter; they share one set of conditions.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::failures::Order;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Map;
use sqlx::{AssertSqlSafe, Execute as _, PgConnection, Postgres};
use uuid::Uuid;

use super::search::{FoundFailure, SearchQuery};
use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

/// Number of rows walked for words or params before the inverted index is used.
const MAX_WALKED_ROWS: i64 = 5_000;

/// Number of labelled jobs' rows up to which they are sorted rather than searched among all others: among a million,
/// the walk to the fiftieth of more rows passes some ten thousand, which takes about as long.
const MAX_SORTED_ROWS: i64 = 750;

/// A statement over the rows `f` of `failures` that meet the conditions with an ordered index: `$head`, those
/// conditions, `$rest`.
macro_rules! failures {
    ($row:ident, $head:tt, [$($rest:tt)+], $terms:ident $(, $more:expr)*) => {
        sqlx::query_as!(
            $row,
            $head
                + "WHERE f.discarded = $1
                   AND ($2::uuid IS NULL OR f.job_id = $2)
                   AND ($3::uuid[] IS NULL OR f.job_id = ANY ($3))
                   AND ($4::text IS NULL OR f.task_type = $4)
                   AND ($5::text IS NULL OR f.pool = $5)
                   AND ($6::text IS NULL OR f.error_class = $6)
                   AND ($7::text IS NULL OR f.fingerprint = $7)
                   AND ($8::text IS NULL OR f.worker = $8)
                   AND ($9::timestamptz IS NULL OR f.failed_at >= $9)
                   AND ($10::timestamptz IS NULL OR f.failed_at < $10)
                   AND (NOT $11::bool OR f.fingerprint IS NULL OR f.fingerprint NOT IN (
                        SELECT g.fingerprint FROM sexton.failure_groups g WHERE g.state = 'muted')) "
                + $($rest)+,
            $terms.filter.discarded,
            $terms.job,
            $terms.jobs.as_deref(),
            $terms.filter.task_type.as_deref(),
            $terms.filter.pool.as_deref(),
            $terms.filter.error_class.as_deref(),
            $terms.fingerprint.as_deref(),
            $terms.filter.worker.as_deref(),
            $terms.filter.since,
            $terms.filter.until,
            $terms.filter.excludes_muted(),
            $terms.after.map(|cursor| cursor.at),
            $terms.after.map(|cursor| cursor.id),
            $terms.words.as_deref(),
            $terms.shapes[0].as_deref(),
            $terms.shapes[1].as_deref(),
            $terms.shapes[2].as_deref(),
            $terms.exact.as_ref(),
            $terms.limit
            $(, $more)*
        )
    };
}

/// The same with the conditions on words and params as well, which come between `$between` and `$tail`.
macro_rules! matching {
    ($row:ident, $head:tt, $between:tt, $tail:tt, $terms:ident $(, $more:expr)*) => {
        failures!(
            $row,
            $head,
            [$between
                + "AND ($14::text IS NULL OR f.words @@ to_tsquery('simple', $14))
                   AND ($15::jsonb[] IS NULL OR f.params @> ANY ($15))
                   AND ($16::jsonb[] IS NULL OR f.params @> ANY ($16))
                   AND ($17::jsonb[] IS NULL OR f.params @> ANY ($17))
                   AND ($18::jsonb IS NULL OR NOT EXISTS (
                        SELECT FROM jsonb_array_elements($18) m
                        WHERE f.params #>> ARRAY(SELECT jsonb_array_elements_text(m -> 'path'))
                              IS DISTINCT FROM m ->> 'value')) "
                + $tail],
            $terms $(, $more)*
        )
    };
}

/// Walks in the order of an index, past rows that do not match; with words or params, over at most
/// [`MAX_WALKED_ROWS`] rows.
pub(super) async fn walk(
    connection: &mut PgConnection,
    terms: &SearchQuery<'_>,
    order: Order,
    plan: Option<&mut Vec<Value>>,
) -> Result<Vec<FoundFailure>, StoreError> {
    let steps = if terms.searches { MAX_WALKED_ROWS } else { terms.limit };
    let found = match order {
        Order::Newest => {
            let query = matching!(
                FoundFailure,
                r#"-- walk_failures_newest
            SELECT c.execution_id AS "execution_id!", c.failed_at AS "failed_at!" FROM (
                SELECT f.execution_id, f.failed_at FROM sexton.failures f "#,
                "AND ($12::timestamptz IS NULL OR (f.failed_at, f.execution_id) < ($12, $13::uuid))
             ORDER BY f.failed_at DESC, f.execution_id DESC LIMIT $20) c
             WHERE NOT $21::bool OR (
                SELECT true FROM sexton.failures f WHERE f.execution_id = c.execution_id ",
                ") ORDER BY c.failed_at DESC, c.execution_id DESC LIMIT $19",
                terms,
                steps,
                terms.searches
            );
            run_or_explain(connection, query, plan).await
        }
        Order::Oldest => {
            let query = matching!(
                FoundFailure,
                r#"-- walk_failures_oldest
            SELECT c.execution_id AS "execution_id!", c.failed_at AS "failed_at!" FROM (
                SELECT f.execution_id, f.failed_at FROM sexton.failures f "#,
                "AND ($12::timestamptz IS NULL OR (f.failed_at, f.execution_id) > ($12, $13::uuid))
             ORDER BY f.failed_at, f.execution_id LIMIT $20) c
             WHERE NOT $21::bool OR (
                SELECT true FROM sexton.failures f WHERE f.execution_id = c.execution_id ",
                ") ORDER BY c.failed_at, c.execution_id LIMIT $19",
                terms,
                steps,
                terms.searches
            );
            run_or_explain(connection, query, plan).await
        }
    };
    Ok(found?)
}

/// Returns whether these jobs have at most [`MAX_SORTED_ROWS`] rows; counting stops there.
pub(super) async fn have_few_failures(
    connection: &mut PgConnection,
    jobs: &[Uuid],
    discarded: bool,
) -> Result<bool, StoreError> {
    let rows = sqlx::query_scalar!(
        r#"-- few_failures_of_jobs
        SELECT count(*) AS "rows!" FROM (
            SELECT FROM sexton.failures WHERE discarded = $2 AND job_id = ANY ($1) LIMIT $3) c"#,
        jobs,
        discarded,
        MAX_SORTED_ROWS + 1
    )
    .fetch_one(WithTimeout(connection))
    .await?;
    Ok(rows <= MAX_SORTED_ROWS)
}

/// Statistics of the rows that the walk has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkStatistics {
    rows: i64,
    with_words: i64,
    with_params: i64,
}

impl WalkStatistics {
    /// Returns whether the walk has reached the end, and so has found all matches.
    pub(super) const fn is_all(self) -> bool {
        self.rows < MAX_WALKED_ROWS
    }

    /// Returns whether fewer rows have the words than the params.
    pub(super) const fn words_are_rarer(self) -> bool {
        self.with_words <= self.with_params
    }
}

/// Reads the statistics of a walk.
pub(super) async fn read_walk_statistics(
    connection: &mut PgConnection,
    terms: &SearchQuery<'_>,
    order: Order,
) -> Result<WalkStatistics, StoreError> {
    let passed = match order {
        Order::Newest => {
            failures!(
                WalkStatistics,
                r#"-- passed_failures_newest
                SELECT count(*) AS "rows!",
                    count(*) FILTER (WHERE c.words @@ to_tsquery('simple', coalesce($14::text, ''))) AS "with_words!",
                    count(*) FILTER (WHERE c.params @> ANY ($15::jsonb[])
                        AND ($16::jsonb[] IS NULL OR c.params @> ANY ($16))
                        AND ($17::jsonb[] IS NULL OR c.params @> ANY ($17))
                        AND $18::jsonb IS NOT NULL AND $19::bigint > 0) AS "with_params!"
                FROM (SELECT f.words, f.params FROM sexton.failures f "#,
                ["AND ($12::timestamptz IS NULL OR (f.failed_at, f.execution_id) < ($12, $13::uuid))
                 ORDER BY f.failed_at DESC, f.execution_id DESC LIMIT $20) c"],
                terms,
                MAX_WALKED_ROWS
            )
            .fetch_one(WithTimeout(connection))
            .await
        }
        Order::Oldest => {
            failures!(
                WalkStatistics,
                r#"-- passed_failures_oldest
                SELECT count(*) AS "rows!",
                    count(*) FILTER (WHERE c.words @@ to_tsquery('simple', coalesce($14::text, ''))) AS "with_words!",
                    count(*) FILTER (WHERE c.params @> ANY ($15::jsonb[])
                        AND ($16::jsonb[] IS NULL OR c.params @> ANY ($16))
                        AND ($17::jsonb[] IS NULL OR c.params @> ANY ($17))
                        AND $18::jsonb IS NOT NULL AND $19::bigint > 0) AS "with_params!"
                FROM (SELECT f.words, f.params FROM sexton.failures f "#,
                ["AND ($12::timestamptz IS NULL OR (f.failed_at, f.execution_id) > ($12, $13::uuid))
                 ORDER BY f.failed_at, f.execution_id LIMIT $20) c"],
                terms,
                MAX_WALKED_ROWS
            )
            .fetch_one(WithTimeout(connection))
            .await
        }
    };
    Ok(passed?)
}

/// Looks matches up by the most selective index, then sorts them.
pub(super) async fn look_up(
    connection: &mut PgConnection,
    terms: &SearchQuery<'_>,
    order: Order,
    plan: Option<&mut Vec<Value>>,
) -> Result<Vec<FoundFailure>, StoreError> {
    let found = match order {
        Order::Newest => {
            let query = matching!(
                FoundFailure,
                r#"-- look_up_failures_newest
            WITH m AS MATERIALIZED (SELECT f.execution_id, f.failed_at FROM sexton.failures f "#,
                "AND ($12::timestamptz IS NULL OR (f.failed_at, f.execution_id) < ($12, $13::uuid)) ",
                r#") SELECT m.execution_id AS "execution_id!", m.failed_at AS "failed_at!" FROM m
            ORDER BY m.failed_at DESC, m.execution_id DESC LIMIT $19"#,
                terms
            );
            run_or_explain(connection, query, plan).await
        }
        Order::Oldest => {
            let query = matching!(
                FoundFailure,
                r#"-- look_up_failures_oldest
            WITH m AS MATERIALIZED (SELECT f.execution_id, f.failed_at FROM sexton.failures f "#,
                "AND ($12::timestamptz IS NULL OR (f.failed_at, f.execution_id) > ($12, $13::uuid)) ",
                r#") SELECT m.execution_id AS "execution_id!", m.failed_at AS "failed_at!" FROM m
            ORDER BY m.failed_at, m.execution_id LIMIT $19"#,
                terms
            );
            run_or_explain(connection, query, plan).await
        }
    };
    Ok(found?)
}

/// Runs the statement; with `plan`, only explains it and adds the plan.
async fn run_or_explain<F>(
    connection: &mut PgConnection,
    mut query: Map<'_, Postgres, F, PgArguments>,
    plan: Option<&mut Vec<Value>>,
) -> Result<Vec<FoundFailure>, sqlx::Error>
where
    F: FnMut(PgRow) -> Result<FoundFailure, sqlx::Error> + Send,
{
    let Some(plans) = plan else { return query.fetch_all(WithTimeout(connection)).await };
    let arguments = query.take_arguments().map_err(sqlx::Error::Encode)?.unwrap_or_default();
    // The text is a constant of this crate.
    let text = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}", query.sql().as_str());
    let explained = sqlx::query_scalar_with(AssertSqlSafe(text), arguments);
    plans.push(explained.fetch_one(WithTimeout(connection)).await?);
    Ok(Vec::new())
}

struct CountRow {
    count: i64,
}

/// Counts the matches, up to the limit.
pub(super) async fn count(
    connection: &mut PgConnection,
    terms: &SearchQuery<'_>,
) -> Result<i64, sqlx::Error> {
    let counted = matching!(
        CountRow,
        r#"-- count_failures
        SELECT count(*) AS "count!" FROM (SELECT FROM sexton.failures f "#,
        "AND ($12::timestamptz IS NULL OR (f.failed_at, f.execution_id) > ($12, $13::uuid)) ",
        "LIMIT $19) c",
        terms
    );
    Ok(counted.fetch_one(WithTimeout(connection)).await?.count)
}

struct GroupCountRow {
    fingerprint: String,
    count: i64,
}

/// Counts the matches of each of these groups among those that had failed by `until`, up to the limit in all.
pub(super) async fn count_by_group(
    connection: &mut PgConnection,
    terms: &SearchQuery<'_>,
    fingerprints: &[String],
    until: Option<DateTime<Utc>>,
) -> Result<Vec<(String, u64)>, sqlx::Error> {
    let counted = matching!(
        GroupCountRow,
        r#"-- count_failures_of_groups
        SELECT c.fingerprint AS "fingerprint!", count(*) AS "count!" FROM (
            SELECT f.fingerprint FROM sexton.failures f "#,
        "AND ($12::timestamptz IS NULL OR (f.failed_at, f.execution_id) > ($12, $13::uuid))
         AND f.fingerprint = ANY ($20::text[]) AND ($21::timestamptz IS NULL OR f.failed_at <= $21) ",
        "LIMIT $19) c GROUP BY c.fingerprint ORDER BY count(*) DESC, c.fingerprint",
        terms,
        fingerprints,
        until
    );
    let rows = counted.fetch_all(WithTimeout(connection)).await?;
    Ok(rows.into_iter().map(|row| (row.fingerprint, row.count as u64)).collect())
}
