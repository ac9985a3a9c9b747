//! One migrator at a time.
//!
//! The lock is the one that sqlx takes, so that earlier versions, and sqlx's own migrator, wait for it too. It polls
//! for the lock instead of waiting: a waiting statement keeps a snapshot, for whose end `CREATE INDEX CONCURRENTLY`
//! of the lock's holder would wait, each for the other.

use std::time::Duration;

use sqlx::{PgConnection, Row as _};

use super::ProgressLog;
use crate::StoreError;
use crate::connection::client_timeout::with_client_timeout;

/// Pause between two tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The factor by which sqlx multiplies the checksum of the database's name.
const SQLX_LOCK_FACTOR: i64 = 0x3d32_ad9e;

/// Takes the lock for the session. Waits for its holder without a limit; the caller sets one.
pub(super) async fn acquire(
    connection: &mut PgConnection,
    log: ProgressLog<'_>,
) -> Result<(), StoreError> {
    let name = sqlx::query_scalar("-- migrated_database\nSELECT current_database()::text");
    let name: String = with_client_timeout(name.fetch_one(&mut *connection)).await?;
    let key = migration_lock_key(&name);
    let mut is_logged = false;
    loop {
        let ask = sqlx::query(
            "-- lock_migrations
            SELECT pg_try_advisory_lock($1),
                   (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
                        AND (classid::bigint << 32 | objid::bigint) = $1 LIMIT 1)",
        );
        let row = with_client_timeout(ask.bind(key).fetch_one(&mut *connection)).await?;
        if row.try_get(0)? {
            return Ok(());
        }
        if let (false, Some(pid)) = (is_logged, row.try_get::<Option<i32>, _>(1)?) {
            log(&format!("somebody else migrates (process {pid} of the server); waits for it"));
            is_logged = true;
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Returns the key of a database's migrations.
pub(crate) fn migration_lock_key(database: &str) -> i64 {
    SQLX_LOCK_FACTOR.wrapping_mul(i64::from(crc32(database.as_bytes())))
}

/// The CRC of Ethernet, gzip and sqlx.
fn crc32(bytes: &[u8]) -> u32 {
    let fold = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 }
        })
    };
    !bytes.iter().fold(!0, fold)
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn the_checksum_is_the_one_that_everybody_has() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
