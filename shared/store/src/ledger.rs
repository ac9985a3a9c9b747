//! The ledger of a job, read in one snapshot: its firings and their records.
//!
//! The firings of a range are computed from the job's revisions. Added are the firings that have an execution but
//! that no revision computes: backfilled ones from before the job existed, those of a revision that retention has
//! removed, and those of other time zone data. Executions are then read by their keys and gaps by their range, so the
//! number of firings bounds the read. [`sexton_model::explain`] judges what is read here.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sexton_model::explain::{
    ExecutionRecord, FiringPage, GapRecord, JobSnapshot, Pause, Revision, ScheduleHistory,
};
use sexton_model::key;
use sexton_model::plan::Timetable;
use sexton_model::state::State;
use sexton_model::zone::Zone;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::connection::client_timeout::WithTimeout;
use crate::error::parse_column;
use crate::executions::Execution;
use crate::jobs::Job;
use crate::{Now, Store, StoreError};

/// Maximum number of firings of one page.
pub const MAX_FIRINGS: usize = 1_000;
/// Maximum number of a job's revisions that are read; older ones count as forgotten.
const MAX_REVISIONS: i64 = 1_000;

/// The range of a job's ledger to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LedgerQuery {
    /// The job's id.
    pub job: Uuid,
    /// Start of the range, included.
    pub from: DateTime<Utc>,
    /// End of the range, included. If it equals `from`, that instant is read whether it is a firing or not.
    pub to: DateTime<Utc>,
    /// Maximum number of firings, at most [`MAX_FIRINGS`].
    pub max_firings: usize,
}

/// A page of a ledger.
#[derive(Clone, PartialEq, Debug)]
pub struct LedgerPage {
    /// The database's time of the read.
    pub now: DateTime<Utc>,
    /// The current job.
    pub job: JobSnapshot,
    /// Its schedules.
    pub history: ScheduleHistory,
    /// Its firings, and executions claimed as firings.
    pub stretch: FiringPage,
    /// Their executions, by key.
    pub executions: HashMap<String, FiringExecution>,
    /// The gaps that contain some of them, oldest first.
    pub gaps: Vec<GapRecord>,
}

/// The execution of a firing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the schema comments every column")]
pub struct FiringExecution {
    pub id: Uuid,
    pub execution_key: String,
    pub scheduled_for: DateTime<Utc>,
    pub recorded: ExecutionRecord,
    pub attempt: i32,
    pub claimed_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub outcome: Option<String>,
    pub replaced_by: Option<Uuid>,
    pub error_class: Option<String>,
    pub error_message: Option<String>,
    /// Who backfilled it, and why.
    pub backfill: Option<Pause>,
}

impl FiringExecution {
    /// Makes it of a whole row, and of who backfilled that.
    ///
    /// # Errors
    ///
    /// [`StoreError::Inconsistent`] for a state that this version does not know.
    pub fn of(execution: &Execution, backfill: Option<Pause>) -> Result<Self, StoreError> {
        Ok(Self {
            id: execution.id,
            execution_key: execution.execution_key.clone(),
            scheduled_for: execution.scheduled_for,
            recorded: ExecutionRecord {
                state: parse_column("executions.state", &execution.state, State::parse)?,
                skip_reason: execution.skip_reason.clone(),
                held: execution.is_waiter(),
            },
            attempt: execution.attempt,
            claimed_at: execution.claimed_at,
            started_at: execution.started_at,
            finished_at: execution.finished_at,
            next_attempt_at: execution.next_attempt_at,
            outcome: execution.outcome.clone(),
            replaced_by: execution.replaced_by,
            error_class: execution.error_class.clone(),
            error_message: execution.error_message.clone(),
            backfill,
        })
    }
}

/// Reads a page of a job's ledger; `None` if the job does not exist.
///
/// # Errors
///
/// Those of the database; [`StoreError::Inconsistent`] for a revision that this version cannot read.
pub async fn read_page(
    store: &Store,
    wanted: LedgerQuery,
    now: Now,
) -> Result<Option<LedgerPage>, StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        .execute(WithTimeout(&mut *tx))
        .await?;
    let Some(job) = read_standing(&mut tx, wanted.job, now).await? else { return Ok(None) };
    let revisions = read_revisions(&mut tx, wanted.job).await?;
    let history = ScheduleHistory::new(revisions, job.deleted_at);
    let max_firings = wanted.max_firings.min(MAX_FIRINGS);
    let claimed = list_claimed(&mut tx, wanted, max_firings as i64 + 1).await?;
    let stretch =
        history.firings(wanted.from, wanted.to, max_firings).with_claimed(claimed, max_firings);
    let keys: Vec<String> = stretch.firings.iter().map(|firing| firing.key.clone()).collect();
    let executions = list_executions(&mut tx, wanted.job, &keys).await?;
    let gaps = match (stretch.firings.first(), stretch.firings.last()) {
        (Some(first), Some(last)) => {
            list_gaps(&mut tx, wanted.job, first.at, last.at, stretch.firings.len()).await?
        }
        _ => Vec::new(),
    };
    // The transaction only read: a failed rollback loses nothing.
    drop(tx);
    Ok(Some(LedgerPage { now: job.now, job: job.standing, history, stretch, executions, gaps }))
}

struct LockedStanding {
    standing: JobSnapshot,
    deleted_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
}

/// A single firing does not move `planned_until`. So a firing from before retention's limit cannot be ruled out.
async fn read_standing(
    connection: &mut PgConnection,
    job: Uuid,
    now: Now,
) -> Result<Option<LockedStanding>, StoreError> {
    let row = sqlx::query!(
        r#"-- standing_of_job
        SELECT next_fire_at AS due_at, coalesce(next_nominal_at, next_fire_at) AS next_fire_at,
               CASE WHEN schedule_kind = 'once' AND next_fire_at IS NULL
                   THEN greatest(planned_until, (SELECT pruned_before - interval '1 microsecond'
                                                 FROM sexton.retention))
                   ELSE planned_until END AS planned_until, status = 'paused' AS "paused!", paused_by, paused_why,
               deleted_at, (SELECT pruned_before FROM sexton.retention) AS pruned_before,
               coalesce($2, now()) AS "now!"
        FROM sexton.jobs WHERE id = $1"#,
        job,
        now
    )
    .fetch_optional(WithTimeout(connection))
    .await?;
    Ok(row.map(|row| LockedStanding {
        standing: JobSnapshot {
            next_fire_at: row.next_fire_at,
            due_at: row.due_at,
            planned_until: row.planned_until,
            paused: row.paused.then_some(Pause { actor: row.paused_by, why: row.paused_why }),
            held: None,
            pruned_before: row.pruned_before,
        },
        deleted_at: row.deleted_at,
        now: row.now,
    }))
}

/// Reads the newest revisions of a job. A revision is the job's row with the columns that it had: columns that an
/// older version did not record have their current values, except `days` and the terms, which decide what was a firing
/// and are empty then.
pub(crate) async fn read_revisions(
    connection: &mut PgConnection,
    job: Uuid,
) -> Result<Vec<Revision>, StoreError> {
    let rows = sqlx::query!(
        r#"-- revisions_of_job
        SELECT r.revision, r.valid_from,
               to_jsonb(jsonb_populate_record(j, '{"days": null, "start_at": null, "end_at": null, "exclude": [],
                   "jitter_ms": null, "max_runs": null}'::jsonb || r.definition)) || jsonb_build_object(
                   'params', '{}'::jsonb, 'name', coalesce(j.deleted_name, j.name)) AS "job!"
        FROM sexton.job_revisions r JOIN sexton.jobs j ON j.id = r.job_id
        WHERE r.job_id = $1 ORDER BY r.revision DESC LIMIT $2"#,
        job,
        MAX_REVISIONS
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    rows.into_iter()
        .map(|row| {
            let wrong = |why: String| StoreError::Inconsistent {
                place: "job_revisions.definition",
                value: format!("{why} (revision {})", row.revision),
            };
            let job: Job =
                serde_json::from_value(row.job).map_err(|error| wrong(error.to_string()))?;
            let timetable =
                Timetable::of(&job.spec()?).map_err(|error| wrong(error.to_string()))?;
            Ok(Revision { number: row.revision, from: row.valid_from, timetable })
        })
        .collect()
}

/// Returns the oldest executions of firings in a range, at most `max_firings` of each kind of schedule. They are found by
/// their keys, which begin with the kind and then sort by time; a trigger that was given such a key has another
/// nominal time, and is left out.
async fn list_claimed(
    connection: &mut PgConnection,
    wanted: LedgerQuery,
    max_firings: i64,
) -> Result<Vec<(DateTime<Utc>, String)>, StoreError> {
    let (from, to) = (wanted.from.max(key::EARLIEST), wanted.to.min(key::LATEST));
    if from > to {
        return Ok(Vec::new());
    }
    let rows = sqlx::query!(
        r#"-- claimed_between
        SELECT c.scheduled_for AS "scheduled_for!", c.execution_key AS "execution_key!"
        FROM unnest($2::text[], $3::text[]) AS k (first, last), LATERAL (
            SELECT e.scheduled_for, e.execution_key FROM sexton.executions e
            WHERE e.job_id = $1 AND e.execution_key >= k.first AND e.execution_key <= k.last
              AND e.scheduled_for >= $4 AND e.scheduled_for <= $5
              AND right(e.execution_key, 20)
                  = to_char(e.scheduled_for AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            ORDER BY e.execution_key LIMIT $6) c"#,
        wanted.job,
        &key::of_kinds(from),
        &key::of_kinds(to),
        from,
        to,
        max_firings
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows.into_iter().map(|row| (row.scheduled_for, row.execution_key)).collect())
}

/// Returns who backfilled an execution, and why; `None`: nobody did.
///
/// # Errors
///
/// Those of the database.
pub async fn find_backfill(
    store: &Store,
    execution: &Execution,
) -> Result<Option<Pause>, StoreError> {
    let Some(action) = execution.backfill else { return Ok(None) };
    let found = sqlx::query!(
        "-- backfill_of_execution
        SELECT actor, reason FROM sexton.operator_actions WHERE id = $1",
        action
    )
    .fetch_optional(store.with_timeout())
    .await?;
    let found = found.map(|row| Pause { actor: Some(row.actor), why: row.reason });
    // Retention may have removed the action.
    Ok(Some(found.unwrap_or_default()))
}

async fn list_executions(
    connection: &mut PgConnection,
    job: Uuid,
    keys: &[String],
) -> Result<HashMap<String, FiringExecution>, StoreError> {
    let rows = sqlx::query!(
        r#"-- executions_of_firings
        SELECT e.id, e.execution_key, e.scheduled_for, e.state, e.attempt, e.claimed_at, e.started_at,
               e.finished_at, e.next_attempt_at, e.outcome, e.error_class, e.error_message,
               e.skip_reason, e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL
                   AS "held!", e.replaced_by, e.backfill,
               o.actor AS "actor?", o.reason
        FROM sexton.executions e LEFT JOIN sexton.operator_actions o ON o.id = e.backfill
        WHERE e.job_id = $1 AND e.execution_key = ANY ($2)"#,
        job,
        keys
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let read = rows.into_iter().map(|row| {
        let execution = FiringExecution {
            id: row.id,
            execution_key: row.execution_key.clone(),
            scheduled_for: row.scheduled_for,
            recorded: ExecutionRecord {
                state: parse_column("executions.state", &row.state, State::parse)?,
                skip_reason: row.skip_reason,
                held: row.held,
            },
            attempt: row.attempt,
            claimed_at: row.claimed_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            next_attempt_at: row.next_attempt_at,
            outcome: row.outcome,
            replaced_by: row.replaced_by,
            error_class: row.error_class,
            error_message: row.error_message,
            backfill: row.backfill.map(|_| Pause { actor: row.actor, why: row.reason }),
        };
        Ok((row.execution_key, execution))
    });
    read.collect()
}

/// Returns the gaps with a firing between two instants. A job's gaps do not overlap, so they are no more than its
/// firings, unless somebody has changed the database by hand. A long absence is planned in several steps, and the
/// last step's gap includes the coalesced firings of the steps before.
async fn list_gaps(
    connection: &mut PgConnection,
    job: Uuid,
    first: DateTime<Utc>,
    last: DateTime<Utc>,
    firings: usize,
) -> Result<Vec<GapRecord>, StoreError> {
    let mut gaps = sqlx::query_as!(
        GapRecord,
        r#"-- gaps_between
        SELECT g.first_firing AS first, g.last_firing AS last, g.reason, g.actor, g.why,
               coalesce(g.into_key, (
                   SELECT n.into_key FROM sexton.gaps n
                   WHERE g.reason = 'coalesced' AND n.job_id = g.job_id AND n.reason = 'coalesced'
                     AND n.first_firing > g.last_firing AND n.recorded_at >= g.recorded_at
                     AND n.into_key IS NOT NULL
                   ORDER BY n.first_firing LIMIT 1)) AS into_key
        FROM sexton.gaps g
        WHERE g.job_id = $1 AND g.first_firing <= $3 AND g.last_firing >= $2
        ORDER BY g.first_firing DESC, g.id DESC LIMIT $4"#,
        job,
        first,
        last,
        2 * firings as i64 + 10
    )
    .fetch_all(WithTimeout(&mut *connection))
    .await?;
    gaps.reverse();
    let held = sqlx::query!(
        "-- held_between
        SELECT first_firing, last_firing FROM sexton.held_firings
        WHERE job_id = $1 AND first_firing <= $3 AND last_firing >= $2
        ORDER BY first_firing LIMIT $4",
        job,
        first,
        last,
        firings as i64 + 10
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    gaps.extend(
        held.into_iter().map(|run| GapRecord::set_aside(run.first_firing, run.last_firing)),
    );
    Ok(gaps)
}

/// Returns the job's time zone.
pub fn zone_of(job: &Job) -> Zone {
    Zone::parse(&job.timezone).unwrap_or_default()
}
