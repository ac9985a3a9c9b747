//! Gaps: firings without an execution, and the reasons.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::id::JobId;
use sexton_model::plan::{self, GapReason};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::connection::client_timeout::WithTimeout;
use crate::{Now, Store, StoreError};

/// A row of `gaps`; the fields are named after the columns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gap {
    pub id: i64,
    pub job_id: Uuid,
    pub first_firing: DateTime<Utc>,
    pub last_firing: DateTime<Utc>,
    pub count: i32,
    pub reason: String,
    pub recorded_at: DateTime<Utc>,
    pub actor: Option<String>,
    pub why: Option<String>,
    pub into_key: Option<String>,
}

/// Consecutive firings without an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GapRow {
    /// The job.
    pub job_id: JobId,
    /// Nominal time of the first.
    pub first: DateTime<Utc>,
    /// Nominal time of the last.
    pub last: DateTime<Utc>,
    /// Number of firings; at least 1.
    pub count: u32,
    /// Why.
    pub reason: String,
    /// Who or what caused it.
    pub cause: GapCause,
}

/// Who or what caused a gap.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GapCause {
    /// Who paused, changed or deleted the job.
    pub actor: Option<String>,
    /// The reason that this person gave.
    pub why: Option<String>,
    /// The execution key of the firing that runs for the coalesced ones.
    pub into_key: Option<String>,
}

impl GapRow {
    /// Makes the row of a planned gap.
    pub fn of(job_id: JobId, gap: &plan::Gap) -> Self {
        Self {
            job_id,
            first: gap.first,
            last: gap.last,
            count: gap.count,
            reason: gap.reason.as_str().to_owned(),
            cause: GapCause::default(),
        }
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_cause(self, cause: GapCause) -> Self {
        Self { cause, ..self }
    }
}

/// Returns a job's gaps, newest first.
pub async fn list_by_job(store: &Store, job: Uuid, limit: i64) -> Result<Vec<Gap>, StoreError> {
    Ok(sqlx::query_as!(
        Gap,
        "-- gaps_of_job
        SELECT id, job_id, first_firing, last_firing, count, reason, recorded_at, actor, why, into_key
        FROM sexton.gaps
        WHERE job_id = $1 ORDER BY first_firing DESC, id DESC LIMIT $2",
        job,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Makes gaps of the held firings of jobs that are rescheduled or deleted, since afterwards the schedule no longer
/// shows which firings those were.
pub(crate) async fn record_held(
    connection: &mut PgConnection,
    jobs: &[JobId],
    reason: GapReason,
    cause: &GapCause,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let jobs: Vec<Uuid> = jobs.iter().map(|job| job.get()).collect();
    sqlx::query!(
        "-- gaps_of_held_firings
        WITH h AS (DELETE FROM sexton.held_firings WHERE job_id = ANY ($1)
                   RETURNING job_id, first_firing, last_firing, count)
        INSERT INTO sexton.gaps (job_id, first_firing, last_firing, count, reason, actor, why, recorded_at)
        SELECT job_id, first_firing, last_firing, count, $2, $3, $4, $5 FROM h",
        &jobs,
        reason.as_str(),
        cause.actor,
        cause.why,
        at
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// Writes gaps in the caller's transaction, recorded at `now`.
pub(crate) async fn record_gaps(
    connection: &mut PgConnection,
    gaps: &[GapRow],
    now: Now,
) -> Result<(), StoreError> {
    if gaps.is_empty() {
        return Ok(());
    }
    let jobs: Vec<Uuid> = gaps.iter().map(|gap| gap.job_id.get()).collect();
    let first: Vec<DateTime<Utc>> = gaps.iter().map(|gap| gap.first).collect();
    let last: Vec<DateTime<Utc>> = gaps.iter().map(|gap| gap.last).collect();
    let of = |pick: fn(&GapCause) -> &Option<String>| {
        gaps.iter().map(|gap| pick(&gap.cause).clone()).collect::<Vec<Option<String>>>()
    };
    let counts: Vec<i32> = gaps.iter().map(|gap| gap.count as i32).collect();
    let reasons: Vec<String> = gaps.iter().map(|gap| gap.reason.clone()).collect();
    sqlx::query!(
        "-- record_gaps
        INSERT INTO sexton.gaps (job_id, first_firing, last_firing, count, reason, actor, why, into_key,
                          recorded_at)
        SELECT g.*, coalesce($9, now())
        FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::int[], $5::text[], $6::text[],
                    $7::text[], $8::text[]) AS g",
        &jobs,
        &first,
        &last,
        &counts,
        &reasons,
        &of(|cause| &cause.actor) as &[Option<String>],
        &of(|cause| &cause.why) as &[Option<String>],
        &of(|cause| &cause.into_key) as &[Option<String>],
        now
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
