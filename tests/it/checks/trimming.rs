//! The removal of old pings, with the clock stepped.

use chrono::{DateTime, Utc};
use sexton_store::checks::KEPT_PINGS;
use sexton_store::checks::trim::{Trimmed, trim};
use sexton_tests::database::TestDatabase;
use sqlx::AssertSqlSafe;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

struct Fixture {
    db: TestDatabase,
}

impl Fixture {
    async fn new() -> Self {
        Self { db: TestDatabase::create().await.unwrap() }
    }

    /// Adds a check with so many pings, each of which has written so many logs.
    async fn check(&self, name: &str, pings: i64, logs: i64) {
        let query = "WITH c AS (
                INSERT INTO sexton.checks (id, name, every_ms, grace_ms, created_at, changed_at, next_check_at, checked_at, trim_at)
                VALUES (gen_random_uuid(), $1, 1000, 1000, $4, $4, $4, $4, $4) RETURNING id)
            INSERT INTO sexton.pings (check_id, at, kind)
            SELECT id, $4, kind FROM c CROSS JOIN (
                SELECT 'success' FROM generate_series(1, $2) UNION ALL SELECT 'log' FROM generate_series(1, $3)) AS k (kind)";
        let adding = sqlx::query(query).bind(name).bind(pings).bind(logs).bind(at(0));
        adding.execute(self.db.pool()).await.unwrap();
    }

    async fn trim(&self, max_checks: i64, max_pings: i64, seconds: i64) -> Trimmed {
        trim(self.db.store(), max_checks, max_pings, Some(at(seconds))).await.unwrap()
    }

    /// Pings and logs of a check.
    async fn kept(&self, name: &str) -> (i64, i64) {
        let query =
            "SELECT count(*) FILTER (WHERE kind <> 'log'), count(*) FILTER (WHERE kind = 'log')
            FROM sexton.pings p JOIN sexton.checks c ON c.id = p.check_id WHERE c.name = $1";
        sqlx::query_as(query).bind(name).fetch_one(self.db.pool()).await.unwrap()
    }
}

#[tokio::test]
async fn the_newest_pings_are_kept_and_logs_push_out_no_other() {
    let f = Fixture::new().await;
    f.check("backup", 2, KEPT_PINGS + 50).await;
    f.check("report", KEPT_PINGS + 1, KEPT_PINGS).await;
    let newest = "SELECT max(id) FROM sexton.pings";
    let last: i64 = sqlx::query_scalar(newest).fetch_one(f.db.pool()).await.unwrap();
    let trimmed = f.trim(10, 1_000, 0).await;
    assert_eq!(trimmed, Trimmed { checks: 2, pings: 51, removed: 0, more: false });
    assert_eq!(f.kept("backup").await, (2, KEPT_PINGS));
    assert_eq!(f.kept("report").await, (KEPT_PINGS, KEPT_PINGS));
    assert_eq!(sqlx::query_scalar::<_, i64>(newest).fetch_one(f.db.pool()).await.unwrap(), last);
    // Each is looked at again after an hour.
    assert_eq!(f.trim(10, 1_000, 3_599).await.checks, 0);
    assert_eq!(f.trim(10, 1_000, 3_600).await.checks, 2);
}

#[tokio::test]
async fn a_statement_removes_a_batch_and_a_flood_of_one_check_holds_up_no_other() {
    let f = Fixture::new().await;
    f.check("flood", KEPT_PINGS + 1_000, 0).await;
    f.check("quiet", KEPT_PINGS + 10, 0).await;
    let trimmed = f.trim(1, 400, 1).await;
    assert_eq!((trimmed.pings, trimmed.more), (400, true));
    assert_eq!(f.trim(1, 400, 2).await.pings, 10, "the other has waited for longer");
    for left in [400, 200] {
        assert_eq!(f.trim(1, 400, 3).await.pings, left);
    }
    assert_eq!(f.kept("flood").await, (KEPT_PINGS, 0));
}

#[tokio::test]
async fn a_deleted_check_goes_after_the_last_of_its_pings() {
    let f = Fixture::new().await;
    f.check("backup", 500, 100).await;
    let delete = "UPDATE sexton.checks SET deleted_at = $1, next_check_at = 'infinity'";
    sqlx::query(delete).bind(at(0)).execute(f.db.pool()).await.unwrap();
    assert_eq!(
        f.trim(10, 400, 300).await,
        Trimmed { checks: 1, pings: 400, removed: 0, more: true }
    );
    // Its incident may be open until it is judged.
    let judged =
        |at| format!("UPDATE sexton.checks SET next_check_at = '{at}', trim_at = created_at");
    let set =
        async |at| sqlx::raw_sql(AssertSqlSafe(judged(at))).execute(f.db.pool()).await.unwrap();
    set("2027-01-01").await;
    assert_eq!(
        f.trim(10, 400, 300).await,
        Trimmed { checks: 1, pings: 200, removed: 0, more: false }
    );
    set("infinity").await;
    assert_eq!(
        f.trim(10, 400, 300).await,
        Trimmed { checks: 1, pings: 0, removed: 1, more: false }
    );
}

#[tokio::test]
async fn a_check_that_somebody_judges_is_passed_by() {
    let f = Fixture::new().await;
    f.check("backup", KEPT_PINGS + 10, 0).await;
    let mut tx = f.db.pool().begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.checks FOR NO KEY UPDATE").execute(&mut *tx).await.unwrap();
    assert_eq!(f.trim(10, 400, 1).await.checks, 0);
    tx.rollback().await.unwrap();
    assert_eq!(f.trim(10, 400, 1).await.pings, 10);
}
