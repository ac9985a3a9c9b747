//! Records pings.

use std::collections::HashSet;

use sexton_model::check::PingKind;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::{Now, Store, StoreError};

/// The length of SHA-256, in bytes.
pub const HASH_BYTES: usize = 32;
/// What a check that a ping creates expects: a ping a day, with an hour of grace.
const CREATED: (i64, i64) = (86_400_000, 3_600_000);

/// Which check a ping is for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PingTarget {
    /// By its id.
    Id(Uuid),
    /// By its name, with a key that may ping it.
    Name {
        /// SHA-256 of the key.
        key: [u8; HASH_BYTES],
        /// The check's name.
        name: String,
    },
}

/// A ping to be recorded. Its texts hold no NUL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewPing {
    /// The check.
    pub target: PingTarget,
    /// What it reports.
    pub kind: PingKind,
    /// The exit status.
    pub exit_code: Option<u8>,
    /// The run.
    pub rid: Option<Uuid>,
    /// What it sent along, at most [`sexton_model::check::MAX_BODY_BYTES`] before unreadable bytes were replaced.
    pub body: Option<String>,
    /// The program that sent it, at most 200 characters.
    pub agent: Option<String>,
}

/// Records pings in one statement, which is durable when this returns. Returns the places, in `pings`, of those that were recorded; the
/// others name no check. Within a statement each arrives a microsecond after the one before.
///
/// # Errors
///
/// [`StoreError`]; whether they were recorded may be unknown.
pub async fn record(
    store: &Store,
    pings: &[NewPing],
    now: Now,
) -> Result<HashSet<usize>, StoreError> {
    let by_id = |ping: &NewPing| match &ping.target {
        PingTarget::Id(id) => Some(*id),
        PingTarget::Name { .. } => None,
    };
    let by_name = |ping: &NewPing| match &ping.target {
        PingTarget::Id(_) => (None, None),
        PingTarget::Name { key, name } => (Some(key.to_vec()), Some(name.clone())),
    };
    let ids: Vec<Option<Uuid>> = pings.iter().map(by_id).collect();
    let (keys, names): (Vec<Option<Vec<u8>>>, Vec<Option<String>>) =
        pings.iter().map(by_name).unzip();
    let kinds: Vec<String> = pings.iter().map(|ping| ping.kind.as_str().to_owned()).collect();
    let codes: Vec<Option<i32>> = pings.iter().map(|ping| ping.exit_code.map(i32::from)).collect();
    let rids: Vec<Option<Uuid>> = pings.iter().map(|ping| ping.rid).collect();
    let bodies: Vec<Option<String>> = pings.iter().map(|ping| ping.body.clone()).collect();
    let agents: Vec<Option<String>> = pings.iter().map(|ping| ping.agent.clone()).collect();
    let recorded = sqlx::query_scalar!(
        r#"-- record_pings
        WITH given AS MATERIALIZED (
            SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::text[], $4::text[], $5::int[], $6::uuid[], $7::text[], $8::text[])
                WITH ORDINALITY AS g (id, key_hash, name, kind, exit_code, rid, body, agent, no)),
        known AS MATERIALIZED (
            SELECT g.no, c.id, g.kind, g.exit_code, g.rid, g.body, g.agent, c.is_open, c.next_check_at,
                   coalesce(c.max_runtime_ms, c.grace_ms) AS run_ms
            FROM given g JOIN sexton.checks c ON c.id = g.id WHERE g.id IS NOT NULL AND c.deleted_at IS NULL
            UNION ALL
            SELECT g.no, c.id, g.kind, g.exit_code, g.rid, g.body, g.agent, c.is_open, c.next_check_at,
                   coalesce(c.max_runtime_ms, c.grace_ms)
            FROM given g JOIN sexton.ping_keys k ON k.key_hash = g.key_hash
            JOIN sexton.checks c ON c.name = g.name AND c.ping_key = k.name AND c.deleted_at IS NULL WHERE g.id IS NULL),
        written AS (
            INSERT INTO sexton.pings (check_id, at, kind, exit_code, rid, body, agent)
            SELECT k.id, coalesce($9, now()) + k.no * interval '1 microsecond', k.kind, k.exit_code, k.rid, k.body, k.agent
            FROM known k ORDER BY k.no),
        woken AS (
            INSERT INTO sexton.check_wakeups (check_id)
            SELECT DISTINCT k.id FROM known k
            WHERE k.kind = 'fail' OR (k.is_open AND k.kind = 'success')
               OR (k.kind = 'start' AND k.next_check_at NOT BETWEEN coalesce($9, now()) + interval '10 seconds'
                   AND coalesce($9, now()) + k.run_ms * interval '1 millisecond'))
        SELECT no AS "no!" FROM known"#,
        &ids as &[Option<Uuid>],
        &keys as &[Option<Vec<u8>>],
        &names as &[Option<String>],
        &kinds,
        &codes as &[Option<i32>],
        &rids as &[Option<Uuid>],
        &bodies as &[Option<String>],
        &agents as &[Option<String>],
        now
    )
    .fetch_all(store.with_timeout())
    .await?;
    Ok(recorded.into_iter().map(|number| number as usize - 1).collect())
}

/// What became of a check that a ping wants to create.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Creation {
    /// It exists now: created, or by another ping at the same time.
    Exists {
        /// Whether this call created it.
        created: bool,
    },
    /// There is no such key.
    UnknownKey,
    /// The key has as many checks as its pings may create.
    TooMany,
    /// Another key's check, or one without a key, has this name.
    NameTaken,
}

/// Creates a check for a ping by key and name, with a period of a day and an hour of grace. A ping that must be refused locks nothing,
/// so that a key that is full, or wrong, holds nobody up. To create is one transaction, which locks the key: the limit holds whatever
/// comes at the same time.
///
/// # Errors
///
/// [`StoreError`].
pub async fn create(
    store: &Store,
    key: &[u8; HASH_BYTES],
    name: &str,
    now: Now,
) -> Result<Creation, StoreError> {
    let mut tx = store.begin().await?;
    if let Err(refused) = find(&mut tx, key, name).await? {
        return Ok(refused);
    }
    sqlx::query!(
        "-- lock_ping_key
        SELECT FROM sexton.ping_keys WHERE key_hash = $1 FOR NO KEY UPDATE",
        key.as_slice()
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    // Again, since the lock may have been waited for.
    let key_name = match find(&mut tx, key, name).await? {
        Ok(name) => name,
        Err(refused) => return Ok(refused),
    };
    let at = instant(&mut tx, now).await?;
    let (every_ms, grace_ms) = CREATED;
    let created = sqlx::query!(
        "-- create_pinged_check
        INSERT INTO sexton.checks (id, name, ping_key, every_ms, grace_ms, created_at, changed_at, next_check_at, checked_at)
        VALUES ($1, $2, $3, $4, $5, $6, $6, $6, $6) ON CONFLICT DO NOTHING",
        Uuid::new_v4(),
        name,
        key_name,
        every_ms,
        grace_ms,
        at
    )
    .execute(WithTimeout(&mut *tx))
    .await?
    .rows_affected()
        > 0;
    if !created {
        return Ok(Creation::NameTaken);
    }
    sqlx::query!(
        "-- record_pinged_check
        INSERT INTO sexton.operator_actions (at, actor, action, after)
        VALUES ($1, $2, 'create_check', jsonb_build_object('name', $3::text, 'key', $4::text))",
        at,
        format!("ping key {key_name}"),
        name,
        key_name
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    commit(tx).await?;
    Ok(Creation::Exists { created: true })
}

/// Returns the name of the key if it may create the check; otherwise what becomes of the ping.
async fn find(
    connection: &mut PgConnection,
    key: &[u8; HASH_BYTES],
    name: &str,
) -> Result<Result<String, Creation>, StoreError> {
    let row = sqlx::query!(
        r#"-- find_check_to_create
        SELECT k.name, c.id IS NOT NULL AS "is_taken!", c.ping_key AS "owner?",
               (SELECT count(*) FROM sexton.checks o WHERE o.ping_key = k.name AND o.deleted_at IS NULL) >= k.max_checks AS "is_full!"
        FROM sexton.ping_keys k LEFT JOIN sexton.checks c ON c.name = $2 AND c.deleted_at IS NULL
        WHERE k.key_hash = $1"#,
        key.as_slice(),
        name
    )
    .fetch_optional(WithTimeout(connection))
    .await?;
    Ok(match row {
        None => Err(Creation::UnknownKey),
        Some(row) if row.is_taken && row.owner.as_ref() == Some(&row.name) => {
            Err(Creation::Exists { created: false })
        }
        Some(row) if row.is_taken => Err(Creation::NameTaken),
        Some(row) if row.is_full => Err(Creation::TooMany),
        Some(row) => Ok(row.name),
    })
}
