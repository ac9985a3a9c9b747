//! Output of running attempts, stored as it arrives.
//!
//! One statement for a batch of attempts, each only while the attempt still belongs to its worker: if another process
//! has ended an attempt, its worker's late output is not stored. An existing chunk stays as it is, so a worker may
//! repeat a write after a lost answer. The settlement writes the end of an attempt's output.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sexton_model::output::Chunk;
use uuid::Uuid;

use crate::attempts::lease::{AttemptFence, find_still_held};
use crate::{Store, StoreError};

/// A part of an attempt's output.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OutputPart {
    /// Chunks to be stored.
    pub chunks: Vec<Arc<Chunk>>,
    /// Lines to remove: those with numbers above the first and below the second.
    pub superseded: Option<(i64, i64)>,
    /// The task's latest progress, if it is new.
    pub progress: Option<Value>,
}

impl OutputPart {
    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.superseded.is_none() && self.progress.is_none()
    }
}

/// The result for one part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteOutcome {
    /// It is stored.
    Done,
    /// Another transaction held the row's lock for a moment: write again in the next round.
    Locked,
    /// The attempt no longer belongs to this worker: nothing was stored, and nothing will be.
    Fenced,
}

/// Stores parts, at most one per execution. Returns the results in the order given.
///
/// # Errors
///
/// [`StoreError::Data`] when a text of the batch cannot be stored: nothing was written; write one by one to find the
/// culprit.
pub async fn write(
    store: &Store,
    parts: &[(AttemptFence, OutputPart)],
) -> Result<Vec<WriteOutcome>, StoreError> {
    let ids: Vec<Uuid> = parts.iter().map(|(held, _)| held.execution_id.get()).collect();
    let attempts: Vec<i32> = parts.iter().map(|(held, _)| held.attempt.get()).collect();
    let tokens: Vec<Uuid> = parts.iter().map(|(held, _)| held.token.get()).collect();
    let columns = Columns::of(parts.iter().map(|(held, part)| (held.execution_id.get(), part)));
    let written = sqlx::query_scalar!(
        r#"-- write_output
        WITH r AS (
            SELECT * FROM unnest($1::uuid[], $2::int[], $3::uuid[], $4::bigint[], $5::bigint[],
                                 $6::jsonb[])
                 AS r (id, attempt, token, above, below, progress)),
        l AS MATERIALIZED (
            SELECT r.*, e.worker_id, e.lease_ms, coalesce(e.started_at, e.claimed_at) AS started_at
            FROM sexton.executions e JOIN r ON r.id = e.id
            WHERE e.attempt = r.attempt AND e.open_token = r.token AND e.state = 'running'
            ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED),
        c AS (
            INSERT INTO sexton.attempt_output (execution_id, number, first_line, lines, bytes_before, bytes,
                                        from_at, to_at, content)
            SELECT l.id, l.attempt, c.first_line, c.lines, c.bytes_before, c.bytes, c.from_at, c.to_at,
                   c.content
            FROM l JOIN unnest($7::uuid[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[],
                               $12::timestamptz[], $13::timestamptz[], $14::text[])
                 AS c (id, first_line, lines, bytes_before, bytes, from_at, to_at, content)
                 ON c.id = l.id
            ON CONFLICT DO NOTHING),
        d AS (
            DELETE FROM sexton.attempt_output o USING l
            WHERE o.execution_id = l.id AND o.number = l.attempt
              AND o.first_line > l.above AND o.first_line < l.below),
        -- An attempt with output has its row from the first of it on. Without progress a row that is there stays
        -- untouched.
        a AS (
            INSERT INTO sexton.attempts (execution_id, number, worker_id, lease_ms, opened_at)
            SELECT l.id, l.attempt, l.worker_id, l.lease_ms, l.started_at FROM l
            WHERE l.progress IS NULL
              AND NOT EXISTS (SELECT FROM sexton.attempts t WHERE t.execution_id = l.id AND t.number = l.attempt)
            ON CONFLICT DO NOTHING),
        p AS (
            INSERT INTO sexton.attempts (execution_id, number, worker_id, lease_ms, opened_at, progress)
            SELECT l.id, l.attempt, l.worker_id, l.lease_ms, l.started_at, l.progress FROM l
            WHERE l.progress IS NOT NULL
            ON CONFLICT (execution_id, number) DO UPDATE SET progress = EXCLUDED.progress)
        SELECT id AS "id!" FROM l"#,
        &ids,
        &attempts,
        &tokens,
        &columns.above as &[Option<i64>],
        &columns.below as &[Option<i64>],
        &columns.progress as &[Option<Value>],
        &columns.ids,
        &columns.first_lines,
        &columns.lines,
        &columns.bytes_before,
        &columns.bytes,
        &columns.from,
        &columns.to,
        &columns.contents as &[&str]
    )
    .fetch_all(store.with_timeout())
    .await?;
    let written: HashSet<Uuid> = written.into_iter().collect();
    let untouched: Vec<AttemptFence> = parts
        .iter()
        .map(|(held, _)| *held)
        .filter(|held| !written.contains(&held.execution_id.get()))
        .collect();
    let locked = find_still_held(store, &untouched).await?;
    Ok(parts
        .iter()
        .map(|(held, _)| match held.execution_id {
            id if written.contains(&id.get()) => WriteOutcome::Done,
            id if locked.contains(&id) => WriteOutcome::Locked,
            _ => WriteOutcome::Fenced,
        })
        .collect())
}

/// Parts as arrays for the statement: one entry per part, and one per chunk.
#[derive(Default)]
pub(crate) struct Columns<'a> {
    pub(crate) above: Vec<Option<i64>>,
    pub(crate) below: Vec<Option<i64>>,
    pub(crate) progress: Vec<Option<Value>>,
    pub(crate) ids: Vec<Uuid>,
    pub(crate) first_lines: Vec<i64>,
    pub(crate) lines: Vec<i64>,
    pub(crate) bytes_before: Vec<i64>,
    pub(crate) bytes: Vec<i64>,
    pub(crate) from: Vec<DateTime<Utc>>,
    pub(crate) to: Vec<DateTime<Utc>>,
    pub(crate) contents: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    pub(crate) fn of(parts: impl Iterator<Item = (Uuid, &'a OutputPart)>) -> Self {
        let mut columns = Self::default();
        for (id, part) in parts {
            columns.above.push(part.superseded.map(|(above, _)| above));
            columns.below.push(part.superseded.map(|(_, below)| below));
            columns.progress.push(part.progress.clone());
            for chunk in &part.chunks {
                columns.ids.push(id);
                columns.first_lines.push(chunk.first_line);
                columns.lines.push(chunk.lines);
                columns.bytes_before.push(chunk.bytes_before);
                columns.bytes.push(chunk.bytes);
                columns.from.push(chunk.from);
                columns.to.push(chunk.to);
                columns.contents.push(&chunk.text);
            }
        }
        columns
    }
}

/// Returns the chunks of attempt `number` that begin after line `after` (0: all), in the order of their lines; at
/// most `limit`.
pub async fn list_chunks(
    store: &Store,
    id: Uuid,
    number: i32,
    after: i64,
    limit: i64,
) -> Result<Vec<Chunk>, StoreError> {
    Ok(sqlx::query_as!(
        Chunk,
        r#"-- output_chunks
        SELECT first_line, lines, bytes_before, bytes, from_at AS "from", to_at AS "to",
               content AS text
        FROM sexton.attempt_output WHERE execution_id = $1 AND number = $2 AND first_line > $3
        ORDER BY first_line LIMIT $4"#,
        id,
        number,
        after,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// An attempt with the chunks of its output.
#[derive(Clone, PartialEq, Debug)]
pub struct AttemptWithChunks {
    /// Its number.
    pub number: i32,
    /// How it ended; `None`: it is open.
    pub outcome: Option<String>,
    /// Its first chunks, in the order of their lines.
    pub chunks: Vec<Chunk>,
    /// The output that a worker from before chunks stored; `None` if there are chunks.
    pub legacy_output: Option<Value>,
}

/// Returns one attempt, the last one if the number is `None`, with at most `limit` chunks of its output. `None` if the attempt does not
/// exist.
pub async fn find_with_chunks(
    store: &Store,
    id: Uuid,
    number: Option<i32>,
    limit: i64,
) -> Result<Option<AttemptWithChunks>, StoreError> {
    let rows = sqlx::query!(
        r#"-- attempt_with_chunks
        SELECT a.number AS "number!", a.outcome AS "outcome?",
               CASE WHEN c.first_line IS NULL THEN a.output END AS "legacy_output?",
               c.first_line AS "first_line?", c.lines AS "lines?", c.bytes_before AS "bytes_before?", c.bytes AS "bytes?",
               c.from_at AS "from?", c.to_at AS "to?", c.content AS "text?"
        FROM (SELECT number, outcome, output FROM sexton.all_attempts
              WHERE execution_id = $1 AND ($2::int IS NULL OR number = $2)
              ORDER BY number DESC LIMIT 1) a
        LEFT JOIN LATERAL (
            SELECT o.* FROM sexton.attempt_output o WHERE o.execution_id = $1 AND o.number = a.number
            ORDER BY o.first_line LIMIT $3) c ON true
        ORDER BY c.first_line"#,
        id,
        number,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    let mut found: Option<AttemptWithChunks> = None;
    for row in rows {
        let attempt = found.get_or_insert_with(|| AttemptWithChunks {
            number: row.number,
            outcome: row.outcome,
            chunks: Vec::new(),
            legacy_output: row.legacy_output,
        });
        if let (Some(first_line), Some(lines)) = (row.first_line, row.lines)
            && let (Some(bytes_before), Some(bytes)) = (row.bytes_before, row.bytes)
            && let (Some(from), Some(to), Some(text)) = (row.from, row.to, row.text)
        {
            let chunk = Chunk { first_line, lines, bytes_before, bytes, from, to, text };
            attempt.chunks.push(chunk);
        }
    }
    Ok(found)
}

/// The state of an attempt, for readers that follow its output.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AttemptStatus {
    /// The attempt's number.
    pub number: i32,
    /// How it ended; `None`: it is open.
    pub outcome: Option<String>,
}

/// Returns an execution's state and its attempts from number `from` on, in order; at most `limit` of them. `None`:
/// the execution does not exist. The output of an ended attempt is stored when its outcome is.
pub async fn list_attempt_statuses(
    store: &Store,
    id: Uuid,
    from: i32,
    limit: i64,
) -> Result<Option<(String, Vec<AttemptStatus>)>, StoreError> {
    let rows = sqlx::query!(
        r#"-- output_stages
        SELECT e.state, a.number AS "number?", a.outcome AS "outcome?"
        FROM sexton.executions e
        LEFT JOIN sexton.all_attempts a ON a.execution_id = e.id AND a.number >= $2
        WHERE e.id = $1 ORDER BY a.number LIMIT $3"#,
        id,
        from,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    let Some(state) = rows.first().map(|row| row.state.clone()) else { return Ok(None) };
    let stages = rows
        .into_iter()
        .filter_map(|row| Some(AttemptStatus { number: row.number?, outcome: row.outcome }))
        .collect();
    Ok(Some((state, stages)))
}
