//! The calls.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::enqueue::When;
use crate::execution::{self, Cancelled, Demand, Execution, WaitError};
use crate::{Enqueue, Error};

/// The most executions of one call of `sexton.enqueue_many`; [`Client::enqueue_many`] makes as many calls as it needs.
pub const MAX_BATCH: usize = 10_000;

/// The answer to an enqueue.
#[derive(Clone, PartialEq, Eq, Debug, FromRow)]
pub struct Enqueued {
    /// The execution: a new one, or the one that has the key.
    pub execution_id: Uuid,
    /// Its key. For a period the caller's key and when the period began; without a key one that the platform made.
    pub key: String,
    /// Whether this call made it.
    pub created: bool,
    /// Its state, such as `pending`.
    pub state: String,
}

/// Calls the platform's SQL functions on the caller's connections. It holds nothing, and costs nothing to make.
#[derive(Clone, Copy, Debug, Default)]
pub struct Client(());

impl Client {
    /// Makes a client.
    pub const fn new() -> Self {
        Self(())
    }

    /// Enqueues an execution in the transaction of `connection` (`&mut tx` of a [`sqlx::Transaction`] will do), or, outside
    /// of one, at once. A future that is dropped leaves open whether the statement was carried out: roll the
    /// transaction back.
    ///
    /// # Errors
    ///
    /// [`Error`]; nothing was enqueued.
    pub async fn enqueue(
        &self,
        connection: &mut PgConnection,
        enqueue: &Enqueue,
    ) -> Result<Enqueued, Error> {
        let (run_at, delay) = match enqueue.when {
            When::Now => (None, None),
            When::At(at) => (Some(at), None),
            When::After(delay) => (None, Some(delay.as_secs_f64())),
        };
        let answer = sqlx::query_as(
            "SELECT execution_id, key, created, state
             FROM sexton.enqueue($1, $2, $3, $4, $5 * interval '1 second', $6, $7, $8)",
        )
        .bind(&*enqueue.job)
        .bind(&enqueue.params)
        .bind(&enqueue.key)
        .bind(run_at)
        .bind(delay)
        .bind(enqueue.unique_for.text())
        .bind(enqueue.if_exists.text())
        .bind(sqlx::types::Json(&enqueue.labels))
        .fetch_one(connection)
        .await?;
        Ok(answer)
    }

    /// Enqueues executions, in statements of up to [`MAX_BATCH`] of one job, and returns an answer for each, in the same
    /// order. Items of one job are best next to each other. Of two with the same key the first makes the execution.
    ///
    /// # Errors
    ///
    /// [`Error`] with the problems of all items of a statement. Statements before it are undone with the transaction.
    pub async fn enqueue_many(
        &self,
        connection: &mut PgConnection,
        all: &[Enqueue],
    ) -> Result<Vec<Enqueued>, Error> {
        let mut answers = Vec::with_capacity(all.len());
        for of_job in all.chunk_by(|one, next| one.job == next.job) {
            for batch in of_job.chunks(MAX_BATCH) {
                let items = batch.iter().map(Enqueue::item).collect();
                answers.extend(self.enqueue_items(connection, &batch[0].job, items).await?);
            }
        }
        Ok(answers)
    }

    /// Enqueues up to [`MAX_BATCH`] executions of a job, given as the JSON objects that `sexton.enqueue_many` takes.
    ///
    /// # Errors
    ///
    /// [`Error`] with the problems of all items; nothing was enqueued.
    pub async fn enqueue_items(
        &self,
        connection: &mut PgConnection,
        job: &str,
        items: Vec<Value>,
    ) -> Result<Vec<Enqueued>, Error> {
        let rows = sqlx::query_as(
            "SELECT execution_id, key, created, state FROM sexton.enqueue_many($1, $2) ORDER BY ordinal",
        );
        Ok(rows.bind(job).bind(Value::Array(items)).fetch_all(connection).await?)
    }

    /// Cancels the execution of a job with this key, in the transaction of `connection`: one that waits ends at the
    /// commit, of one that runs the worker ends it then. The audit records it.
    ///
    /// # Errors
    ///
    /// [`Error`]; nothing was cancelled. That there is no such execution is an answer.
    pub async fn cancel(
        &self,
        connection: &mut PgConnection,
        job: &str,
        key: &str,
        reason: Option<&str>,
    ) -> Result<Cancelled, Error> {
        let answer =
            sqlx::query_as("SELECT execution_id, cancelled, state FROM sexton.cancel($1, $2, $3)");
        Ok(answer.bind(job).bind(key).bind(reason).fetch_one(connection).await?)
    }

    /// Reads an execution; `None`: there is none, or retention has removed it.
    ///
    /// # Errors
    ///
    /// [`Error::Database`].
    pub async fn execution(
        &self,
        connection: &mut PgConnection,
        id: Uuid,
    ) -> Result<Option<Execution>, Error> {
        execution::read(connection, id).await
    }

    /// Reads the execution of a job with this key, the newest if an open key had several; `None`: there is none.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`], [`Error::DeletedJob`], [`Error::Database`].
    pub async fn execution_by_key(
        &self,
        connection: &mut PgConnection,
        job: &str,
        key: &str,
    ) -> Result<Option<Execution>, Error> {
        execution::read_by_key(connection, job, key).await
    }

    /// Waits until an execution has ended or is parked as failed. It polls, at first after 20 ms and at last once a second,
    /// and must not be called in the transaction that enqueued it, which nobody else sees before its commit. Safe to
    /// drop.
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`] with what was last seen, [`WaitError::Missing`], and those of the database.
    pub async fn wait_for(
        &self,
        connection: &mut PgConnection,
        id: Uuid,
        timeout: Duration,
    ) -> Result<Execution, WaitError> {
        execution::wait_for(connection, id, timeout).await
    }

    /// Reads how much work a pool has, for autoscalers.
    ///
    /// # Errors
    ///
    /// [`Error::Database`].
    pub async fn demand(
        &self,
        connection: &mut PgConnection,
        pool: impl Into<Cow<'_, str>>,
    ) -> Result<Demand, Error> {
        execution::demand(connection, &pool.into()).await
    }
}
