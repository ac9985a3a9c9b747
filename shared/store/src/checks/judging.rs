//! Judges checks: one transaction, with the due checks locked.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::check::{CheckMemory, Endpoint, Ping, PingKind};
use sexton_model::incident::SubjectKind;
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use super::{CheckRow, KEPT_PINGS};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::incidents::{self, Occurrence};
use crate::{Now, Store, StoreError};

/// Takes the oldest wake-ups, at most `limit`, and makes their checks due at once. Returns how many it took. Those of a check that
/// somebody judges at this moment stay until it is judged.
///
/// # Errors
///
/// [`StoreError`].
pub async fn take_wakeups(store: &Store, limit: i64, now: Now) -> Result<u64, StoreError> {
    let taken = sqlx::query_scalar!(
        r#"-- take_check_wakeups
        WITH oldest AS MATERIALIZED (
            SELECT id, check_id FROM sexton.check_wakeups ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED),
        woken AS MATERIALIZED (
            SELECT c.id FROM sexton.checks c WHERE c.id IN (SELECT check_id FROM oldest)
            ORDER BY c.id FOR NO KEY UPDATE SKIP LOCKED),
        updated AS (
            UPDATE sexton.checks c SET next_check_at = least(c.next_check_at, coalesce($2, now()))
            FROM woken w WHERE c.id = w.id),
        taken AS (
            DELETE FROM sexton.check_wakeups u USING oldest o
            WHERE u.id = o.id AND (o.check_id IN (SELECT id FROM woken)
                                   OR NOT EXISTS (SELECT FROM sexton.checks c WHERE c.id = o.check_id))
            RETURNING 1)
        SELECT count(*) AS "count!" FROM taken"#,
        limit,
        now
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(taken as u64)
}

/// Returns the time until the next check is due, zero if it is; `None`: none before an event.
///
/// # Errors
///
/// [`StoreError`].
pub async fn next_due(store: &Store, now: Now) -> Result<Option<Duration>, StoreError> {
    let seconds = sqlx::query_scalar!(
        r#"-- next_due_check
        SELECT extract(epoch FROM min(next_check_at) - coalesce($1, now()))::float8 FROM sexton.checks
        WHERE next_check_at < 'infinity'"#,
        now
    )
    .fetch_one(store.with_timeout())
    .await?;
    // More than a year is cut, so that the conversion cannot fail.
    Ok(seconds.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 31_536_000.0))))
}

/// A check that is due, and locked.
#[derive(Clone, PartialEq, Debug)]
pub struct DueCheck {
    /// Its definition.
    pub row: CheckRow,
    /// What it remembers.
    pub memory: CheckMemory,
}

/// A judgement of checks: one transaction, with the due checks locked.
#[derive(Debug)]
pub struct CheckRound {
    tx: Transaction<'static, Postgres>,
    /// The checks that are judged, the longest due first.
    pub due: Vec<DueCheck>,
    /// The transaction's instant.
    pub now: DateTime<Utc>,
    /// Since when pings are accepted.
    pub endpoint: Option<Endpoint>,
}

impl CheckRound {
    /// Locks the checks that are due, at most `limit`; `None`: none is. Those that another scheduler judges are passed by.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn begin(store: &Store, limit: i64, now: Now) -> Result<Option<Self>, StoreError> {
        let mut tx = store.begin().await?;
        let rows = sqlx::query!(
            r#"-- lock_due_checks
            SELECT c.id, c.name, c.ping_key, c.every_ms, c.schedule, c.timezone, c.grace_ms, c.early_by_ms, c.max_runtime_ms,
                   c.alert_after, c.recover_after, c.remind_every_ms, c.severity, c.labels, c.is_paused, c.changed_at, c.deleted_at,
                   c.violations, c.violated_at, c.counted, c.settled_to, coalesce($2, now()) AS "now!",
                   EXISTS (SELECT FROM sexton.incidents i WHERE i.subject_kind = 'check' AND i.subject = c.id::text
                           AND i.state <> 'resolved') AS "is_open!"
            FROM sexton.checks c WHERE c.next_check_at <= coalesce($2, now())
            ORDER BY c.next_check_at LIMIT $1 FOR NO KEY UPDATE OF c SKIP LOCKED"#,
            limit,
            now
        )
        .fetch_all(WithTimeout(&mut *tx))
        .await?;
        let Some(now) = rows.first().map(|row| row.now) else { return Ok(None) };
        let endpoint = sqlx::query_as!(
            EndpointRow,
            "-- ping_endpoint\nSELECT paused_from, up_since, seen_at FROM sexton.ping_endpoint"
        )
        .fetch_optional(WithTimeout(&mut *tx))
        .await?;
        let due = rows.into_iter().map(|row| DueCheck {
            memory: CheckMemory {
                violations: row.violations as u32,
                violated_at: row.violated_at,
                counted: row.counted,
                settled_to: row.settled_to,
                is_open: row.is_open,
            },
            row: CheckRow {
                id: row.id,
                name: row.name,
                ping_key: row.ping_key,
                every_ms: row.every_ms,
                schedule: row.schedule,
                timezone: row.timezone,
                grace_ms: row.grace_ms,
                early_by_ms: row.early_by_ms,
                max_runtime_ms: row.max_runtime_ms,
                alert_after: row.alert_after,
                recover_after: row.recover_after,
                remind_every_ms: row.remind_every_ms,
                severity: row.severity,
                labels: row.labels,
                is_paused: row.is_paused,
                changed_at: row.changed_at,
                deleted_at: row.deleted_at,
            },
        });
        let endpoint = endpoint.map(|row| Endpoint {
            paused_from: row.paused_from,
            up_since: row.up_since,
            seen_at: row.seen_at,
        });
        Ok(Some(Self { due: due.collect(), tx, now, endpoint }))
    }

    /// Reads the newest pings of the due checks without logs, each check's in the order in which they arrived.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn read_pings(&mut self) -> Result<HashMap<Uuid, Vec<Ping>>, StoreError> {
        let checks: Vec<Uuid> = self.due.iter().map(|check| check.row.id).collect();
        let rows = sqlx::query!(
            r#"-- read_pings
            SELECT p.check_id, p.id, p.at, p.kind, p.exit_code, p.rid, CASE WHEN p.kind = 'fail' THEN right(p.body, 1000) END AS body, p.agent
            FROM unnest($1::uuid[]) AS c (id)
            CROSS JOIN LATERAL (
                SELECT * FROM sexton.pings o WHERE o.check_id = c.id AND (o.kind = 'log') IS FALSE
                ORDER BY o.id DESC LIMIT $2) p
            ORDER BY p.at, p.id"#,
            &checks,
            KEPT_PINGS
        )
        .fetch_all(WithTimeout(&mut *self.tx))
        .await?;
        let mut pings: HashMap<Uuid, Vec<Ping>> = HashMap::new();
        for row in rows {
            // A kind of a newer version says nothing to this one.
            let Some(kind) = PingKind::parse(&row.kind) else { continue };
            pings.entry(row.check_id).or_default().push(Ping {
                id: row.id,
                at: row.at,
                kind,
                exit_code: row.exit_code.and_then(|code| u8::try_from(code).ok()),
                rid: row.rid,
                body: row.body,
                agent: row.agent,
            });
        }
        Ok(pings)
    }

    /// Writes what was found, and commits. `checked`: what each check remembers, and when it
    /// is due again; `None`: after an event. A check that is left out stays due.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; whether it was committed may be unknown, and the round is repeated then.
    pub async fn finish(
        mut self,
        checked: &[(Uuid, CheckMemory, Option<DateTime<Utc>>)],
        occurrences: &[Occurrence],
        recovered: &[(SubjectKind, String, String)],
    ) -> Result<(), StoreError> {
        self.write(checked).await?;
        incidents::report(&mut self.tx, occurrences, self.now).await?;
        incidents::recover(&mut self.tx, recovered, self.now).await?;
        commit(self.tx).await?;
        Ok(())
    }

    async fn write(
        &mut self,
        checked: &[(Uuid, CheckMemory, Option<DateTime<Utc>>)],
    ) -> Result<(), StoreError> {
        let ids: Vec<Uuid> = checked.iter().map(|(id, ..)| *id).collect();
        let next: Vec<Option<DateTime<Utc>>> = checked.iter().map(|(_, _, next)| *next).collect();
        let memories = || checked.iter().map(|(_, memory, _)| memory);
        let violations: Vec<i32> =
            memories().map(|memory| i32::try_from(memory.violations).unwrap_or(i32::MAX)).collect();
        let violated: Vec<Option<DateTime<Utc>>> = memories().map(|one| one.violated_at).collect();
        let counted: Vec<Value> = memories().map(|memory| json!(memory.counted)).collect();
        let settled: Vec<Option<DateTime<Utc>>> = memories().map(|one| one.settled_to).collect();
        let open: Vec<bool> = memories().map(|memory| memory.is_open).collect();
        sqlx::query!(
            "-- write_judged_checks
            UPDATE sexton.checks c SET checked_at = $8, next_check_at = coalesce(j.next_check_at, 'infinity'),
                violations = j.violations, violated_at = j.violated_at, settled_to = j.settled_to, is_open = j.is_open,
                counted = ARRAY(SELECT jsonb_array_elements_text(j.counted)::bigint)
            FROM unnest($1::uuid[], $2::timestamptz[], $3::int[], $4::timestamptz[], $5::jsonb[], $6::timestamptz[], $7::bool[])
                AS j (id, next_check_at, violations, violated_at, counted, settled_to, is_open)
            WHERE c.id = j.id",
            &ids,
            &next as &[Option<DateTime<Utc>>],
            &violations,
            &violated as &[Option<DateTime<Utc>>],
            &counted,
            &settled as &[Option<DateTime<Utc>>],
            &open,
            self.now
        )
        .execute(WithTimeout(&mut *self.tx))
        .await?;
        Ok(())
    }
}

struct EndpointRow {
    paused_from: Option<DateTime<Utc>>,
    up_since: DateTime<Utc>,
    seen_at: DateTime<Utc>,
}
