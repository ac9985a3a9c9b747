//! The database's clock, as this process can know it without asking each time.
//!
//! The time of the last answer, and how long ago that is by a clock of this host which nobody sets. An answer was made before it arrived, so this
//! is never ahead of the database's clock by more than the two run apart between two answers.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::error::LockError;
use crate::moment::Moment;

/// Between two reads of the clock.
const READ_INTERVAL: Duration = Duration::from_secs(30);
/// For a read.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// A step of this length between two reads is logged: an administrator has set the clock.
const LOGGED_STEP: TimeDelta = TimeDelta::seconds(5);

/// The clock.
#[derive(Debug)]
pub(super) struct DatabaseClock {
    pool: PgPool,
    last: Mutex<(DateTime<Utc>, Moment)>,
}

impl DatabaseClock {
    pub(super) async fn read(pool: PgPool) -> Result<Self, LockError> {
        let last = Mutex::new(answer(&pool).await?);
        Ok(Self { pool, last })
    }

    /// The time that it is there now, at least.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.at(Moment::now())
    }

    fn at(&self, moment: Moment) -> DateTime<Utc> {
        let (time, read_at) = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let since = moment.since(read_at);
        time + TimeDelta::from_std(since).unwrap_or(TimeDelta::MAX)
    }

    /// Reads it again.
    async fn refresh(&self) -> Result<(), LockError> {
        let (time, read_at) = answer(&self.pool).await?;
        let step = time - self.at(read_at);
        if step.abs() > LOGGED_STEP {
            tracing::warn!(
                step_ms = step.num_milliseconds(),
                "the database's clock was set; ticks that it skipped do not run"
            );
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = (time, read_at);
        Ok(())
    }
}

/// The database's time, and when the answer was here.
async fn answer(pool: &PgPool) -> Result<(DateTime<Utc>, Moment), LockError> {
    // As a number, and without a prepared statement: it goes through any pooler.
    let statement = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS micros";
    let reading = sqlx::raw_sql(statement).fetch_one(pool);
    let row = timeout(READ_TIMEOUT, reading)
        .await
        .map_err(|_| LockError::timed_out("reading the database's clock", READ_TIMEOUT))??;
    let read_at = Moment::now();
    let micros: i64 = sqlx::Row::try_get(&row, "micros")?;
    Ok((DateTime::from_timestamp_micros(micros).unwrap_or_default(), read_at))
}

/// Follows the database's clock until `stop`. An outage leaves the clock of the host, which is good enough for hours.
pub(super) async fn follow(clock: std::sync::Arc<DatabaseClock>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(READ_INTERVAL) => {}
        }
        if let Err(error) = clock.refresh().await {
            tracing::warn!(%error, "failed to read the database's clock, which is tried again: {error}");
        }
    }
}
