//! A connection that its holder keeps, for statements that come one after the other all the time.
//!
//! What the pool lends it asks for a sign of life when it comes back, twice, and lends to whoever asks next.
//! For a statement of a millisecond these questions are a good part of the work. A connection of one's own is asked
//! only after a rest, and is given up when its last answer was not told to have come: after an error, a time
//! limit, or a future that was dropped.
//!
//! **Plans.** By default PostgreSQL plans a statement of one row again each time, since that looks cheaper than the plan for
//! any number of rows, and planning takes longer than the statement. Where all statements look rows up by their keys
//! ([`OwnConnection::by_keys`]) they are planned once, and for nothing else: a plan that was made while a table was nearly
//! empty would otherwise read all of it, a batch later a million rows.

use std::ops::{Deref, DerefMut};

use sqlx::PgExecutor;
use sqlx::postgres::PgConnectOptions;
pub use sqlx::postgres::PgConnection;
use tokio::time::Instant;

use crate::bounded::bounded;
use crate::connect::{RESTED, still_answers};
use crate::{Store, StoreError};

/// Where statements can be run: on whatever connection of a pool is free, or on one that is kept.
pub trait Executors: Send {
    /// For the next statement.
    fn executor(&mut self) -> impl PgExecutor<'_>;
}

impl Executors for &Store {
    fn executor(&mut self) -> impl PgExecutor<'_> {
        self.bounded()
    }
}

impl Executors for &mut PgConnection {
    fn executor(&mut self) -> impl PgExecutor<'_> {
        &mut **self
    }
}

/// A connection beside the pool. Whoever waits for its answers limits the wait: nothing here does.
#[derive(Debug)]
pub struct OwnConnection {
    store: Store,
    options: PgConnectOptions,
    /// Between two uses, and when it last answered.
    kept: Option<(PgConnection, Instant)>,
}

impl OwnConnection {
    /// To the database of `store`, with its settings. Nothing is connected yet.
    pub fn new(store: &Store) -> Self {
        let options = PgConnectOptions::clone(&store.pool().connect_options());
        Self { store: store.clone(), options, kept: None }
    }

    /// The same, for statements that look rows up by their keys and do nothing else.
    pub fn by_keys(store: &Store) -> Self {
        let Self { store, options, .. } = Self::new(store);
        let options = options.options([
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
        ]);
        Self { store, options, kept: None }
    }

    /// The connection, made anew unless the last answer on it has come.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: there is no connection, and the next call tries again.
    pub async fn lend(&mut self) -> Result<Lent<'_>, StoreError> {
        let kept = match self.kept.take() {
            Some((connection, answered)) if answered.elapsed() < RESTED => Some(connection),
            Some((mut connection, _)) => {
                still_answers(&mut connection).await.is_ok().then_some(connection)
            }
            None => None,
        };
        let connection = match kept {
            Some(connection) => connection,
            None => bounded(self.store.connect(&self.options)).await?,
        };
        Ok(Lent { owner: self, connection })
    }

    /// Closes it. The next use connects again.
    pub fn close(&mut self) {
        self.kept = None;
    }
}

/// The connection, for one use. Dropped before the last answer was told to have come (an error, a time limit, a future
/// that was dropped) it is closed at once: the server then rolls back, and what the transaction has locked does not stay
/// locked until the next use.
#[derive(Debug)]
pub struct Lent<'o> {
    owner: &'o mut OwnConnection,
    connection: PgConnection,
}

impl Lent<'_> {
    /// The last statement's answer has come whole: the connection is good for another.
    pub fn answered(self) {
        self.owner.kept = Some((self.connection, Instant::now()));
    }

    /// The same, if this is an answer: also one that tells of a value that cannot be stored.
    pub fn told<T>(self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if matches!(outcome, Ok(_) | Err(StoreError::Data(_))) {
            self.answered();
        }
        outcome
    }
}

impl Deref for Lent<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
