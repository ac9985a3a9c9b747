//! A limit for every statement, on the side of who asks.
//!
//! The server ends a statement after 30 s and says so. If even that does not arrive, the server, its
//! host or the way to it has vanished without a word, and nobody would ever end the wait: TCP alone
//! does not notice. So whoever asks gives the connection up. Those who need to know sooner set a
//! shorter limit around it: [`crate::answer::within`].

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Describe, Either, Error, Execute, Executor, Postgres, SqlStr, Transaction};
use tokio::time::{Instant, timeout_at};

use crate::Store;
use crate::answer::silence;

/// For a connection out of the pool (5 s), the statement (30 s) and its way: an answer that is not
/// there by then does not come.
const LIMIT: Duration = Duration::from_secs(40);

/// An executor whose answers come within [`LIMIT`], or else are an error.
#[derive(Debug)]
pub(crate) struct Bounded<E>(pub(crate) E);

impl Store {
    /// To run one statement on.
    pub(crate) fn bounded(&self) -> Bounded<&sqlx::PgPool> {
        Bounded(self.pool())
    }

    /// Begins a transaction.
    ///
    /// In a task of its own, which whoever gives the wait up leaves to its end: dropped in the middle, the
    /// library would put a connection back into the pool on which a transaction has begun, and what others
    /// did on it, and were told was done, would be undone with it.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>, Error> {
        let pool = self.pool().clone();
        let begun = tokio::spawn(async move { bounded(Box::pin(pool.begin())).await });
        begun.await.unwrap_or(Err(Error::WorkerCrashed))
    }
}

/// Commits. On an error it may have been carried out.
pub(crate) async fn commit(tx: Transaction<'_, Postgres>) -> Result<(), Error> {
    bounded(tx.commit()).await
}

/// Waits for an answer for [`LIMIT`] at most.
pub(crate) async fn bounded<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(LIMIT, answer).await.unwrap_or_else(|_| Err(silence(LIMIT)))
}

type Step = Either<PgQueryResult, PgRow>;

impl<'c, E> Executor<'c> for Bounded<E>
where
    E: Executor<'c, Database = Postgres>,
{
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, Q>(self, query: Q) -> BoxStream<'e, Result<Step, Error>>
    where
        'c: 'e,
        Q: 'q + Execute<'q, Postgres>,
    {
        let end = Instant::now() + LIMIT;
        let steps = unfold(Some(self.0.fetch_many(query)), move |steps| async move {
            let mut steps = steps?;
            match timeout_at(end, steps.next()).await {
                Ok(step) => step.map(|step| (step, Some(steps))),
                Err(_) => Some((Err(silence(LIMIT)), None)),
            }
        });
        steps.boxed()
    }

    fn fetch_optional<'e, 'q: 'e, Q>(self, query: Q) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        Q: 'q + Execute<'q, Postgres>,
    {
        Box::pin(bounded(self.0.fetch_optional(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        Box::pin(bounded(self.0.prepare_with(sql, parameters)))
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'c: 'e,
    {
        Box::pin(bounded(self.0.describe(sql)))
    }
}
