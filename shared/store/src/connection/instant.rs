//! The instant of a transaction that is not the planner's.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::Now;
use crate::connection::client_timeout::WithTimeout;

/// Returns the given instant, or the database's time.
pub(crate) async fn instant(
    connection: &mut PgConnection,
    now: Now,
) -> Result<DateTime<Utc>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"-- instant
        SELECT coalesce($1, clock_timestamp()) AS "now!""#,
        now
    )
    .fetch_one(WithTimeout(connection))
    .await
}
