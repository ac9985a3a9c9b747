//! A task's statement.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::AssertSqlSafe;

use super::value::json_of;
use super::{TaskFailure, TaskTransaction};

/// The values of a statement's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arguments<'a> {
    /// `$1`, `jsonb`.
    pub params: &'a Value,
    /// `$2`, `text`.
    pub idempotency_key: &'a str,
    /// `$3`, `timestamptz`.
    pub scheduled_for: DateTime<Utc>,
}

impl TaskTransaction {
    /// Runs one prepared statement to its end. Returns the first column of its first row, if that has a JSON
    /// counterpart; all other rows are read and dropped.
    ///
    /// The transaction's own limit and the caller limit its time, this function does not.
    ///
    /// # Errors
    ///
    /// [`TaskFailure`]: roll back.
    ///
    /// # Cancellation
    ///
    /// Dropped, the statement runs on in the server: [`TaskTransaction::kill`] ends it.
    pub async fn run(
        &mut self,
        statement: &str,
        arguments: Arguments<'_>,
    ) -> Result<Option<Value>, TaskFailure> {
        // With declared types, all three may be bound, however many the statement uses.
        let query = sqlx::query(AssertSqlSafe(statement.to_owned()))
            .persistent(false)
            .bind(arguments.params)
            .bind(arguments.idempotency_key)
            .bind(arguments.scheduled_for);
        let row = query.fetch_optional(self.connection()?).await;
        Ok(row.map_err(|error| TaskFailure::of(&error))?.as_ref().and_then(json_of))
    }
}
