//! The dead man's switch: what says whether the platform is well, and when the outside watcher last heard of it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::dead_man::PlatformSigns;

use crate::platform::status;
use crate::{Now, Store, StoreError};

/// The row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadMan {
    /// When the watcher last accepted a ping.
    pub pinged_at: Option<DateTime<Utc>>,
    /// When a scheduler last judged whether to ping.
    pub tried_at: Option<DateTime<Utc>>,
    /// Why there was no ping then.
    pub problem: Option<String>,
    /// The instant of the reading.
    pub now: DateTime<Utc>,
}

/// Reads the row.
pub async fn read(store: &Store, now: Now) -> Result<DeadMan, StoreError> {
    Ok(sqlx::query_as!(
        DeadMan,
        r#"-- dead_man
        SELECT pinged_at, tried_at, problem, coalesce($1, clock_timestamp()) AS "now!" FROM sexton.dead_man"#,
        now
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Records a judgement; without a problem the watcher has accepted a ping.
pub async fn record(store: &Store, problem: Option<&str>, now: Now) -> Result<(), StoreError> {
    sqlx::query!(
        "-- record_dead_man
        UPDATE sexton.dead_man SET tried_at = coalesce($2, clock_timestamp()), problem = left($1, 4000),
            pinged_at = CASE WHEN $1::text IS NULL THEN coalesce($2, clock_timestamp()) ELSE pinged_at END",
        problem,
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}

/// Reads what says whether the platform is well. Whether this process is connected to RabbitMQ is not among it.
pub async fn read_signs(store: &Store, now: Now) -> Result<PlatformSigns, StoreError> {
    let unpublished = status::read_unpublished(store, now).await?;
    let row = sqlx::query!(
        r#"-- dead_man_signs
        WITH t AS MATERIALIZED (SELECT coalesce($1, clock_timestamp()) AS now)
        SELECT extract(epoch FROM t.now - (SELECT min(next_fire_at) FROM sexton.jobs
                   WHERE status = 'active' AND next_fire_at IS NOT NULL))::float8 AS overdue,
               -- Since the channel last accepted something or was changed, since one before it of its incident was due again.
               extract(epoch FROM t.now - (SELECT min(greatest(n.due_at, c.next_send_at, c.last_sent_at, c.updated_at,
                       (SELECT max(e.due_at) FROM sexton.notifications e
                        WHERE e.incident_id = n.incident_id AND e.channel = n.channel AND e.state = 'pending' AND e.attempts > 0
                          AND (e.created_at, e.id) < (n.created_at, n.id))))
                   FROM sexton.notifications n JOIN sexton.channels c ON c.name = n.channel
                   WHERE n.state = 'pending' AND n.attempts = 0 AND n.due_at <= t.now AND c.failures = 0))::float8 AS unsent,
               -- Since the address last answered, since the one before it of its job was over.
               extract(epoch FROM t.now - (SELECT min(greatest(h.due_at, a.next_send_at, a.last_sent_at,
                       (SELECT max(e.finished_at) FROM sexton.heartbeats e WHERE e.job_id = h.job_id AND e.id < h.id)))
                   FROM sexton.heartbeats h JOIN sexton.heartbeat_addresses a ON a.address = h.address
                   WHERE h.state = 'pending' AND h.tries = 0 AND h.due_at <= t.now AND a.failures = 0
                     AND NOT EXISTS (SELECT FROM sexton.heartbeats e
                                     WHERE e.job_id = h.job_id AND e.state = 'pending' AND e.id < h.id)))::float8
                   AS unsent_heartbeats,
               extract(epoch FROM t.now - (SELECT max(coalesce(failing_since, 'infinity')) FROM sexton.channels
                   HAVING bool_and(failing_since IS NOT NULL)))::float8 AS channels_fail
        FROM t"#,
        now
    )
    .fetch_one(store.with_timeout())
    .await?;
    let seconds = |value: Option<f64>| {
        value.filter(|seconds| *seconds > 0.0).and_then(|s| Duration::try_from_secs_f64(s).ok())
    };
    Ok(PlatformSigns {
        overdue: seconds(row.overdue),
        unpublished: unpublished.oldest_ms.map(|ms| Duration::from_millis(ms.max(0) as u64)),
        unsent: seconds(row.unsent),
        unsent_heartbeats: seconds(row.unsent_heartbeats),
        channels_fail: seconds(row.channels_fail),
        is_connected: false,
    })
}
