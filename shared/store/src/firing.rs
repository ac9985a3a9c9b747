//! Fire: claims the due firings of active jobs.
//!
//! One transaction: lock due jobs (`SKIP LOCKED`, so replicas split the due set without a leader), decide with the
//! pure planner, insert executions, gaps and cursors, commit. Publishing comes after the commit. A crash before the
//! commit leaves nothing; a crash after it leaves unpublished tickets for the relay. The guard against a double
//! firing is the unique row, not the lock.

mod auto_pause;
pub mod catch_up;
mod clock;
pub mod cursors;
mod due;
pub mod gap_list;
pub mod gaps;
mod held_firings;
mod under_way;

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::id::{AttemptNumber, ExecutionId, JobId};
use sexton_model::key;
use sexton_model::plan::overlap::WaitReason;
use sexton_model::plan::{Cursor, Disposition, Firing};
use sexton_model::state::State;
use sexton_model::ticket::Ticket;
use sexton_model::zone::tz_data_version;
use sqlx::{Connection as _, PgConnection, Postgres, Transaction};
use uuid::Uuid;

use self::gaps::GapRow;
use crate::connection::client_timeout::{WithTimeout, commit, with_client_timeout};
use crate::connection::dedicated::ExecutorSource;
use crate::tickets::waiters::NOT_BEFORE_ADMISSION;
use crate::tickets::{TraceOrigin, UnpublishedTicket};
use crate::{Now, RELAY_DELAY_MS, Store, StoreError};

pub use clock::{ClockJump, ClockReading};
use due::DueRow;
pub use due::{DueJob, DueJobs, FailingJob, UnreadableJob};
pub(crate) use due::{day_rule, rate};
pub use held_firings::{HeldRun, list_due_now, list_held_jobs, list_held_runs};
pub use under_way::Replaced;

/// How long before it is due a firing is claimed, in milliseconds: the commit and the broker take about as long to bring
/// its ticket to a worker, which opens it no sooner than it is due. Where the caller gives the time, a firing is claimed
/// when it is due.
pub const CLAIM_LEAD_MS: u64 = 5;

/// A row to insert.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// The new execution's id, drawn by the caller.
    pub id: ExecutionId,
    /// The job, whose columns are copied.
    pub job_id: JobId,
    /// Unique for the job.
    pub execution_key: String,
    /// See [`sexton_model::key::idempotency`]. Of a job with templates, the database's once it is inserted.
    pub idempotency_key: String,
    /// Of a job with templates, the filled params once it is inserted; `None`: the job's.
    pub params: Option<Value>,
    /// Whether the job has templates.
    pub templated: bool,
    /// For a job with templates, the nominal time of the firing before.
    pub previous_scheduled_for: Option<DateTime<Utc>>,
    /// The nominal time.
    pub scheduled_for: DateTime<Utc>,
    /// Why the firing is skipped; `None`: it runs.
    pub skip_reason: Option<String>,
    /// Why its ticket waits until the job is free ([`crate::tickets::waiters`]); `None`: its ticket is publishable at once.
    /// Never set for a skipped claim.
    pub waits: Option<WaitReason>,
    /// How long after the claim the execution is due, in a catch-up with a rate: the relay publishes its ticket then.
    /// Zero for a waiter.
    pub after: Duration,
    /// The place of the firing in its trace, if the scheduler traces: each claim of a batch has one, or none has.
    pub traceparent: Option<String>,
}

impl Claim {
    /// Makes the claim of a planned firing of `job`.
    pub fn of(job: &DueJob, firing: Firing, id: ExecutionId) -> Self {
        let template = job.idempotency_template.as_deref();
        // Its timetable was parsed before, or there would be no firing.
        let timetable = job.templated.then(|| job.timetable().ok()).flatten();
        Self {
            id,
            job_id: job.id,
            idempotency_key: key::idempotency(template, &job.name, &firing.key),
            execution_key: firing.key,
            params: None,
            templated: job.templated,
            previous_scheduled_for: timetable.and_then(|all| all.last_before(firing.scheduled_for)),
            scheduled_for: firing.scheduled_for,
            skip_reason: match firing.disposition {
                Disposition::Run | Disposition::Waits(_) => None,
                Disposition::Skipped(reason) => Some(reason.as_str().to_owned()),
            },
            waits: match firing.disposition {
                Disposition::Waits(why) => Some(why),
                Disposition::Run | Disposition::Skipped(_) => None,
            },
            after: firing.after,
            traceparent: None,
        }
    }

    /// Returns whether its ticket may be published at once.
    pub fn runs_now(&self) -> bool {
        self.skip_reason.is_none() && self.waits.is_none() && self.after.is_zero()
    }

    /// Returns the ticket of the row that this claim became. `job` is the claimed job.
    pub fn into_ticket(self, job: &DueJob) -> UnpublishedTicket {
        let (attempt, rev) = INITIAL_ATTEMPT;
        UnpublishedTicket {
            ticket: Ticket {
                execution_id: self.id,
                attempt,
                job_id: job.id,
                job: job.name.clone(),
                task_type: job.task_type.clone(),
                target: job.target.clone(),
                params: self.params.unwrap_or_else(|| job.params.clone()),
                execution_key: self.execution_key,
                scheduled_for: self.scheduled_for,
                idempotency_key: self.idempotency_key,
            },
            rev,
            state: State::Pending,
            pool: job.pool.clone(),
            due_in: chrono::Duration::zero(),
            parked: None,
            origin: TraceOrigin::new(self.traceparent, None),
        }
    }
}

/// The next cursor of a planned job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CursorUpdate {
    /// The job.
    pub job: JobId,
    /// Its next firing; `None` ends its firings.
    pub next: Option<Cursor>,
    /// Number of firings claimed to run, for a job with a limit of runs; 0 otherwise.
    pub runs: u32,
}

/// The database's time, and when the next firing can be claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextClaim {
    /// The database's clock (or the given `now`).
    pub now: DateTime<Utc>,
    /// [`CLAIM_LEAD_MS`] before the earliest `next_fire_at` of an active job; `None`: nothing is scheduled.
    pub at: Option<DateTime<Utc>>,
}

/// Reads until when the planner may sleep, not counting the jobs `except`.
pub async fn next_claim(
    mut to: impl ExecutorSource,
    except: &[JobId],
    now: Now,
) -> Result<NextClaim, StoreError> {
    let except: Vec<Uuid> = except.iter().map(|job| job.get()).collect();
    let row = sqlx::query!(
        r#"-- next_claim
        SELECT coalesce($1, clock_timestamp()) AS "now!",
               (SELECT min(next_fire_at) FROM sexton.jobs
                WHERE status = 'active' AND next_fire_at IS NOT NULL
                  AND NOT (id = ANY ($2::uuid[]))) - $3 * interval '1 millisecond' AS at"#,
        now,
        &except,
        claim_lead(now)
    )
    .fetch_one(to.executor())
    .await?;
    Ok(NextClaim { now: row.now, at: row.at })
}

/// Returns [`CLAIM_LEAD_MS`] for the database's own time, and 0 for a given time.
fn claim_lead(now: Now) -> f64 {
    if now.is_none() { CLAIM_LEAD_MS as f64 } else { 0.0 }
}

/// One claim transaction.
#[derive(Debug)]
pub struct ClaimTransaction<'c> {
    tx: Transaction<'c, Postgres>,
    now: Now,
}

impl ClaimTransaction<'static> {
    /// Begins on a connection of the pool. Dropped without a commit, it leaves nothing.
    pub async fn begin(store: &Store, now: Now) -> Result<Self, StoreError> {
        Ok(Self { tx: store.begin().await?, now })
    }
}

impl<'c> ClaimTransaction<'c> {
    /// Begins on this connection. Dropped without a commit, it leaves nothing, but the connection must be given up.
    pub async fn begin_on(connection: &'c mut PgConnection, now: Now) -> Result<Self, StoreError> {
        Ok(Self { tx: with_client_timeout(connection.begin()).await?, now })
    }

    /// Locks up to `limit` jobs other than `except` that are due by now or within [`CLAIM_LEAD_MS`], longest due first.
    /// Skips jobs that another replica has locked and will plan. Pauses, in this transaction, the jobs that have reached
    /// their limit of failures in a row.
    pub async fn due_jobs(&mut self, limit: i64, except: &[JobId]) -> Result<DueJobs, StoreError> {
        let except: Vec<Uuid> = except.iter().map(|job| job.get()).collect();
        let rows = sqlx::query_as!(
            DueRow,
            r#"-- due_jobs
            SELECT id, name, schedule_kind, schedule_expression, timezone, dst, days, start_at,
                   end_at, exclude, jitter_ms, max_runs, runs_used, next_nominal_at, planned_until,
                   tz_version, task_type, target,
                   params::text AS "params!", pool, idempotency_template, templated, overlap, misfire_policy,
                   misfire_window_ms, misfire_limit, misfire_rate, pause_after_failures,
                   next_fire_at AS "next_fire_at!",
                   coalesce($1, now()) + $4 * interval '1 millisecond' AS "now!"
            FROM sexton.jobs
            WHERE status = 'active' AND next_fire_at <= coalesce($1, now()) + $4 * interval '1 millisecond'
              AND NOT (id = ANY ($3::uuid[]))
            ORDER BY next_fire_at, id LIMIT $2
            FOR NO KEY UPDATE SKIP LOCKED"#,
            self.now,
            limit,
            &except,
            claim_lead(self.now)
        )
        .fetch_all(WithTimeout(&mut *self.tx))
        .await?;
        let mut due = DueJobs::read(rows);
        self.pause_failing_jobs(&mut due).await?;
        under_way::fill_in_under_way(&mut self.tx, &mut due, true).await?;
        Ok(due)
    }

    /// Inserts the rows with a new key, and returns their ids. A runnable row's ticket is unpublished from its first
    /// instant, a waiter's from its admission; `by` is `<instance>:<pid>`. Claims of jobs with templates get what the
    /// database has filled.
    pub async fn insert(
        &mut self,
        claims: &mut [Claim],
        by: &str,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = claims.iter().map(|claim| claim.id.get()).collect();
        let jobs: Vec<Uuid> = claims.iter().map(|claim| claim.job_id.get()).collect();
        let keys: Vec<String> = claims.iter().map(|claim| claim.execution_key.clone()).collect();
        let idempotency: Vec<String> =
            claims.iter().map(|claim| claim.idempotency_key.clone()).collect();
        let nominal: Vec<DateTime<Utc>> = claims.iter().map(|claim| claim.scheduled_for).collect();
        let skips: Vec<Option<String>> =
            claims.iter().map(|claim| claim.skip_reason.clone()).collect();
        let waits: Vec<Option<String>> =
            claims.iter().map(|claim| claim.waits.map(|why| why.as_str().to_owned())).collect();
        let after: Vec<f64> = claims.iter().map(|claim| claim.after.as_millis() as f64).collect();
        let templated = claims.iter().any(|claim| claim.templated);
        let previous: Vec<Option<DateTime<Utc>>> =
            claims.iter().map(|claim| claim.previous_scheduled_for).collect();
        // Each has one, or none has: an array that is too short is filled with nulls.
        let traces: Vec<String> = claims.iter().map_while(|one| one.traceparent.clone()).collect();
        let inserted = sqlx::query!(
            r#"-- insert_claims
            INSERT INTO sexton.executions (id, job_id, execution_key, idempotency_key, scheduled_for, state,
                                    skip_reason, finished_at, next_attempt_at, task_type, pool, target,
                                    params, claimed_by, claimed_at, relay_after, tz_version, waits, flow_id,
                                    traceparent)
            SELECT c.id, c.job_id, c.key,
                   CASE WHEN j.templated THEN sexton.filled_key(j.idempotency_template, sexton.template_values(
                            j.name, j.timezone, c.key, c.nominal, c.previous, j.params)) ELSE c.idempotency_key END,
                   c.nominal,
                   CASE WHEN c.skip IS NULL THEN 'pending' ELSE 'skipped' END,
                   c.skip,
                   CASE WHEN c.skip IS NOT NULL THEN coalesce($8, now()) END,
                   CASE WHEN c.skip IS NULL
                        THEN least(greatest(coalesce($8, now()), c.nominal),
                                   coalesce($8, now()) + $14 * interval '1 millisecond')
                             + c.after * interval '1 millisecond' END,
                   j.task_type, j.pool, j.target,
                   CASE WHEN j.templated THEN sexton.filled(j.params, sexton.template_values(
                            j.name, j.timezone, c.key, c.nominal, c.previous, j.params)) ELSE j.params END,
                   $7, coalesce($8, now()),
                   CASE WHEN c.waits IS NOT NULL THEN $11::timestamptz
                        WHEN c.after > 0 THEN coalesce($8, now()) + c.after * interval '1 millisecond'
                        ELSE coalesce($8, now()) + $9 * interval '1 millisecond' END, $10, c.waits,
                   CASE WHEN c.skip IS NULL AND j.flow IS NOT NULL THEN c.id END,
                   c.traceparent
            FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::text[],
                        $12::text[], $13::float8[], $15::timestamptz[], $17::text[])
                 AS c (id, job_id, key, idempotency_key, nominal, skip, waits, after, previous, traceparent)
            JOIN sexton.jobs j ON j.id = c.job_id
            ON CONFLICT (job_id, execution_key) DO NOTHING
            RETURNING id, CASE WHEN $16 THEN params END AS params,
                      CASE WHEN $16 THEN idempotency_key END AS idempotency_key"#,
            &ids,
            &jobs,
            &keys,
            &idempotency,
            &nominal,
            &skips as &[Option<String>],
            by,
            self.now,
            RELAY_DELAY_MS as f64,
            tz_data_version(),
            NOT_BEFORE_ADMISSION,
            &waits as &[Option<String>],
            &after,
            claim_lead(self.now),
            &previous as &[Option<DateTime<Utc>>],
            templated,
            &traces
        )
        .fetch_all(WithTimeout(&mut *self.tx))
        .await?;
        let mut all = Vec::with_capacity(inserted.len());
        let mut filled = HashMap::new();
        for row in inserted {
            all.push(ExecutionId::new(row.id));
            filled.extend(row.params.zip(row.idempotency_key).map(|both| (row.id, both)));
        }
        for claim in claims {
            if let Some((params, key)) = filled.remove(&claim.id.get()) {
                (claim.params, claim.idempotency_key) = (Some(params), key);
            }
        }
        Ok(all)
    }

    /// Ends, for each of these jobs, the executions under way beside its new one, which was [inserted](Self::insert)
    /// before. See [`Replaced`].
    pub async fn replace(&mut self, by: &[(JobId, ExecutionId)]) -> Result<Replaced, StoreError> {
        under_way::replace(&mut self.tx, by, self.now).await
    }

    /// Moves the jobs' cursors and counts their runs, in the same transaction as the claims. Returns how many rows
    /// changed, which equals the number given while their locks are held. A job that fires once keeps the instant
    /// since which it is due ([`Timetable::since`](sexton_model::plan::Timetable::since)), because a later release
    /// needs it.
    pub async fn advance(&mut self, cursors: &[CursorUpdate]) -> Result<u64, StoreError> {
        let jobs: Vec<Uuid> = cursors.iter().map(|moved| moved.job.get()).collect();
        let at = |of: fn(Cursor) -> Option<DateTime<Utc>>| -> Vec<Option<DateTime<Utc>>> {
            cursors.iter().map(|moved| moved.next.and_then(of)).collect()
        };
        let next = at(|cursor| Some(cursor.due));
        let nominal = at(|cursor| Some(cursor.nominal));
        let runs: Vec<i32> = cursors.iter().map(|moved| moved.runs as i32).collect();
        let done = sqlx::query!(
            "-- advance_cursors
            UPDATE sexton.jobs SET next_fire_at = c.next, tz_version = $4,
                next_nominal_at = nullif(c.nominal, c.next), runs_used = jobs.runs_used + c.runs,
                planned_until = CASE WHEN c.next IS NULL AND jobs.schedule_kind = 'once'
                    THEN jobs.planned_until
                    ELSE least(coalesce($3, now()) + $7 * interval '1 millisecond',
                               c.nominal - interval '1 microsecond') END
            FROM unnest($1::uuid[], $2::timestamptz[], $5::timestamptz[], $6::int[])
                 AS c (job_id, next, nominal, runs) WHERE jobs.id = c.job_id",
            &jobs,
            &next as &[Option<DateTime<Utc>>],
            self.now,
            tz_data_version(),
            &nominal as &[Option<DateTime<Utc>>],
            &runs,
            claim_lead(self.now)
        )
        .execute(WithTimeout(&mut *self.tx))
        .await?;
        Ok(done.rows_affected())
    }

    /// Records firings without an execution.
    pub async fn record_gaps(&mut self, gaps: &[GapRow]) -> Result<(), StoreError> {
        gaps::record_gaps(&mut self.tx, gaps, self.now).await
    }

    /// The transaction's connection, for further statements in it.
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.tx
    }

    /// Rolls back, and waits until the locks are released.
    pub async fn rollback(self) -> Result<(), StoreError> {
        Ok(with_client_timeout(self.tx.rollback()).await?)
    }

    /// Commits. After an error the rows may or may not exist: the next planner finds either the old cursors (and
    /// claims again) or the new ones (and the relay publishes).
    pub async fn commit(self) -> Result<(), StoreError> {
        Ok(commit(self.tx).await?)
    }
}

/// The attempt number and revision that [`ClaimTransaction::insert`] gives a row.
pub(crate) const INITIAL_ATTEMPT: (AttemptNumber, i32) = (AttemptNumber::FIRST, 1);
