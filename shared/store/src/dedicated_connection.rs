//! A connection that its holder keeps, for statements that come one after the other all the time.
//!
//! What the pool lends it asks for a sign of life when it comes back, twice, and lends to whoever asks next.
//! For a statement of a millisecond these questions are a good part of the work. A connection of one's own is asked
//! only after a rest, and is given up when its last answer was not told to have come: after an error, a time
//! limit, or a future that was dropped.
//!
//! **Plans.** By default PostgreSQL plans a statement of one row again each time, since that looks cheaper than the plan for
//! any number of rows, and planning takes longer than the statement. Where all statements look rows up by their keys
//! ([`DedicatedConnection::for_key_lookups`]) they are planned once, and for nothing else: a plan that was made while a table was nearly
//! empty would otherwise read all of it, a batch later a million rows.

use std::ops::{Deref, DerefMut};

use sqlx::PgExecutor;
use sqlx::postgres::PgConnectOptions;
pub use sqlx::postgres::PgConnection;
use tokio::time::Instant;

use crate::client_timeout::with_client_timeout;
use crate::connect::{PING_AFTER_IDLE, ping_with_timeout};
use crate::{Store, StoreError};

/// Where statements can be run: on whatever connection of a pool is free, or on one that is kept.
pub trait ExecutorSource: Send {
    /// For the next statement.
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

/// A connection beside the pool. Whoever waits for its answers limits the wait: nothing here does.
#[derive(Debug)]
pub struct DedicatedConnection {
    store: Store,
    options: PgConnectOptions,
    /// Between two uses, and when it last answered.
    idle: Option<(PgConnection, Instant)>,
}

impl DedicatedConnection {
    /// To the database of `store`, with its settings, without a pooler where there is a way. Nothing is connected yet.
    pub fn new(store: &Store) -> Self {
        let options = store.direct_options().clone();
        Self { store: store.clone(), options, idle: None }
    }

    /// The same, for statements that look rows up by their keys and do nothing else.
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

    /// The connection, made anew unless the last answer on it has come.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: there is no connection, and the next call tries again.
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

    /// Closes it. The next use connects again.
    pub fn close(&mut self) {
        self.idle = None;
    }
}

/// The connection, for one use. Dropped before the last answer was told to have come (an error, a time limit, a future
/// that was dropped) it is closed at once: the server then rolls back, and what the transaction has locked does not stay
/// locked until the next use.
#[derive(Debug)]
pub struct DedicatedConnectionGuard<'o> {
    owner: &'o mut DedicatedConnection,
    connection: PgConnection,
}

impl DedicatedConnectionGuard<'_> {
    /// The last statement's answer has come whole: the connection is good for another.
    pub fn release(self) {
        self.owner.idle = Some((self.connection, Instant::now()));
    }

    /// The same, if this is an answer: also one that tells of a value that cannot be stored.
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
