//! Whether something that people look at has changed, read so cheaply that it can be read several times a second.
//!
//! Nothing is written for it and no rows are counted: each answer is the digest of a few rows at one end of an index, and of the open
//! incidents and running bulks, which may be older.

use std::collections::HashMap;

use uuid::Uuid;

use crate::{Store, StoreError};

/// Digests of what is there now. Two of the same kind differ if something has changed between them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Changes {
    /// Of failed and discarded executions, and decisions about their groups.
    pub failures: String,
    /// Of the newest executions.
    pub executions: String,
    /// Of what people did to jobs and everything else, and what programs enqueued over the API.
    pub actions: String,
    /// Of these without enqueues, of which there may be hundreds in a second.
    pub decisions: String,
    /// Of incidents.
    pub incidents: String,
    /// Of bulks.
    pub bulks: String,
    /// Of each of the executions that the caller names.
    pub of_execution: HashMap<Uuid, String>,
}

/// Reads the digests, with those of `executions`, at most 1,000.
///
/// A transaction that commits late is noticed as long as its row is among the newest fifty of its kind, or one of 500 open incidents, or
/// of 100 running bulks.
///
/// # Errors
///
/// Those of the database.
pub async fn read(store: &Store, executions: &[Uuid]) -> Result<Changes, StoreError> {
    let row = sqlx::query_file!("src/changes.sql").fetch_one(store.with_timeout()).await?;
    let of_execution = if executions.is_empty() {
        HashMap::new()
    } else {
        sqlx::query!(
            r#"-- changes_of_executions
            SELECT e.id AS "id!",
                   concat_ws(' ', e.state, e.rev, e.attempt, e.cancel_requested, a.progress::text, o.last_line) AS "digest!"
            FROM sexton.executions e
            LEFT JOIN LATERAL (SELECT number, progress FROM sexton.attempts
                               WHERE execution_id = e.id ORDER BY number DESC LIMIT 1) a ON true
            LEFT JOIN LATERAL (SELECT first_line + lines AS last_line FROM sexton.attempt_output
                               WHERE execution_id = e.id AND number = a.number ORDER BY first_line DESC LIMIT 1) o ON true
            WHERE e.id = ANY($1)"#,
            executions
        )
        .fetch_all(store.with_timeout())
        .await?
        .into_iter()
        .map(|row| (row.id, row.digest))
        .collect()
    };
    Ok(Changes {
        failures: row.failures,
        executions: row.executions,
        actions: row.actions,
        decisions: row.decisions,
        incidents: row.incidents,
        bulks: row.bulks,
        of_execution,
    })
}
