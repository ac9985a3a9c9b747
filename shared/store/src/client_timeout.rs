//! A limit for every statement, on the side of who asks.
//!
//! The server ends a statement after 30 s and says so. If even that does not arrive, the server, its
//! host or the way to it has vanished without a word, and nobody would ever end the wait: TCP alone
//! does not notice. So whoever asks gives the connection up. Those who need to know sooner set a
//! shorter limit around it: [`crate::timeout::with_timeout`].

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Describe, Either, Error, Execute, Executor, Postgres, SqlStr, Transaction};
use tokio::time::{Instant, timeout_at};

use crate::Store;
use crate::timeout::timeout_error;

/// For a connection out of the pool (5 s), the statement (30 s) and its way: an answer that is not
/// there by then does not come.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(40);

/// An executor whose answers come within [`CLIENT_TIMEOUT`], or else are an error.
#[derive(Debug)]
pub(crate) struct WithTimeout<E>(pub(crate) E);

impl Store {
    /// To run one statement on.
    pub(crate) fn with_timeout(&self) -> WithTimeout<&sqlx::PgPool> {
        WithTimeout(self.pool())
    }

    /// Begins a transaction.
    ///
    /// In a task of its own, which whoever gives the wait up leaves to its end: dropped in the middle, the
    /// library would put a connection back into the pool on which a transaction has begun, and what others
    /// did on it, and were told was done, would be undone with it.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>, Error> {
        let pool = self.pool().clone();
        let begun = tokio::spawn(async move { with_client_timeout(Box::pin(pool.begin())).await });
        begun.await.unwrap_or(Err(Error::WorkerCrashed))
    }
}

/// Commits. On an error it may have been carried out.
pub(crate) async fn commit(tx: Transaction<'_, Postgres>) -> Result<(), Error> {
    with_client_timeout(tx.commit()).await
}

/// Waits for an answer for [`CLIENT_TIMEOUT`] at most.
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
