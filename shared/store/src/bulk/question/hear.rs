//! What questions have said, and what becomes of their items.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_model::bulk::PORTION;
use sexton_model::id::ExecutionId;
use sexton_model::state::State;
use sexton_model::verify::{Answer, answer};
use sqlx::PgConnection;
use uuid::Uuid;

use super::super::rows::{Locked, Open, lock_executions, there, write_items};
use super::edited::edited;
use super::{Asker, Asking, Heard, LONGEST_WAIT_MINUTES};
use crate::StoreError;
use crate::bounded::Bounded;
use crate::error::known;
use crate::open::number;
use crate::operator::{AuditDeed, moves, record_of_bulk};

/// The longest note of an item, in characters.
const NOTE: usize = 500;

/// Judges the items whose questions have ended; those whose rows somebody holds come up again.
pub(super) async fn hear(
    connection: &mut PgConnection,
    asker: &Asker,
    done: &mut Asking,
) -> Result<(), StoreError> {
    let all = ended(connection, asker).await?;
    let mut judged = Vec::with_capacity(all.len());
    for heard in all {
        let state = match &heard.state {
            Some(state) => Some(known("executions.state", state, State::parse)?),
            None => None,
        };
        let said = match state {
            Some(_) if heard.overdue => Some(Answer::Unknown(format!(
                "waits for {LONGEST_WAIT_MINUTES} minutes, and no worker at work in its pool offers it"
            ))),
            _ if !heard.open => Some(Answer::Unknown("came too late".to_owned())),
            Some(state) => answer(state, heard.result.as_ref(), heard.error.as_deref()),
            None => {
                Some(Answer::Unknown("had its question removed before it was heard".to_owned()))
            }
        };
        if let Some(said) = said {
            judged.push((heard, said));
        }
    }
    if judged.is_empty() {
        return Ok(());
    }
    let (locked, busy) = lock(connection, &judged).await?;
    judged.retain(|(heard, _)| {
        // Somebody may have begun it before the lock: then it is waited for, and heard.
        let begun = heard.overdue && locked.get(&heard.question).is_none_or(|it| !waits(&it.state));
        !busy.contains(&heard.execution_id) && !busy.contains(&heard.question) && !begun
    });
    // Those that wait are looked at once more when their turn comes.
    let ordinals: Vec<i64> = judged.iter().map(|(heard, _)| heard.ordinal).collect();
    let edited = edited(connection, asker.id, &ordinals).await?;
    for (heard, said) in &mut judged {
        if *said == Answer::Happened && edited.contains(&heard.ordinal) {
            *said = Answer::Unknown("was asked before somebody changed the params".to_owned());
        }
    }
    let resolved = act(connection, asker, &judged, &locked).await?;
    record(connection, asker.id, &judged, &resolved, done).await
}

/// Whether a question in this state is begun by nobody yet.
fn waits(state: &str) -> bool {
    matches!(state, "pending" | "retrying")
}

async fn ended(connection: &mut PgConnection, asker: &Asker) -> Result<Vec<Heard>, StoreError> {
    Ok(sqlx::query_as!(
        Heard,
        r#"-- questions_that_ended
        SELECT q.ordinal, i.execution_id, i.seen, i.state = 'unasked' AS "open!", q.question, e.state AS "state?", e.attempt AS "attempt?",
               coalesce(o.overdue, false) AS "overdue!",
               e.result, coalesce(e.error_class, e.outcome) || coalesce(': ' || e.error_message, '') AS error
        FROM bulk_questions q JOIN bulk_items i ON i.bulk_id = q.bulk_id AND i.ordinal = q.ordinal
        LEFT JOIN executions e ON e.id = q.question
        -- In a pool that is busy, or while the broker is away, it is waited for: somebody can run it.
        LEFT JOIN LATERAL (SELECT e.state IN ('pending', 'retrying')
            AND e.claimed_at < $3::timestamptz - $4 * interval '1 minute'
            AND NOT EXISTS (SELECT FROM offers f JOIN instances w ON w.id = f.instance_id
                WHERE f.task_type = e.task_type AND e.pool = ANY (w.pools) AND w.stopped_at IS NULL
                  AND w.heartbeat_at > $3 - interval '1 minute') AS overdue) o ON true
        WHERE q.bulk_id = $1 AND q.answer IS NULL
          AND (e.id IS NULL OR e.state NOT IN ('pending', 'running', 'retrying')
               OR o.overdue)
        ORDER BY q.ordinal LIMIT $2"#,
        asker.id,
        i64::from(PORTION),
        asker.now,
        f64::from(LONGEST_WAIT_MINUTES)
    )
    .fetch_all(Bounded(connection))
    .await?)
}

/// Locks what is to be moved, in the order of the ids: executions that are resolved, questions that failed. And says
/// which of them somebody else holds.
async fn lock(
    connection: &mut PgConnection,
    judged: &[(Heard, Answer)],
) -> Result<(HashMap<Uuid, Locked>, HashSet<Uuid>), StoreError> {
    let mut items = Vec::new();
    for (heard, said) in judged {
        let mut take = |id: Uuid, attempt: i32| -> Result<(), StoreError> {
            let (ordinal, id) = (heard.ordinal, ExecutionId::new(id));
            items.push(Open { ordinal, id, seen: number(attempt)? });
            Ok(())
        };
        if *said == Answer::Happened {
            take(heard.execution_id, heard.seen)?;
        }
        let given_up = heard.overdue || heard.state.as_deref() == Some("failed");
        if let (true, Some(attempt)) = (given_up, heard.attempt) {
            take(heard.question, attempt)?;
        }
    }
    let locked = lock_executions(connection, &items).await?;
    let busy = there(connection, &items, &locked).await?;
    Ok((locked, busy))
}

/// Resolves what has happened, gives up the questions that failed (the graveyard is for what somebody has to put
/// right), and records both. Returns the executions that are resolved.
async fn act(
    connection: &mut PgConnection,
    asker: &Asker,
    judged: &[(Heard, Answer)],
    locked: &HashMap<Uuid, Locked>,
) -> Result<HashSet<Uuid>, StoreError> {
    let (mut happened, mut unheard, mut unbegun) = (Vec::new(), Vec::new(), Vec::new());
    for (heard, said) in judged {
        if *said == Answer::Happened {
            happened.push((ExecutionId::new(heard.execution_id), number(heard.seen)?));
        }
        if let Some(it) = locked.get(&heard.question).filter(|it| it.state == "failed") {
            unheard.push((ExecutionId::new(heard.question), number(it.attempt)?));
        }
        if heard.overdue {
            unbegun.push(heard.question);
        }
    }
    let resolved = moves::resolve(connection, &happened, asker.now).await?;
    cancel(connection, &unbegun, asker.now).await?;
    let given_up = moves::discard(connection, &unheard, asker.now).await?;
    let deed = |action, id: &Uuid, reason: Option<String>, after| {
        locked.get(id).map(|it| AuditDeed {
            action,
            job_id: it.job,
            execution_id: Some(*id),
            reason,
            before: Some(json!({"state": "failed", "attempt": it.attempt})),
            after: Some(after),
        })
    };
    let mut deeds: Vec<AuditDeed> = Vec::with_capacity(resolved.len() + given_up.len());
    for id in &resolved {
        let after = json!({"state": "succeeded", "outcome": "verified"});
        deeds.extend(deed("resolve", id, asker.reason.clone(), after));
    }
    for id in &given_up {
        let reason = format!("a question of bulk {} that could not be asked", asker.id);
        deeds.extend(deed("discard", id, Some(reason), json!({"state": "discarded"})));
    }
    record_of_bulk(connection, &asker.actor, Some(asker.id), &deeds, asker.now).await?;
    Ok(resolved.into_iter().collect())
}

/// Takes back questions that nobody has begun and whose rows are locked; their tickets open nothing any more.
async fn cancel(
    connection: &mut PgConnection,
    questions: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- cancel_questions
        UPDATE executions SET state = 'cancelled', rev = rev + 1, next_attempt_at = NULL,
            finished_at = $2, outcome = 'cancelled'
        WHERE id = ANY ($1) AND state IN ('pending', 'retrying') AND asks_about IS NOT NULL",
        questions,
        now
    )
    .execute(Bounded(connection))
    .await?;
    Ok(())
}

/// Writes the answers, the items and the counts.
async fn record(
    connection: &mut PgConnection,
    bulk: i64,
    judged: &[(Heard, Answer)],
    resolved: &HashSet<Uuid>,
    done: &mut Asking,
) -> Result<(), StoreError> {
    let mut refused = 0;
    let written: Vec<(i64, &str, Option<String>)> = judged
        .iter()
        .filter(|(heard, _)| heard.open)
        .map(|(heard, said)| match said {
            Answer::Happened if resolved.contains(&heard.execution_id) => {
                done.resolved += 1;
                (heard.ordinal, "resolved", None)
            }
            Answer::Happened => {
                refused += 1;
                let note = "it was not failed any more, or failed once more".to_owned();
                (heard.ordinal, "refused", Some(note))
            }
            Answer::NotYet => {
                done.waiting += 1;
                (heard.ordinal, "waiting", None)
            }
            Answer::Unknown(why) => {
                done.unknown += 1;
                let note: String = format!("its verify task {why}").chars().take(NOTE).collect();
                (heard.ordinal, "left", Some(note))
            }
        })
        .collect();
    let answers: Vec<String> = judged.iter().map(|(_, said)| said.as_str().to_owned()).collect();
    let ordinals: Vec<i64> = judged.iter().map(|(heard, _)| heard.ordinal).collect();
    write_items(connection, bulk, &written).await?;
    sqlx::query!(
        "-- questions_are_heard
        WITH q AS (
            UPDATE bulk_questions q SET answer = a.answer
            FROM unnest($2::bigint[], $3::text[]) AS a (ordinal, answer)
            WHERE q.bulk_id = $1 AND q.ordinal = a.ordinal)
        UPDATE bulks SET resolved = resolved + $4, refused = refused + $5, left_alone = left_alone + $6
        WHERE id = $1",
        bulk,
        &ordinals,
        &answers,
        done.resolved as i64,
        refused,
        done.unknown as i64
    )
    .execute(Bounded(connection))
    .await?;
    Ok(())
}
