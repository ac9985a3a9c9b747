//! Keys of jobs: one job has a key, and it is one of its service's range.

use std::sync::Arc;
use std::time::Duration;

use sexton_model::id::JobId;
use sexton_model::job::{JobSpec, Schedule};
use sexton_store::jobs::{Apply, ApplyError, apply};
use sqlx::error::DatabaseError;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

use super::Fixture;

const SESSIONS: usize = 10;
/// For a loaded machine.
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_key_that_a_job_may_not_have_is_refused_with_its_place_and_what_to_do() {
    let f = Fixture::new().await;
    f.run(&["keys", "assign", "billing", "--start", "100", "--keys", "6"]).await.expect(0);
    f.run(&["keys", "assign", "full", "--start", "200", "--keys", "1"]).await.expect(0);
    f.apply(&[
        ("billing.a", "lock_key = 100"),
        ("full.a", "lock_key = 200"),
        ("web.a", "lock_key = 7"),
    ])
    .await
    .expect(0);
    let before = f.keys().await;
    let refused = [
        // Of a job that the file lacks, of another range, of no range, of a job of the same file.
        ("billing.b", "lock_key = 100"),
        ("billing.c", "lock_key = 200"),
        ("billing.d", "lock_key = 7"),
        ("billing.e", "lock_key = 101"),
        ("billing.f", "lock_key = 101"),
        ("full.b", "lock_key = 200"),
        ("shop.a", "lock_key = 102"),
        ("cleanup", "lock_key = 103"),
        ("web.b", "lock_key = 7"),
        ("fine.a", "lock_key = 8"),
    ];
    let text = f.apply(&refused).await.expect(1).text();
    for part in [
        "jobs.toml:2: job \"billing.b\": lock_key: 100 is the key of billing.a; the next free one is 102",
        "jobs.toml:7: job \"billing.c\": lock_key: 200 is the key of full.a; the next free one is 103",
        ":12: job \"billing.d\": lock_key: 7 is the key of web.a; the next free one is 104",
        ":22: job \"billing.f\": lock_key: 101 is the key of billing.e; the next free one is 105",
        ":27: job \"full.b\": lock_key: 200 is the key of full.a; all 1 are taken: `sexton keys assign full --keys 2`",
        ":32: job \"shop.a\": lock_key: 102 is one of the keys of billing (100 to 105), and shop has no range; `sexton keys assign shop`",
        ":37: job \"cleanup\": lock_key: 103 is one of the keys of billing (100 to 105), and the job is named without a service",
        ":42: job \"web.b\": lock_key: 7 is the key of web.a; `sexton keys assign web`",
        "8 problems; nothing was applied",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(f.keys().await, before);
    let out = f.apply(&[("billing.b", "lock_key = 106")]).await.expect(1).text();
    assert!(
        out.contains(
            "106 is not one of the keys of billing (100 to 105); the next free one is 101"
        ),
        "{out}"
    );
    f.apply(&[("billing.b", "lock_key = 103"), ("fine.a", "lock_key = 8")]).await.expect(0);
}

/// While its task ran, nobody could apply jobs or migrate.
#[tokio::test]
async fn a_number_that_sexton_itself_locks_is_no_job_s_key() {
    let f = Fixture::new().await;
    let database: String =
        sqlx::query_scalar("SELECT current_database()").fetch_one(f.db.pool()).await.unwrap();
    // sqlx's formula: a factor, and the CRC-32 that django-pglocks gives a sign.
    let crc = f.json(&["keys", "derive", &database, "--like", "django-pglocks"], 0).await;
    let crc: i32 = crc["key"].as_str().unwrap().parse().unwrap();
    let migration = 0x3d32_ad9e_i64.wrapping_mul(i64::from(crc.cast_unsigned()));
    for (key, purpose) in [
        (0x7365_7874_6f6e_2061, "an apply of jobs"),
        (0x7365_7874_6f6e_2066, "a job of a foreign task"),
        (0x7365_7874_6f6e_206b, "an assignment of lock keys"),
        (migration, "a migration"),
    ] {
        let out = f.apply(&[("billing.a", &format!("lock_key = {key}"))]).await.expect(1).text();
        assert!(out.contains(&format!("{key} is the lock of {purpose}")), "{out}");
    }
    // Pairs are another space: the number with the bits of a pair is nobody's.
    let pair = (0x5358_544E_i64 << 32) | 1;
    f.apply(&[("billing.a", &format!("lock_key = {pair}"))]).await.expect(0);
}

#[tokio::test]
async fn jobs_exchange_their_keys_in_one_apply() {
    let f = Fixture::new().await;
    f.apply(&[("a.one", "lock_key = 1"), ("a.two", "lock_key = 2"), ("a.three", "lock_key = 3")])
        .await
        .expect(0);
    f.apply(&[
        ("a.one", "lock_key = 2"),
        ("a.two", "lock_key = 1"),
        ("a.three", ""),
        ("a.new", "lock_key = 3"),
    ])
    .await
    .expect(0);
    assert_eq!(f.keys().await, ["a.new 3", "a.one 2", "a.two 1"]);
    // One change each: that a key is free for a moment is no revision.
    assert_eq!(f.count("SELECT max(revision)::bigint FROM sexton.jobs").await, 2);
}

/// Otherwise an assignment would keep the schedulers of a service from their next start.
#[tokio::test]
async fn a_range_that_is_assigned_later_stops_no_job_that_is_there() {
    let f = Fixture::new().await;
    f.apply(&[("billing.run", "lock_key = 7")]).await.expect(0);
    f.run(&["keys", "assign", "billing"]).await.expect(0);
    f.apply(&[("billing.run", "lock_key = 7")]).await.expect(0);
    f.apply(&[("billing.run", "lock_key = 7\ndescription = \"changed\"")]).await.expect(0);
    let found = f.run(&["keys", "check"]).await.expect(8).text();
    assert!(
        found.contains("billing.run: outside: 7 is not one of the keys of billing (1000 to 1049)"),
        "{found}"
    );
    f.apply(&[("billing.run", "lock_key = 8")]).await.expect(1);
    f.apply(&[("billing.run", "lock_key = 1000")]).await.expect(0);
    f.run(&["keys", "check"]).await.expect(0);
}

#[tokio::test]
async fn a_deleted_job_gives_its_key_up() {
    let f = Fixture::new().await;
    f.apply(&[("a.old", "lock_key = 1")]).await.expect(0);
    f.apply(&[("a.new", "lock_key = 1")]).await.expect(1);
    f.run(&["jobs", "delete", "a.old", "--reason", "replaced", "--yes"]).await.expect(0);
    f.apply(&[("a.new", "lock_key = 1")]).await.expect(0);
    assert_eq!(f.keys().await, ["a.new 1"]);
}

#[tokio::test]
async fn of_many_jobs_that_are_applied_at_once_with_one_key_one_has_it() {
    let f = Fixture::new().await;
    let barrier = Arc::new(Barrier::new(SESSIONS));
    let mut sessions = JoinSet::new();
    for number in 0..SESSIONS {
        let (store, barrier) = (f.db.other_store().unwrap(), Arc::clone(&barrier));
        sessions.spawn(async move {
            let mut spec = JobSpec::new(format!("a.job{number}"), "t", Schedule::None);
            spec.lock_key = Some(5_101);
            let request = Apply { specs: &[spec], actor: "test", dry_run: false, prune: false };
            barrier.wait().await;
            let applied = apply(&store, request, || JobId::new(Uuid::now_v7()), None).await;
            store.close().await;
            match applied {
                Ok(_) => true,
                Err(ApplyError::Problems(problems)) => {
                    let text = problems[0].to_string();
                    assert!(text.contains("5101 is the key of a.job"), "{text}");
                    false
                }
                Err(error) => panic!("{error}"),
            }
        });
    }
    let applied = timeout(PATIENCE, sessions.join_all()).await.unwrap();
    assert_eq!(applied.iter().filter(|applied| **applied).count(), 1);
    assert_eq!(f.keys().await.len(), 1);
}

/// The fence below the program: the version before, and people with psql.
#[tokio::test]
async fn the_database_refuses_a_second_job_with_a_key() {
    let f = Fixture::new().await;
    f.apply(&[("a.one", "lock_key = 1"), ("a.two", "")]).await.expect(0);
    let statement = "UPDATE sexton.jobs SET lock_key = 1 WHERE name = 'a.two'";
    let error = sqlx::query(statement).execute(f.db.pool()).await.unwrap_err();
    assert_eq!(error.as_database_error().and_then(DatabaseError::code).as_deref(), Some("23505"));
}
