//! Fills the placeholders of a job's params and idempotency key, by the same SQL functions as a claim and an enqueue.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{JobFilter, read};
use crate::connection::client_timeout::{WithTimeout, with_client_timeout};
use crate::{Store, StoreError};

/// An execution that a job could have.
#[derive(Clone, PartialEq, Debug)]
pub struct Unfilled {
    /// Its key.
    pub execution_key: String,
    /// Its nominal time.
    pub scheduled_for: DateTime<Utc>,
    /// The caller's params, which take the place of the job's of the same name.
    pub given: Map<String, Value>,
}

/// What an execution gets.
#[derive(Clone, PartialEq, Debug)]
pub struct Filled {
    /// Its params.
    pub params: Value,
    /// Its idempotency key.
    pub idempotency_key: String,
    /// Why it cannot be: a param is missing, for example. `None`: it can.
    pub problem: Option<String>,
}

/// Returns the filled params and keys of executions of a job, in their order; none if there is no such job.
pub async fn fill(
    store: &Store,
    job: &str,
    executions: &[Unfilled],
) -> Result<Vec<Filled>, StoreError> {
    let mut connection = with_client_timeout(Box::pin(store.pool().acquire())).await?;
    fill_on(&mut connection, job, executions).await
}

/// Like [`fill`], in the caller's transaction.
pub(crate) async fn fill_on(
    connection: &mut PgConnection,
    job: &str,
    executions: &[Unfilled],
) -> Result<Vec<Filled>, StoreError> {
    let filter = JobFilter { names: Some(vec![job.to_owned()]), ..JobFilter::default() };
    let Some(job) = read(connection, &filter, 1).await?.pop() else { return Ok(Vec::new()) };
    let timetable = job.timetable()?;
    // Only a schedule that repeats has a firing before another.
    let repeats = timetable.once().is_none();
    let keys: Vec<String> = executions.iter().map(|one| one.execution_key.clone()).collect();
    let nominal: Vec<DateTime<Utc>> = executions.iter().map(|one| one.scheduled_for).collect();
    let previous: Vec<Option<DateTime<Utc>>> =
        nominal.iter().map(|at| repeats.then(|| timetable.last_before(*at)).flatten()).collect();
    let given: Vec<Value> = executions.iter().map(|one| Value::from(one.given.clone())).collect();
    let rows = sqlx::query_as!(
        Filled,
        r#"-- fill_templates
        SELECT f.filled -> 'params' AS "params!", f.filled ->> 'idempotency_key' AS "idempotency_key!",
               f.filled ->> 'problem' AS problem
        FROM (SELECT c.n, sexton.filled_execution(
                  j.params, c.given, j.idempotency_template, sexton.template_values(
                      coalesce(j.deleted_name, j.name), j.timezone, c.key, c.nominal, c.previous,
                      j.params || c.given)) AS filled
              FROM sexton.jobs j, unnest($2::text[], $3::timestamptz[], $4::timestamptz[], $5::jsonb[])
                   WITH ORDINALITY AS c (key, nominal, previous, given, n)
              WHERE j.id = $1 OFFSET 0) f
        ORDER BY f.n"#,
        job.id as Uuid,
        &keys,
        &nominal,
        &previous as &[Option<DateTime<Utc>>],
        &given
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows)
}
