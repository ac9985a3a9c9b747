//! Something that claims what is due, by what the first schema has.

use std::time::{Duration, Instant};

use anyhow::Result;
use chrono::{DateTime, Utc};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::sync::oneshot::{Receiver, error::TryRecvError};

/// Between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Claims in a session of its own.
#[derive(Debug)]
pub(super) struct Claimer {
    url: String,
}

impl Claimer {
    pub(super) fn new(url: &str) -> Self {
        Self { url: url.to_owned() }
    }

    /// Claims until it is stopped, and once more. Returns when each claim was committed and
    /// how late it was.
    pub(super) async fn run(self, mut stop: Receiver<()>) -> Result<Vec<(Instant, Duration)>> {
        let mut connection = PgConnection::connect(&self.url).await?;
        let mut claims = Vec::new();
        loop {
            let last = !matches!(stop.try_recv(), Err(TryRecvError::Empty));
            let due: Vec<(DateTime<Utc>, DateTime<Utc>)> = sqlx::query_as(
                "WITH due AS (
                    SELECT id, next_fire_at FROM jobs
                    WHERE status = 'active' AND next_fire_at <= now()
                    ORDER BY next_fire_at LIMIT 100 FOR UPDATE SKIP LOCKED),
                claimed AS (
                    INSERT INTO executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
                        params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
                    SELECT gen_random_uuid(), j.id, d.next_fire_at::text, d.next_fire_at, 'pending', j.task_type,
                        j.pool, j.params, gen_random_uuid()::text, 'test:1', clock_timestamp(),
                        clock_timestamp(), clock_timestamp()
                    FROM due d JOIN jobs j USING (id) RETURNING id)
                UPDATE jobs j SET next_fire_at = d.next_fire_at + interval '5 s' FROM due d WHERE j.id = d.id
                RETURNING d.next_fire_at, clock_timestamp()",
            )
            .fetch_all(&mut connection)
            .await?;
            let at = Instant::now();
            claims.extend(
                due.iter().map(|(due, now)| (at, (*now - *due).to_std().unwrap_or_default())),
            );
            if last {
                return Ok(claims);
            }
            if due.is_empty() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }
}
