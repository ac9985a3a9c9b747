//! Monitors a slow migration: whether it still runs, and what it waits for.

use std::time::Duration;

use sqlx::Row as _;

use super::ProgressLog;
use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;
use crate::connection::dedicated::DedicatedConnection;
use crate::connection::session::Session;
use crate::connection::timeout::timeout_error;

/// Pause between two polls, each over another connection.
const POLL_INTERVAL: Duration = Duration::from_secs(15);
/// Number of polls in a row without a session, or without a server, after which the migration counts as lost.
const MAX_MISSES: u32 = 4;

/// Monitors the session, logs what it waits for, and returns when the server no longer has it: its answer was lost.
pub(super) async fn monitor_session(session: &Session, log: ProgressLog<'_>) -> StoreError {
    let mut failed = 0;
    // A dedicated connection, because the pool would hide the reason for a failure.
    let mut dedicated = DedicatedConnection::new(&session.store);
    while failed < MAX_MISSES {
        tokio::time::sleep(POLL_INTERVAL).await;
        match read_activity(&mut dedicated, session).await {
            Ok(Some(text)) => {
                failed = 0;
                if !text.is_empty() {
                    log(&text);
                }
            }
            // A server that refuses a connection, perhaps for lack of room, is alive.
            Err(StoreError::Unavailable(error)) if error.as_database_error().is_some() => {}
            Ok(None) | Err(_) => failed += 1,
        }
    }
    StoreError::Unavailable(timeout_error(POLL_INTERVAL * MAX_MISSES))
}

/// Returns the session's activity, empty if not worth reporting; `None`: the session has ended.
async fn read_activity(
    dedicated: &mut DedicatedConnection,
    session: &Session,
) -> Result<Option<String>, StoreError> {
    let mut connection = dedicated.acquire().await?;
    let row = sqlx::query(
        "-- watch_migration
        SELECT state = 'active' AS active,
               extract(epoch FROM clock_timestamp() - query_start)::bigint AS seconds,
               (SELECT string_agg(format('%s (%s)', b.pid, coalesce(nullif(b.application_name, ''), b.backend_type)), ', ')
                FROM pg_stat_activity b WHERE b.pid = ANY (pg_blocking_pids(a.pid))) AS blocking,
               (SELECT format('%s, %s of %s blocks', phase, blocks_done, blocks_total)
                FROM pg_stat_progress_create_index p WHERE p.pid = a.pid) AS building
        FROM pg_stat_activity a WHERE pid = $1 AND backend_start::text = $2",
    )
    .bind(session.pid)
    .bind(&session.since)
    .fetch_optional(WithTimeout(&mut *connection))
    .await?;
    connection.release();
    let Some(row) = row else { return Ok(None) };
    let seconds: Option<i64> = row.try_get("seconds")?;
    let (true, Some(seconds)) = (row.try_get::<Option<bool>, _>("active")? == Some(true), seconds)
    else {
        return Ok(Some(String::new()));
    };
    let mut text = format!("has been at one statement for {seconds} s");
    if let Some(building) = row.try_get::<Option<String>, _>("building")? {
        text = format!("{text}, an index: {building}");
    }
    if let Some(blocking) = row.try_get::<Option<String>, _>("blocking")? {
        text = format!("{text}; waits for the server's process {blocking}");
    }
    let long = seconds >= POLL_INTERVAL.as_secs().cast_signed();
    Ok(Some(if long { text } else { String::new() }))
}
