//! A connection outside the pool, for a holder that runs one statement after the other all the time.
//!
//! The pool pings a connection when it comes back and when it is taken again. For a statement that takes a
//! millisecond these pings are a good part of the work. A dedicated connection is pinged only after it was idle, and
//! is closed unless its holder has confirmed that the last answer arrived: after an error, a time limit, or a dropped
//! future.
//!
//! **Plans.** By default PostgreSQL plans a one-row statement again each time, because that looks cheaper than the
//! generic plan, and planning takes longer than the statement. Where all statements look rows up by their keys
//! ([`DedicatedConnection::for_key_lookups`]) they are planned once. No other statement may run there: a plan that
//! was made while a table was nearly empty would otherwise read the whole table, a batch later a million rows.

use std::ops::{Deref, DerefMut};

use sqlx::PgExecutor;
use sqlx::postgres::PgConnectOptions;
pub use sqlx::postgres::PgConnection;
use tokio::time::Instant;

use crate::connection::client_timeout::with_client_timeout;
use crate::connection::{PING_AFTER_IDLE, ping_with_timeout};
use crate::{Store, StoreError};

/// A source of executors: any free connection of a pool, or one dedicated connection.
pub trait ExecutorSource: Send {
    /// Returns the executor for the next statement.
    fn executor(&mut self) -> impl PgExecutor<'_>;
}

impl ExecutorSource for &Store {
    fn executor(&mut self) -> impl PgExecutor<'_> {
        self.with_timeout()
    }
}

impl ExecutorSource for &mut PgConnection {
    fn executor(&mut self) -> impl PgExecutor<'_> {
        &mut **self
    }
}

/// A connection outside the pool. It sets no time limits; its holder must.
#[derive(Debug)]
pub struct DedicatedConnection {
    store: Store,
    options: PgConnectOptions,
    /// The connection between two uses, and when it last answered.
    idle: Option<(PgConnection, Instant)>,
}

impl DedicatedConnection {
    /// To the database of `store`, with its settings, without a pooler where there is a way. Nothing is connected yet.
    pub fn new(store: &Store) -> Self {
        let options = store.direct_options();
        Self { store: store.clone(), options, idle: None }
    }

    /// Like [`Self::new`], for statements that only look rows up by their keys.
    pub fn for_key_lookups(store: &Store) -> Self {
        let Self { store, options, .. } = Self::new(store);
        let options = options.options([
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
        ]);
        Self { store, options, idle: None }
    }

    /// Returns the connection, and connects again unless the last answer on it has arrived.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: the database refuses a connection; the next call tries again.
    pub async fn acquire(&mut self) -> Result<DedicatedConnectionGuard<'_>, StoreError> {
        let idle = match self.idle.take() {
            Some((connection, last_answer)) if last_answer.elapsed() < PING_AFTER_IDLE => {
                Some(connection)
            }
            Some((mut connection, _)) => {
                ping_with_timeout(&mut connection).await.is_ok().then_some(connection)
            }
            None => None,
        };
        let connection = match idle {
            Some(connection) => connection,
            None => with_client_timeout(self.store.connect(&self.options)).await?,
        };
        Ok(DedicatedConnectionGuard { owner: self, connection })
    }

    /// Closes the connection. The next use connects again.
    pub fn close(&mut self) {
        self.idle = None;
    }
}

/// The connection, for one use. A guard dropped without a release (an error, a time limit, a dropped future) closes
/// the connection at once: the server then rolls back, and the transaction's locks do not last until the next use.
#[derive(Debug)]
pub struct DedicatedConnectionGuard<'o> {
    owner: &'o mut DedicatedConnection,
    connection: PgConnection,
}

impl DedicatedConnectionGuard<'_> {
    /// Keeps the connection for the next use, because the last statement's answer has arrived whole.
    pub fn release(self) {
        self.owner.idle = Some((self.connection, Instant::now()));
    }

    /// Keeps the connection if the outcome is an answer of the server, including the refusal of a value, and returns
    /// the outcome.
    pub fn release_if_answered<T>(self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if matches!(outcome, Ok(_) | Err(StoreError::Data(_))) {
            self.release();
        }
        outcome
    }
}

impl Deref for DedicatedConnectionGuard<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for DedicatedConnectionGuard<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
