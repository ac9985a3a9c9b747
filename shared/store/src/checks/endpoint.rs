//! Since when pings are accepted.

use std::time::Duration;

use sexton_model::check::MIN_PAUSE;

use crate::{Now, Store, StoreError};

/// After so short a time without a pause the next one is the same: not every check has been looked at in between.
const MIN_UP: Duration = Duration::from_mins(2);

/// Says that this process accepts pings. If nobody said so for [`MIN_PAUSE`], pings may have got lost meanwhile, and the pause is
/// recorded: checks forgive what it may have swallowed. A clock that was put back is followed.
///
/// # Errors
///
/// [`StoreError`].
pub async fn beat(store: &Store, now: Now) -> Result<(), StoreError> {
    sqlx::query!(
        "-- beat_ping_endpoint
        INSERT INTO sexton.ping_endpoint AS e (up_since, seen_at)
        SELECT coalesce($1, now()), coalesce($1, now())
        ON CONFLICT (one) DO UPDATE SET
            seen_at = CASE WHEN e.seen_at > excluded.seen_at + $2 * interval '1 second' THEN excluded.seen_at
                           ELSE greatest(e.seen_at, excluded.seen_at) END,
            (paused_from, up_since) = (
                SELECT CASE WHEN p.is_over AND p.is_another THEN e.seen_at ELSE e.paused_from END,
                       CASE WHEN p.is_over THEN excluded.seen_at ELSE least(e.up_since, excluded.seen_at) END
                FROM (SELECT e.seen_at <= excluded.seen_at - $2 * interval '1 second',
                             e.seen_at >= e.up_since + $3 * interval '1 second') AS p (is_over, is_another))",
        now,
        MIN_PAUSE.as_secs_f64(),
        MIN_UP.as_secs_f64()
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}

/// Returns how long nobody has accepted pings, though a check expects some; `None`: none does.
///
/// # Errors
///
/// [`StoreError`].
pub async fn silent_for(store: &Store, now: Now) -> Result<Option<Duration>, StoreError> {
    let seconds = sqlx::query_scalar!(
        r#"-- ping_endpoint_silence
        SELECT extract(epoch FROM coalesce($1, now()) - coalesce((SELECT seen_at FROM sexton.ping_endpoint), c.created_at))::float8
            AS "seconds!"
        FROM (SELECT created_at FROM sexton.checks WHERE NOT is_paused AND deleted_at IS NULL LIMIT 1) c"#,
        now
    )
    .fetch_optional(store.with_timeout())
    .await?;
    Ok(seconds.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 31_536_000.0))))
}
