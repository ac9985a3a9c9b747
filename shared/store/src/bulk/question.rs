//! The questions of a bulk: a job's verify task checks whether the effect of an execution has happened, before that
//! execution is requeued.
//!
//! A question is an execution like any other, of the job `verify.<task type>`, which the first question creates. Its
//! row names the execution in question, and a worker that opens it gets that one's params, keys and job. So workers
//! run, repeat, time out and show it like every execution, and need no special code. This module asks questions and
//! collects answers:
//!
//! 1. Each item without a question gets one. The number of items asked ahead of the requeue never exceeds a batch,
//!    the canary, or what begins within a minute, so that answers are fresh when they are used.
//! 2. Ended questions are judged: an item whose effect has happened is resolved, one whose effect has not waits for
//!    its batch, and one without an answer is left.
//!
//! Each is one transaction with the bulk locked. A crash before its commit has done nothing of it; after it the
//! questions have unpublished tickets like all executions, or the items are judged and recorded. An answer counts
//! only while the execution is unchanged, params included: if an operator requeues, edits or discards it meanwhile,
//! that action wins, and the item is refused or left. A question that still waits after ten minutes, and that no
//! active worker in its pool offers, is cancelled and counts as no answer.

mod collect_answers;
mod edited_params;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::bulk::{MAX_BATCH_EXECUTIONS, Pace, allowance};
use sexton_model::rate::Rate;
use sexton_model::verify_task::VERIFY_PREFIX;
use sqlx::PgConnection;
use uuid::Uuid;

pub(super) use self::edited_params::find_edited;
use super::rows::write_items;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::error::parse_column;
use crate::notifications::Notification;
use crate::operator::notify;
use crate::platform::offers::list_old_workers_on;
use crate::{Now, Store, StoreError};

/// How long a question may wait, in minutes, if no worker offers its verify task.
pub const MAX_QUESTION_WAIT_MINUTES: i32 = 10;
/// The longest run of a question, in milliseconds; the catalogue may set less.
const QUESTION_TIMEOUT_MS: i64 = 60_000;
/// Number of retries of a failed question, and the delay before each, in milliseconds; short, because an operator
/// waits.
const QUESTION_RETRIES: i32 = 2;
const QUESTION_RETRY_MS: i64 = 2_000;

/// The result of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QuestionRound {
    /// Number of new questions.
    pub new_questions: usize,
    /// Number of items whose effect had happened, now resolved.
    pub resolved: usize,
    /// Number of items whose effect had not happened, now waiting for their requeue.
    pub waiting: usize,
    /// Number of items without an answer, now left.
    pub unknown: usize,
}

/// A running bulk, locked.
struct LockedBulk {
    id: i64,
    actor: String,
    reason: Option<String>,
    /// Maximum number of items that have a question or wait with an answer.
    ahead: u32,
    now: DateTime<Utc>,
}

/// Collects answers for a running bulk, and asks about further items; `None`: it has no verify task, does not run, or
/// another scheduler holds it. `new_id` yields the ids of questions and of their jobs.
pub async fn process_questions(
    store: &Store,
    id: i64,
    new_id: impl FnMut() -> Uuid,
    now: Now,
) -> Result<Option<QuestionRound>, StoreError> {
    let mut tx = store.begin().await?;
    let Some(asker) = lock_bulk(&mut tx, id, now).await? else { return Ok(None) };
    let mut done = QuestionRound::default();
    collect_answers::collect_answers(&mut tx, &asker, &mut done).await?;
    ask_questions(&mut tx, &asker, new_id, &mut done).await?;
    commit(tx).await?;
    Ok(Some(done))
}

async fn lock_bulk(
    connection: &mut PgConnection,
    id: i64,
    now: Now,
) -> Result<Option<LockedBulk>, StoreError> {
    let row = sqlx::query!(
        r#"-- lock_bulk_to_ask
        SELECT actor, reason, rate, CASE WHEN NOT canary_passed THEN canary END AS canary, done,
               paced_since, paced,
               coalesce($2, clock_timestamp()) AS "now!",
               -- What is recorded comes from where the operator was, not from the scheduler.
               set_config('sexton.from_where', coalesce(from_where, ''), true) AS from_where_set
        FROM sexton.bulks WHERE id = $1 AND state = 'running' AND verify = 'task' FOR NO KEY UPDATE SKIP LOCKED"#,
        id,
        now
    )
    .fetch_optional(WithTimeout(connection))
    .await?;
    let Some(row) = row else { return Ok(None) };
    let rate = row
        .rate
        .as_deref()
        .map(|text| parse_column("bulks.rate", text, |text| text.parse::<Rate>().ok()));
    let canary = row.canary.and_then(|size| u32::try_from(size).ok());
    let pace = rate.transpose()?.map(|rate| Pace {
        rate,
        since: row.paced_since.unwrap_or(row.now),
        begun: row.paced.max(0) as u64,
    });
    let out = u32::try_from(row.done).unwrap_or(u32::MAX);
    let ahead = max_ahead(pace, canary.map(|size| size.saturating_sub(out)), row.now);
    Ok(Some(LockedBulk { id, actor: row.actor, reason: row.reason, ahead, now: row.now }))
}

/// Limits the questions, so that an answer is fresh when it is used: to what the canary still lacks, and to what may
/// begin within a minute.
fn max_ahead(pace: Option<Pace>, canary: Option<u32>, now: DateTime<Utc>) -> u32 {
    let paced = pace
        .map_or(MAX_BATCH_EXECUTIONS, |pace| allowance(pace, now + chrono::Duration::minutes(1)).0);
    canary.map_or(paced, |lacks| paced.min(lacks))
}

/// An item without a question.
struct UnaskedItem {
    ordinal: i64,
    execution_id: Uuid,
    /// Whether the execution is as it was selected.
    is_included: bool,
    verify_task: Option<String>,
}

async fn ask_questions(
    connection: &mut PgConnection,
    asker: &LockedBulk,
    new_id: impl FnMut() -> Uuid,
    done: &mut QuestionRound,
) -> Result<(), StoreError> {
    let unasked = read_unasked_items(connection, asker).await?;
    let mut written: Vec<(i64, &str, Option<String>)> = Vec::new();
    let mut about = Vec::new();
    for item in unasked {
        if !item.is_included {
            // The execution may fail again at this attempt before its turn, and would then be requeued without a
            // check.
            let note = "it was not failed any more when its verify task was to be asked";
            written.push((item.ordinal, "left", Some(note.to_owned())));
            done.unknown += 1;
        } else if let Some(task) = item.verify_task {
            about.push((item.ordinal, item.execution_id, task));
        } else {
            written.push((item.ordinal, "waiting", None));
            done.waiting += 1;
        }
    }
    let left = written.iter().filter(|item| item.1 == "left").count() as i64;
    if !written.is_empty() {
        write_items(connection, asker.id, &written).await?;
    }
    if left > 0 {
        sqlx::query!(
            "-- count_unasked\nUPDATE sexton.bulks SET left_alone = left_alone + $2 WHERE id = $1",
            asker.id,
            left
        )
        .execute(WithTimeout(&mut *connection))
        .await?;
    }
    // A worker of the previous version would begin a question under the question's own key.
    let old = list_old_workers_on(WithTimeout(&mut *connection), Some(asker.now));
    if !about.is_empty() && old.await?.is_empty() {
        done.new_questions = about.len();
        insert_questions(connection, asker, &about, new_id).await?;
        notify(connection, Notification::TicketsUnpublished).await?;
    }
    Ok(())
}

/// Reads the next items without a question, up to the limit.
async fn read_unasked_items(
    connection: &mut PgConnection,
    asker: &LockedBulk,
) -> Result<Vec<UnaskedItem>, StoreError> {
    Ok(sqlx::query_as!(
        UnaskedItem,
        r#"-- items_to_ask
        SELECT i.ordinal, i.execution_id, coalesce(e.state = 'failed' AND e.attempt = i.seen, false) AS "is_included!",
               j.verify_task
        FROM sexton.bulk_items i LEFT JOIN sexton.executions e ON e.id = i.execution_id LEFT JOIN sexton.jobs j ON j.id = e.job_id
        WHERE i.bulk_id = $1 AND i.state = 'unasked'
          AND NOT EXISTS (SELECT FROM sexton.bulk_questions q WHERE q.bulk_id = $1 AND q.ordinal = i.ordinal)
        ORDER BY i.ordinal
        LIMIT greatest(0, $2
            - (SELECT count(*) FROM (
                   SELECT FROM sexton.bulk_questions q WHERE q.bulk_id = $1 AND q.answer IS NULL LIMIT $2) asked)
            - (SELECT count(*) FROM (
                   SELECT FROM sexton.bulk_items w WHERE w.bulk_id = $1 AND w.state = 'waiting' LIMIT $2) waiting))"#,
        asker.id,
        i64::from(asker.ahead)
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}

/// Inserts questions, and their jobs if these do not exist yet.
async fn insert_questions(
    connection: &mut PgConnection,
    asker: &LockedBulk,
    about: &[(i64, Uuid, String)],
    mut new_id: impl FnMut() -> Uuid,
) -> Result<(), StoreError> {
    let mut tasks: Vec<String> = about.iter().map(|(_, _, task)| task.clone()).collect();
    let each = tasks.clone();
    tasks.sort_unstable();
    tasks.dedup();
    let jobs: Vec<Uuid> = tasks.iter().map(|_| new_id()).collect();
    sqlx::query!(
        "-- insert_verify_jobs
        INSERT INTO sexton.jobs (id, name, description, schedule_kind, task_type, params, pool, overlap,
                          misfire_policy, misfire_window_ms, misfire_limit, max_retries, max_timeouts,
                          retry_delay_ms, retry_max_delay_ms, timeout_ms, created_at, updated_at)
        SELECT id, $3 || task, 'questions whether the effect of failed executions has happened', 'none', task,
               '{}', 'default', 'allow', 'skip', 0, 1, $4, 1, $5, $5, $6, $7, $7
        FROM unnest($1::uuid[], $2::text[]) AS t (id, task)
        ORDER BY task ON CONFLICT (name) DO NOTHING",
        &jobs,
        &tasks,
        VERIFY_PREFIX,
        QUESTION_RETRIES,
        QUESTION_RETRY_MS,
        QUESTION_TIMEOUT_MS,
        asker.now
    )
    .execute(WithTimeout(&mut *connection))
    .await?;
    let questions: Vec<Uuid> = about.iter().map(|_| new_id()).collect();
    let (ordinals, executions): (Vec<i64>, Vec<Uuid>) =
        about.iter().map(|(ordinal, execution, _)| (*ordinal, *execution)).unzip();
    let claimed_by = format!("bulk {}", asker.id);
    sqlx::query!(
        "-- insert_questions
        WITH q AS MATERIALIZED (
            SELECT t.ordinal, t.question, t.task, e.id AS about, e.idempotency_key, e.scheduled_for, e.target,
                   e.params, coalesce(b.pool, e.pool) AS pool
            FROM unnest($2::bigint[], $3::uuid[], $4::uuid[], $5::text[])
                     AS t (ordinal, question, execution, task)
            JOIN sexton.executions e ON e.id = t.execution
            JOIN sexton.bulks b ON b.id = $1),
        i AS (
            INSERT INTO sexton.executions (id, job_id, execution_key, idempotency_key, scheduled_for, state,
                                    next_attempt_at, task_type, pool, target, params, claimed_by, claimed_at,
                                    relay_after, asks_about)
            SELECT q.question, j.id, 'verify-' || $1 || '-' || q.ordinal, q.idempotency_key, q.scheduled_for,
                   'pending', $6, q.task, q.pool, q.target, q.params, $7, $6, $6, q.about
            FROM q JOIN sexton.jobs j ON j.name = $8 || q.task)
        INSERT INTO sexton.bulk_questions (bulk_id, ordinal, question) SELECT $1, q.ordinal, q.question FROM q",
        asker.id,
        &ordinals,
        &questions,
        &executions,
        &each,
        asker.now,
        claimed_by,
        VERIFY_PREFIX
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// An ended question's answer, as its row has it.
struct EndedQuestion {
    ordinal: i64,
    execution_id: Uuid,
    seen: i32,
    /// Whether the item has no answer from elsewhere, such as an operator's command.
    open: bool,
    question: Uuid,
    state: Option<String>,
    /// Whether it has waited for a worker for too long.
    overdue: bool,
    attempt: Option<i32>,
    result: Option<Value>,
    error: Option<String>,
}
