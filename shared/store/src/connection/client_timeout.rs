//! A client-side time limit for every statement.
//!
//! The server ends a statement after 30 s and reports it. If even that report does not arrive, the server, its host
//! or the network has vanished silently, and the wait would never end, because TCP alone does not notice. So the
//! client gives the connection up. Callers that need to know sooner set a shorter limit around it:
//! [`crate::connection::timeout::with_timeout`].

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Describe, Either, Error, Execute, Executor, Postgres, SqlStr, Transaction};
use tokio::time::{Instant, timeout_at};

use crate::Store;
use crate::connection::timeout::timeout_error;

/// The sum of the wait for a connection from the pool (5 s), the statement (30 s) and the network: a later answer
/// never comes.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(40);

/// An executor that fails if an answer takes longer than [`CLIENT_TIMEOUT`].
#[derive(Debug)]
pub(crate) struct WithTimeout<E>(pub(crate) E);

impl Store {
    /// Returns an executor for one statement.
    pub(crate) fn with_timeout(&self) -> WithTimeout<&sqlx::PgPool> {
        WithTimeout(self.pool())
    }

    /// Begins a transaction.
    ///
    /// This runs in a task of its own, which goes on if the caller stops waiting. If it were dropped in the middle,
    /// the library would return a connection with an open transaction to the pool, and statements that others run on
    /// that connection and believe committed would be rolled back with it.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>, Error> {
        let (pool, origin, requested) = (self.pool().clone(), self.origin(), Instant::now());
        let only_jobs = self.only_jobs().map(ToString::to_string);
        let transaction = tokio::spawn(async move {
            with_client_timeout(async {
                let mut tx = Box::pin(pool.begin()).await?;
                if origin.is_some() || only_jobs.is_some() {
                    sqlx::query(
                        "-- begin_from_place
                        SELECT set_config('sexton.from_where', $1, true), set_config('sexton.only_jobs', $2, true)",
                    )
                    .bind(origin.as_deref().unwrap_or_default())
                    .bind(only_jobs.unwrap_or_default())
                    .execute(&mut *tx)
                    .await?;
                }
                Ok(tx)
            })
            .await
        });
        let begun = transaction.await.unwrap_or(Err(Error::WorkerCrashed));
        if let Some(on_begin) = self.on_begin() {
            on_begin(requested.elapsed());
        }
        begun
    }
}

/// Commits. After an error the commit may still have happened.
pub(crate) async fn commit(tx: Transaction<'_, Postgres>) -> Result<(), Error> {
    with_client_timeout(tx.commit()).await
}

/// Waits for an answer for at most [`CLIENT_TIMEOUT`].
pub(crate) async fn with_client_timeout<T>(
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(CLIENT_TIMEOUT, answer)
        .await
        .unwrap_or_else(|_| Err(timeout_error(CLIENT_TIMEOUT)))
}

type Step = Either<PgQueryResult, PgRow>;

impl<'c, E> Executor<'c> for WithTimeout<E>
where
    E: Executor<'c, Database = Postgres>,
{
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, Q>(self, query: Q) -> BoxStream<'e, Result<Step, Error>>
    where
        'c: 'e,
        Q: 'q + Execute<'q, Postgres>,
    {
        let end = Instant::now() + CLIENT_TIMEOUT;
        let steps = unfold(Some(self.0.fetch_many(query)), move |steps| async move {
            let mut steps = steps?;
            match timeout_at(end, steps.next()).await {
                Ok(step) => step.map(|step| (step, Some(steps))),
                Err(_) => Some((Err(timeout_error(CLIENT_TIMEOUT)), None)),
            }
        });
        steps.boxed()
    }

    fn fetch_optional<'e, 'q: 'e, Q>(self, query: Q) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        Q: 'q + Execute<'q, Postgres>,
    {
        Box::pin(with_client_timeout(self.0.fetch_optional(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        Box::pin(with_client_timeout(self.0.prepare_with(sql, parameters)))
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'c: 'e,
    {
        Box::pin(with_client_timeout(self.0.describe(sql)))
    }
}
