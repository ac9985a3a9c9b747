//! Keys of requests to the API: a request that is sent again with its key is not carried out again.
//!
//! A row is written before a request is carried out, and gets its answer afterwards. A crash in between leaves a row without an answer, which says
//! that nobody knows whether the request was carried out.

use serde_json::Value;

use crate::{Now, Store, StoreError};

/// How long a key stands for its request, in hours.
pub const KEY_HOURS: i32 = 24;
/// Maximum number of keys that a caller uses in that time.
pub const MAX_KEYS_OF_CALLER: i64 = 10_000;
/// Longest answer that is kept, in bytes.
pub const MAX_KEPT_BYTES: usize = 64 * 1024;

/// A key as its caller uses it.
#[derive(Clone, Copy, Debug)]
pub struct RequestKey<'a> {
    /// Who sends the request, by the name in the audit.
    pub caller: &'a str,
    /// The key.
    pub key: &'a str,
    /// SHA-256 of the request.
    pub request: &'a [u8; 32],
}

/// What a key stands for.
#[derive(Clone, PartialEq, Debug)]
pub enum KeyClaim {
    /// The request comes for the first time: carry it out, then [`finish`] or [`release`].
    New,
    /// It stands for another request.
    OtherRequest,
    /// The request was carried out.
    Finished(KeptAnswer),
    /// The request has no answer yet.
    Unfinished {
        /// Milliseconds since it came.
        age_ms: i64,
    },
}

/// The answer to a request.
#[derive(Clone, PartialEq, Debug)]
pub struct KeptAnswer {
    /// Its status.
    pub status: u16,
    /// Its headers that are kept, an object of texts.
    pub headers: Value,
    /// Its body; `None`: it is not kept.
    pub body: Option<Vec<u8>>,
}

/// Claims a key for a request, in one statement: of two requests at the same time one is the first. `None`: the caller has used
/// [`MAX_KEYS_OF_CALLER`].
///
/// # Errors
///
/// [`StoreError`]; the request may not be carried out.
pub async fn claim(
    store: &Store,
    key: RequestKey<'_>,
    now: Now,
) -> Result<Option<KeyClaim>, StoreError> {
    let claimed = sqlx::query!(
        "-- claim_request_key
        INSERT INTO sexton.request_keys AS k (caller, key, request, created_at)
        SELECT $1, $2, $3, coalesce($4::timestamptz, now())
        WHERE (SELECT count(*) FROM (
                   SELECT FROM sexton.request_keys u
                   WHERE u.caller = $1 AND u.created_at > coalesce($4, now()) - $5::int * interval '1 hour' LIMIT $6) s) < $6
        ON CONFLICT (caller, key) DO UPDATE
        SET request = excluded.request, created_at = excluded.created_at, finished_at = NULL, status = NULL,
            headers = NULL, body = NULL
        WHERE k.created_at <= excluded.created_at - $5::int * interval '1 hour'",
        key.caller,
        key.key,
        key.request.as_slice(),
        now,
        KEY_HOURS,
        MAX_KEYS_OF_CALLER
    )
    .execute(store.with_timeout())
    .await?
    .rows_affected();
    if claimed > 0 {
        return Ok(Some(KeyClaim::New));
    }
    if let Some(found) = find(store, key, now).await? {
        return Ok(Some(found));
    }
    // Between the two statements the first request may have been refused, and its key freed.
    let is_free = count(store, key.caller, now).await? < MAX_KEYS_OF_CALLER;
    Ok(is_free.then_some(KeyClaim::Unfinished { age_ms: 0 }))
}

/// Returns what a key stands for; `None`: nothing.
async fn find(
    store: &Store,
    key: RequestKey<'_>,
    now: Now,
) -> Result<Option<KeyClaim>, StoreError> {
    let row = sqlx::query!(
        r#"-- find_request_key
        SELECT request, status, headers, body,
               (extract(epoch FROM coalesce($3, now()) - created_at) * 1000)::bigint AS "age_ms!"
        FROM sexton.request_keys
        WHERE caller = $1 AND key = $2 AND created_at > coalesce($3, now()) - $4::int * interval '1 hour'"#,
        key.caller,
        key.key,
        now,
        KEY_HOURS
    )
    .fetch_optional(store.with_timeout())
    .await?;
    let Some(row) = row else { return Ok(None) };
    if row.request != key.request.as_slice() {
        return Ok(Some(KeyClaim::OtherRequest));
    }
    let Some(status) = row.status else {
        return Ok(Some(KeyClaim::Unfinished { age_ms: row.age_ms }));
    };
    let headers = row.headers.unwrap_or_default();
    let answer = KeptAnswer { status: status.unsigned_abs(), headers, body: row.body };
    Ok(Some(KeyClaim::Finished(answer)))
}

/// Counts a caller's keys, up to [`MAX_KEYS_OF_CALLER`].
async fn count(store: &Store, caller: &str, now: Now) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- count_request_keys
        SELECT count(*) AS "count!" FROM (
            SELECT FROM sexton.request_keys
            WHERE caller = $1 AND created_at > coalesce($2, now()) - $3::int * interval '1 hour' LIMIT $4) s"#,
        caller,
        now,
        KEY_HOURS,
        MAX_KEYS_OF_CALLER
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Keeps the answer to a request whose key was claimed.
///
/// # Errors
///
/// [`StoreError`]; the key stays without an answer. [`StoreError::Inconsistent`]: nobody has claimed it.
pub async fn finish(
    store: &Store,
    key: RequestKey<'_>,
    answer: &KeptAnswer,
    now: Now,
) -> Result<(), StoreError> {
    let done = sqlx::query!(
        "-- finish_request_key
        UPDATE sexton.request_keys SET finished_at = coalesce($4::timestamptz, now()), status = $5, headers = $6, body = $7
        WHERE caller = $1 AND key = $2 AND request = $3 AND finished_at IS NULL",
        key.caller,
        key.key,
        key.request.as_slice(),
        now,
        i16::try_from(answer.status).unwrap_or(500),
        answer.headers,
        answer.body.as_deref()
    )
    .execute(store.with_timeout())
    .await?;
    check_one_row(done.rows_affected())
}

/// Frees the key of a request that was refused, and so has changed nothing.
///
/// # Errors
///
/// As [`finish`].
pub async fn release(store: &Store, key: RequestKey<'_>) -> Result<(), StoreError> {
    let done = sqlx::query!(
        "-- release_request_key
        DELETE FROM sexton.request_keys WHERE caller = $1 AND key = $2 AND request = $3 AND finished_at IS NULL",
        key.caller,
        key.key,
        key.request.as_slice()
    )
    .execute(store.with_timeout())
    .await?;
    check_one_row(done.rows_affected())
}

fn check_one_row(rows: u64) -> Result<(), StoreError> {
    let value = format!("{rows} rows");
    if rows == 1 { Ok(()) } else { Err(StoreError::Inconsistent { place: "request_keys", value }) }
}
