//! Locks through PgBouncer.

use std::time::Duration;

use sexton_guard::{AdvisoryLocks, CREATE_SHEDLOCK, LockError, LockRow, Run, TransactionLock};
use sexton_servers::PgBouncer;
use sqlx::Row as _;
use sqlx::postgres::{PgConnectOptions, PgPool};

use super::{Fixture, KEY};

/// What a client of this library sets for PgBouncer, which knows no `extra_float_digits`.
fn options(url: &str) -> PgConnectOptions {
    url.parse::<PgConnectOptions>().unwrap().extra_float_digits(None)
}

#[tokio::test]
async fn a_session_that_a_pooler_shares_is_refused_with_the_remedy() {
    let f = Fixture::new().await;
    for strict in [false, true] {
        let pooler = if strict {
            PgBouncer::start_strict(f.db.url(), "transaction").await.unwrap()
        } else {
            PgBouncer::start(f.db.url(), "transaction").await.unwrap()
        };
        // Also while the pooler has several free connections, and others use it.
        let pool = PgPool::connect_with(options(pooler.url())).await.unwrap();
        let mut open = Vec::new();
        for _ in 0..4 {
            open.push(pool.begin().await.unwrap());
        }
        for tx in open {
            tx.rollback().await.unwrap();
        }
        let error = AdvisoryLocks::connect(options(pooler.url())).await.unwrap_err();
        assert!(matches!(error, LockError::SharedSession), "{error:?}");
        for part in ["DATABASE_DIRECT_URL", "LockRow", "TransactionLock", "pool_mode = session"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        // The check leaves the sessions of others as they were.
        let settings = "SELECT current_setting('statement_timeout') || coalesce(current_setting('sexton_guard.mark', true), '')";
        let settings = sqlx::raw_sql(settings).fetch_one(&pool).await.unwrap();
        assert_eq!(settings.get::<String, _>(0), "0");
        pool.close().await;
    }
}

#[tokio::test]
async fn a_pooler_that_gives_a_session_to_one_client_holds_its_locks() {
    let f = Fixture::new().await;
    for strict in [false, true] {
        let pooler = if strict {
            PgBouncer::start_strict(f.db.url(), "session").await.unwrap()
        } else {
            PgBouncer::start(f.db.url(), "session").await.unwrap()
        };
        let through = AdvisoryLocks::connect(options(pooler.url())).await.unwrap();
        let direct = f.locks().await;
        let held = through.try_acquire(KEY).await.unwrap().unwrap();
        assert!(direct.try_acquire(KEY).await.unwrap().is_none());
        held.release().await.unwrap();
        direct.try_acquire(KEY).await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn rows_and_transactions_work_through_a_pooler_that_shares_sessions() {
    let f = Fixture::new().await;
    f.run(CREATE_SHEDLOCK).await;
    let pooler = PgBouncer::start(f.db.url(), "transaction").await.unwrap();
    let pool = PgPool::connect_with(options(pooler.url())).await.unwrap();
    let row = LockRow::new("a", Duration::from_mins(1)).unwrap();
    let beside = async |_| row.try_acquire(f.pool()).await.unwrap().is_none();
    assert_eq!(row.try_run(&pool, beside).await.unwrap(), Run::Done(true));
    assert_eq!(row.try_run(f.pool(), async |_| 7).await.unwrap(), Run::Done(7));
    let lock = TransactionLock::new(KEY);
    let tx = lock.try_begin(&pool).await.unwrap().unwrap();
    assert!(lock.try_begin(&pool).await.unwrap().is_none());
    assert!(!f.is_free(KEY).await);
    tx.commit().await.unwrap();
    assert!(f.is_free(KEY).await);
    pool.close().await;
}
