//! The last attempt of an execution, for the text of an incident: where it ran, how it ended, and what it wrote last.

use std::collections::HashMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

/// The last part of the output that is read, in characters. Secrets are masked in it, as they are wherever output is stored.
const OUTPUT_CHARS: i32 = 1_000;

/// An execution's last attempt.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LastAttempt {
    /// Its number.
    pub number: u32,
    /// The worker's name, by default its host's.
    pub worker: Option<String>,
    /// How it ended; `None`: it runs.
    pub outcome: Option<String>,
    /// The exit code of its program.
    pub exit_code: Option<i32>,
    /// The signal that ended its program.
    pub signal: Option<i32>,
    /// The end of its output; empty: it wrote none.
    pub output: String,
}

/// Reads the last attempts of executions. An execution without one is left out.
pub(super) async fn read(
    connection: &mut PgConnection,
    executions: &[Uuid],
) -> Result<HashMap<Uuid, LastAttempt>, StoreError> {
    let rows = sqlx::query!(
        r#"-- read_last_attempts
        SELECT a.execution_id AS "execution_id!", a.number AS "number!", i.name AS "worker?", a.outcome, a.exit_code, a.signal,
               (SELECT right(o.content, $2) FROM sexton.attempt_output o
                WHERE o.execution_id = a.execution_id AND o.number = a.number
                ORDER BY o.first_line DESC LIMIT 1) AS output
        FROM unnest($1::uuid[]) AS x (id)
        CROSS JOIN LATERAL (
            SELECT t.* FROM sexton.all_attempts t WHERE t.execution_id = x.id ORDER BY t.number DESC LIMIT 1) a
        LEFT JOIN sexton.instances i ON i.id = a.worker_id"#,
        executions,
        OUTPUT_CHARS
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let attempts = rows.into_iter().map(|row| {
        let attempt = LastAttempt {
            number: row.number as u32,
            worker: row.worker,
            outcome: row.outcome,
            exit_code: row.exit_code,
            signal: row.signal,
            output: row.output.unwrap_or_default(),
        };
        (row.execution_id, attempt)
    });
    Ok(attempts.collect())
}
