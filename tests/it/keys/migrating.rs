//! The migration of platforms whose jobs share a key, and the way back.

use sexton_tests::database::migrator;

use super::Fixture;

/// The version before the registry.
const BEFORE: i64 = 17;

#[tokio::test]
async fn jobs_that_share_a_key_are_named_and_the_migration_runs_once_they_do_not() {
    let f = Fixture::new().await;
    f.apply(&[("a.one", ""), ("a.two", ""), ("b.one", ""), ("b.gone", "")]).await.expect(0);
    f.run(&["jobs", "delete", "b.gone", "--reason", "test", "--yes"]).await.expect(0);
    migrator().await.unwrap().undo(f.db.pool(), BEFORE).await.unwrap();
    let set =
        "UPDATE sexton.jobs SET lock_key = 5101 WHERE coalesce(deleted_name, name) <> 'b.one'";
    sqlx::query(set).execute(f.db.pool()).await.unwrap();
    let error = f.db.store().migrate().await.unwrap_err().to_string();
    for part in ["(5101: a.one, a.two)", "lock_key of all but one", "run `sexton migrate` again"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!error.contains("gone"), "a deleted job's key counts for nothing: {error}");
    assert_eq!(f.count("SELECT max(version) FROM sexton._sqlx_migrations").await, BEFORE);
    let remedy = "UPDATE sexton.jobs SET lock_key = 5102 WHERE name = 'a.two'";
    sqlx::query(remedy).execute(f.db.pool()).await.unwrap();
    assert!(f.db.store().migrate().await.unwrap() > 0);
    assert_eq!(f.keys().await, ["a.one 5101", "a.two 5102"]);
}

#[tokio::test]
async fn ranges_are_not_lost_on_the_way_back() {
    let f = Fixture::new().await;
    f.run(&["keys", "assign", "billing"]).await.expect(0);
    let error = migrator().await.unwrap().undo(f.db.pool(), BEFORE).await.unwrap_err().to_string();
    assert!(error.contains("sexton keys list --format csv"), "{error}");
    assert_eq!(f.ranges().await, ["billing 1000 50"]);
}
