//! Work that one replica does at a time.

use sexton_model::id::ExecutionId;
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::parked_messages::{begin_pass, read_rows};
use sexton_tests::database::TestDatabase;

#[tokio::test]
async fn a_sweep_reading_rows_blocks_no_alter_table() {
    let db = TestDatabase::create().await.unwrap();
    let lock = ExclusiveLock::try_acquire(db.store(), ExclusiveTask::Sweep, None).await.unwrap();
    let mut lock = lock.unwrap();
    begin_pass(db.store(), lock.acquired_at()).await.unwrap();
    let unknown = [ExecutionId::new(uuid::Uuid::nil())];
    for _ in 0..2 {
        assert!(read_rows(&mut lock, &unknown).await.unwrap().is_empty());
        let mut altering = db.pool().begin().await.unwrap();
        for statement in [
            "SET LOCAL lock_timeout = '5s'",
            "LOCK TABLE sexton.executions, sexton.sweep_kept IN ACCESS EXCLUSIVE MODE",
        ] {
            sqlx::query(statement).execute(&mut *altering).await.unwrap();
        }
        altering.rollback().await.unwrap();
    }
    let other = ExclusiveLock::try_acquire(db.store(), ExclusiveTask::Sweep, None).await.unwrap();
    assert!(other.is_none(), "it has its own lock still");
}
