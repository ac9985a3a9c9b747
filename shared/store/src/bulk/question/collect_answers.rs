//! Judges the answers of questions.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_model::bulk::MAX_BATCH_EXECUTIONS;
use sexton_model::id::ExecutionId;
use sexton_model::state::State;
use sexton_model::verify_task::{VerifyAnswer, read_answer};
use sqlx::PgConnection;
use uuid::Uuid;

use super::super::rows::{LockedExecution, OpenItem, find_existing, lock_executions, write_items};
use super::edited_params::find_edited;
use super::{EndedQuestion, LockedBulk, MAX_QUESTION_WAIT_MINUTES, QuestionRound};
use crate::StoreError;
use crate::attempts::open::parse_attempt_number;
use crate::connection::client_timeout::WithTimeout;
use crate::error::parse_column;
use crate::operator::{NewAction, record_bulk_actions, transitions};

/// Maximum length of an item's note, in characters.
const MAX_NOTE_CHARS: usize = 500;

/// Judges the items whose questions have ended; items with locked rows come up again.
pub(super) async fn collect_answers(
    connection: &mut PgConnection,
    asker: &LockedBulk,
    round: &mut QuestionRound,
) -> Result<(), StoreError> {
    let all = list_ended_questions(connection, asker).await?;
    let mut judged = Vec::with_capacity(all.len());
    for ended in all {
        let state = match &ended.state {
            Some(state) => Some(parse_column("executions.state", state, State::parse)?),
            None => None,
        };
        let answer = match state {
            Some(_) if ended.overdue => Some(VerifyAnswer::Unknown(format!(
                "waits for {MAX_QUESTION_WAIT_MINUTES} minutes, and no worker at work in its pool offers it"
            ))),
            _ if !ended.open => Some(VerifyAnswer::Unknown("came too late".to_owned())),
            Some(state) => read_answer(state, ended.result.as_ref(), ended.error.as_deref()),
            None => Some(VerifyAnswer::Unknown(
                "had its question removed before it was heard".to_owned(),
            )),
        };
        if let Some(answer) = answer {
            judged.push((ended, answer));
        }
    }
    if judged.is_empty() {
        return Ok(());
    }
    let (locked, busy) = lock_judged(connection, &judged).await?;
    judged.retain(|(ended, _)| {
        // A worker may have begun it before the lock: then its answer still counts.
        let begun =
            ended.overdue && locked.get(&ended.question).is_none_or(|it| !is_waiting(&it.state));
        !busy.contains(&ended.execution_id) && !busy.contains(&ended.question) && !begun
    });
    // Waiting items are checked once more at their turn.
    let ordinals: Vec<i64> = judged.iter().map(|(ended, _)| ended.ordinal).collect();
    let edited = find_edited(connection, asker.id, &ordinals).await?;
    for (ended, answer) in &mut judged {
        if *answer == VerifyAnswer::Happened && edited.contains(&ended.ordinal) {
            *answer =
                VerifyAnswer::Unknown("was asked before somebody changed the params".to_owned());
        }
    }
    let resolved = apply_answers(connection, asker, &judged, &locked).await?;
    record_answers(connection, asker.id, &judged, &resolved, round).await
}

/// Returns whether no worker has begun a question in this state.
fn is_waiting(state: &str) -> bool {
    matches!(state, "pending" | "retrying")
}

async fn list_ended_questions(
    connection: &mut PgConnection,
    asker: &LockedBulk,
) -> Result<Vec<EndedQuestion>, StoreError> {
    Ok(sqlx::query_as!(
        EndedQuestion,
        r#"-- questions_that_ended
        SELECT q.ordinal, i.execution_id, i.seen, i.state = 'unasked' AS "open!", q.question, e.state AS "state?", e.attempt AS "attempt?",
               coalesce(o.overdue, false) AS "overdue!",
               e.result, coalesce(e.error_class, e.outcome) || coalesce(': ' || e.error_message, '') AS error
        FROM sexton.bulk_questions q JOIN sexton.bulk_items i ON i.bulk_id = q.bulk_id AND i.ordinal = q.ordinal
        LEFT JOIN sexton.executions e ON e.id = q.question
        -- In a pool that is busy, or while the broker is away, it is waited for: somebody can run it.
        LEFT JOIN LATERAL (SELECT e.state IN ('pending', 'retrying')
            AND e.claimed_at < $3::timestamptz - $4 * interval '1 minute'
            AND NOT EXISTS (SELECT FROM sexton.offers f JOIN sexton.instances w ON w.id = f.instance_id
                WHERE f.task_type = e.task_type AND e.pool = ANY (w.pools) AND w.stopped_at IS NULL
                  AND w.heartbeat_at > $3 - interval '1 minute') AS overdue) o ON true
        WHERE q.bulk_id = $1 AND q.answer IS NULL
          AND (e.id IS NULL OR e.state NOT IN ('pending', 'running', 'retrying')
               OR o.overdue)
        ORDER BY q.ordinal LIMIT $2"#,
        asker.id,
        i64::from(MAX_BATCH_EXECUTIONS),
        asker.now,
        f64::from(MAX_QUESTION_WAIT_MINUTES)
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}

/// Locks the rows that will move, in the order of the ids: executions to resolve, and failed questions. Returns those
/// that another transaction has locked.
async fn lock_judged(
    connection: &mut PgConnection,
    judged: &[(EndedQuestion, VerifyAnswer)],
) -> Result<(HashMap<Uuid, LockedExecution>, HashSet<Uuid>), StoreError> {
    let mut items = Vec::new();
    for (ended, answer) in judged {
        let mut take = |id: Uuid, attempt: i32| -> Result<(), StoreError> {
            let (ordinal, id) = (ended.ordinal, ExecutionId::new(id));
            items.push(OpenItem { ordinal, id, seen: parse_attempt_number(attempt)? });
            Ok(())
        };
        if *answer == VerifyAnswer::Happened {
            take(ended.execution_id, ended.seen)?;
        }
        let given_up = ended.overdue || ended.state.as_deref() == Some("failed");
        if let (true, Some(attempt)) = (given_up, ended.attempt) {
            take(ended.question, attempt)?;
        }
    }
    let locked = lock_executions(connection, &items).await?;
    let busy = find_existing(connection, &items, &locked).await?;
    Ok((locked, busy))
}

/// Resolves executions whose effect has happened, discards failed questions (the failed list is for failures that an
/// operator must handle), and records both. Returns the resolved executions.
async fn apply_answers(
    connection: &mut PgConnection,
    asker: &LockedBulk,
    judged: &[(EndedQuestion, VerifyAnswer)],
    locked: &HashMap<Uuid, LockedExecution>,
) -> Result<HashSet<Uuid>, StoreError> {
    let (mut happened, mut failed_questions, mut overdue_questions) =
        (Vec::new(), Vec::new(), Vec::new());
    for (ended, answer) in judged {
        if *answer == VerifyAnswer::Happened {
            happened
                .push((ExecutionId::new(ended.execution_id), parse_attempt_number(ended.seen)?));
        }
        if let Some(it) = locked.get(&ended.question).filter(|it| it.state == "failed") {
            failed_questions
                .push((ExecutionId::new(ended.question), parse_attempt_number(it.attempt)?));
        }
        if ended.overdue {
            overdue_questions.push(ended.question);
        }
    }
    let resolved = transitions::resolve(connection, &happened, asker.now).await?;
    cancel_questions(connection, &overdue_questions, asker.now).await?;
    let given_up = transitions::discard(connection, &failed_questions, asker.now).await?;
    let action = |action, id: &Uuid, reason: Option<String>, after| {
        locked.get(id).map(|it| NewAction {
            action,
            job_id: it.job,
            execution_id: Some(*id),
            reason,
            before: Some(json!({"state": "failed", "attempt": it.attempt})),
            after: Some(after),
        })
    };
    let mut actions: Vec<NewAction> = Vec::with_capacity(resolved.len() + given_up.len());
    for id in &resolved {
        let after = json!({"state": "succeeded", "outcome": "verified"});
        actions.extend(action("resolve", id, asker.reason.clone(), after));
    }
    for id in &given_up {
        let reason = format!("a question of bulk {} that got no answer", asker.id);
        actions.extend(action("discard", id, Some(reason), json!({"state": "discarded"})));
    }
    record_bulk_actions(connection, &asker.actor, Some(asker.id), &actions, asker.now).await?;
    Ok(resolved.into_iter().collect())
}

/// Cancels questions that no worker has begun and whose rows are locked; their tickets open nothing any more.
async fn cancel_questions(
    connection: &mut PgConnection,
    questions: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- cancel_questions
        UPDATE sexton.executions SET state = 'cancelled', rev = rev + 1, next_attempt_at = NULL,
            finished_at = $2, outcome = 'cancelled'
        WHERE id = ANY ($1) AND state IN ('pending', 'retrying') AND asks_about IS NOT NULL",
        questions,
        now
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// Writes the answers, the items and the counts.
async fn record_answers(
    connection: &mut PgConnection,
    bulk: i64,
    judged: &[(EndedQuestion, VerifyAnswer)],
    resolved: &HashSet<Uuid>,
    round: &mut QuestionRound,
) -> Result<(), StoreError> {
    let mut refused = 0;
    let written: Vec<(i64, &str, Option<String>)> = judged
        .iter()
        .filter(|(ended, _)| ended.open)
        .map(|(ended, answer)| match answer {
            VerifyAnswer::Happened if resolved.contains(&ended.execution_id) => {
                round.resolved += 1;
                (ended.ordinal, "resolved", None)
            }
            VerifyAnswer::Happened => {
                refused += 1;
                let note = "it was not failed any more, or failed once more".to_owned();
                (ended.ordinal, "refused", Some(note))
            }
            VerifyAnswer::NotYet => {
                round.waiting += 1;
                (ended.ordinal, "waiting", None)
            }
            VerifyAnswer::Unknown(why) => {
                round.unknown += 1;
                let note: String =
                    format!("its verify task {why}").chars().take(MAX_NOTE_CHARS).collect();
                (ended.ordinal, "left", Some(note))
            }
        })
        .collect();
    let answers: Vec<String> =
        judged.iter().map(|(_, answer)| answer.as_str().to_owned()).collect();
    let ordinals: Vec<i64> = judged.iter().map(|(ended, _)| ended.ordinal).collect();
    write_items(connection, bulk, &written).await?;
    sqlx::query!(
        "-- questions_are_heard
        WITH q AS (
            UPDATE sexton.bulk_questions q SET answer = a.answer
            FROM unnest($2::bigint[], $3::text[]) AS a (ordinal, answer)
            WHERE q.bulk_id = $1 AND q.ordinal = a.ordinal)
        UPDATE sexton.bulks SET resolved = resolved + $4, refused = refused + $5, left_alone = left_alone + $6
        WHERE id = $1",
        bulk,
        &ordinals,
        &answers,
        round.resolved as i64,
        refused,
        round.unknown as i64
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
