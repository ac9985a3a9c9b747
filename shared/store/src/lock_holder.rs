//! Who holds the lock of a job, for the reason that an execution did not begin.

use sexton_model::job::JobLock;

use crate::{Store, StoreError};

/// Returns the session or process that holds the lock, as a text of at most 300 characters; `None`: it is free by now.
/// For people only: it decides nothing.
pub async fn find_lock_holder(store: &Store, lock: &JobLock) -> Result<Option<String>, StoreError> {
    Ok(match lock {
        JobLock::Key(key) => {
            sqlx::query_scalar!(
                r#"-- holder_of_key
                SELECT left(format('%s (backend %s%s)',
                                   coalesce(nullif(a.application_name, ''), a.usename, 'a session'), l.pid,
                                   ' at ' || host(a.client_addr)), 300) AS "holder!"
                FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
                WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                  AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                  AND l.classid = (($1::bigint >> 32) & 4294967295)::oid AND l.objid = ($1 & 4294967295)::oid
                ORDER BY l.pid LIMIT 1"#,
                key
            )
            .fetch_optional(store.with_timeout())
            .await?
        }
        JobLock::Row(row) => {
            sqlx::query_scalar!(
                r#"-- holder_of_row
                SELECT format('%s until %s', locked_by, to_char(lock_until, 'YYYY-MM-DD HH24:MI:SS "UTC"')) AS "holder!"
                FROM sexton.lock_rows WHERE name = $1 AND lock_until > timezone('utc', clock_timestamp())"#,
                row.name
            )
            .fetch_optional(store.with_timeout())
            .await?
        }
    })
}
