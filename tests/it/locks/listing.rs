//! Advisory locks, as real sessions hold and wait for them.

use chrono::Timelike as _;
use serde_json::{Value, json};
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::locks::{LockFilter, SinceBasis, list_advisory};
use sexton_store::{Store, StoreOptions};
use sqlx::migrate::Migrate as _;

use crate::cli::sexton_with;

use super::{Fixture, KEY, eventually, execute, instant, process_id};

fn basis(lock: &Value) -> &str {
    lock["since"]["basis"].as_str().unwrap_or("none")
}

fn keys(locks: &[Value]) -> Vec<Value> {
    locks.iter().map(|lock| lock["key"].clone()).collect()
}

#[tokio::test]
async fn a_lock_is_listed_with_its_session_and_with_those_that_wait() {
    let f = Fixture::new().await;
    f.job("billing.cleanup", "lock_key = 5101").await;
    let (mut holder, mut waiter) = (f.connect("billing-api").await, f.connect("crm-api").await);
    execute(&mut holder, "SELECT pg_advisory_lock(5101), pg_advisory_lock(-7, 2147483647)").await;
    execute(&mut holder, "SELECT pg_advisory_lock_shared(-9)").await;
    let pids = [process_id(&mut holder).await, process_id(&mut waiter).await];
    let wait = tokio::spawn(async move {
        execute(&mut waiter, "SELECT pg_advisory_lock(5101), 'of the cleanup'").await;
        waiter
    });
    let both = eventually("the second session waits", async || {
        let found = f.advisory(&["--waiting"]).await;
        (found.len() == 2 && basis(&found[1]) == "wait").then_some(found)
    })
    .await;
    let of = |field: &str| -> Vec<Value> {
        both.iter().map(|lock| lock["session"][field].clone()).collect()
    };
    assert_eq!(keys(&both), [KEY, KEY], "those without a wait are left out");
    assert_eq!(of("pid"), pids);
    assert_eq!(of("application"), ["billing-api", "crm-api"]);
    assert_eq!(of("state"), ["idle", "active"]);
    assert_eq!([basis(&both[0]), basis(&both[1])], ["session", "wait"]);
    assert_eq!([&both[0]["is_held"], &both[1]["is_held"]], [&json!(true), &json!(false)]);
    assert!(of("query")[1].as_str().unwrap().contains("of the cleanup"), "{both:?}");
    assert_eq!(both[1]["jobs"]["names"], json!(["billing.cleanup"]));
    assert!(both[0]["session"]["login"].is_string() && both[0]["attempt"].is_null());

    let all = f.advisory(&[]).await;
    assert_eq!(keys(&all), [json!(-9), json!(KEY), json!(KEY), json!([-7, i32::MAX])]);
    assert_eq!(all[0]["is_shared"], true);
    assert_eq!(keys(&f.advisory(&["--key", "-7,2147483647"]).await), [json!([-7, i32::MAX])]);
    assert_eq!(keys(&f.advisory(&["--key", "-9"]).await), [json!(-9)]);
    // By the job's name, and by the session's.
    assert_eq!(f.advisory(&["--service", "billing."]).await.len(), 2);
    assert_eq!(f.advisory(&["--service", "billing-"]).await.len(), 3);
    assert_eq!(f.advisory(&["--service", "nobody"]).await.len(), 0);

    let table = f.sexton(&["locks", "--waiting"]).await.expect(0).text();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].contains("held") && lines[1].contains("(session)"), "{table}");
    assert!(lines[1].contains(&format!("backend {}", pids[0])), "{table}");
    assert!(lines[2].contains("waits") && lines[2].contains("billing.cleanup"), "{table}");
    let table = f.sexton(&["locks", "--limit", "1"]).await.expect(0).text();
    assert!(table.contains("and 3 more advisory locks"), "{table}");

    execute(&mut holder, "SELECT pg_advisory_unlock(5101)").await;
    wait.await.unwrap();
    let left = f.sexton(&["locks", "--waiting"]).await.expect(0).text();
    assert!(left.contains("no such locks"), "{left}");
}

#[tokio::test]
async fn a_service_that_took_a_tick_holds_its_key_since_then() {
    let f = Fixture::new().await;
    let mut service = f.connect("billing-api").await;
    let now: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("SELECT now()").fetch_one(&mut service).await.unwrap();
    let tick = now.with_nanosecond(0).unwrap();
    let took = format!("SELECT sexton.guard_try(5101, '{tick}')");
    execute(&mut service, &took).await;
    let [lock] = &f.advisory(&[]).await[..] else { panic!("one lock") };
    assert_eq!((basis(lock), instant(&lock["tick"])), ("tick", tick));
    assert!(instant(&lock["since"]["at"]) >= now);
    let listed = f.sexton(&["locks"]).await.expect(0).text();
    assert!(listed.contains("(tick)"), "{listed}");
    // The tick has ended, and the session locks the key by itself.
    let ends = format!("SELECT sexton.guard_done(5101, '{tick}'), pg_advisory_lock(5101)");
    execute(&mut service, &ends).await;
    let [lock] = &f.advisory(&[]).await[..] else { panic!("one lock") };
    assert_eq!((basis(lock), &lock["tick"]), ("session", &Value::Null));
}

/// An open tick of an instance that died says nothing of a later session with its process id.
#[tokio::test]
async fn a_tick_of_an_earlier_session_is_not_this_ones() {
    let f = Fixture::new().await;
    let mut service = f.connect("billing-api").await;
    let pid = process_id(&mut service).await;
    execute(&mut service, "SELECT pg_advisory_lock(5101)").await;
    f.sql(&format!(
        "INSERT INTO sexton.guard_ticks (key, tick, began_at, began_by, backend)
         VALUES (5101, now(), now() - interval '1 hour', 'an earlier one', {pid})"
    ))
    .await;
    let [lock] = &f.advisory(&[]).await[..] else { panic!("one lock") };
    assert_eq!((basis(lock), &lock["tick"]), ("session", &Value::Null));
}

#[tokio::test]
async fn a_workers_session_holds_a_key_for_the_attempt_that_it_runs() {
    let f = Fixture::new().await;
    // The server cuts the application's name.
    let long = "w".repeat(60);
    let job = f.job("billing.cleanup", "lock_key = 5101").await;
    f.worker(&long, 7).await;
    f.worker("w2", 8).await;
    let running = f.running(job, &long, 10).await;
    // On its way to find the key locked.
    f.running(job, "w2", 0).await;
    let mut session = f.connect(&format!("sexton worker {long} locks")).await;
    execute(&mut session, "SELECT pg_advisory_lock(5101)").await;
    let waiting = f.running(job, "w2", 0).await;
    f.end(waiting, "locked", 0).await;
    let [lock] = &f.advisory(&[]).await[..] else { panic!("one lock") };
    let attempt = &lock["attempt"];
    assert_eq!(attempt["execution_id"], running.to_string());
    assert_eq!((&attempt["job"], &attempt["worker"]), (&json!("billing.cleanup"), &json!(long)));
    assert_eq!((&attempt["attempt"], &attempt["timeout_ms"]), (&json!(1), &json!(60_000)));
    assert_eq!((basis(lock), &lock["since"]["at"]), ("attempt", &attempt["opened_at"]));
    assert_eq!(lock["jobs"]["names"], json!(["billing.cleanup"]));
    assert_eq!(lock["executions_waiting"], 1);
    let table = f.sexton(&["locks"]).await.expect(0).text();
    let id = running.to_string();
    assert!(table.contains(&id[..8]) && table.contains("1 execution waits"), "{table}");
    // Another's session holds it for none of them.
    drop(session);
    let mut service = f.connect("billing-api").await;
    execute(&mut service, "SELECT pg_advisory_lock(5101)").await;
    let [lock] = &f.advisory(&[]).await[..] else { panic!("one lock") };
    assert!(lock["attempt"].is_null() && lock["session"]["worker"].is_null(), "{lock}");
}

#[tokio::test]
async fn the_locks_of_sexton_itself_are_listed_with_all_only_and_say_what_they_are_for() {
    let f = Fixture::new().await;
    let sweep = ExclusiveLock::try_acquire(f.db.store(), ExclusiveTask::Sweep, None).await;
    let sweep = sweep.unwrap().unwrap();
    // Applies of jobs and of foreign tasks, by their letters, and the lock that sqlx itself takes.
    let mut session = f.connect("sexton scheduler s1").await;
    let key = |letter: u8| i64::from_be_bytes([b's', b'e', b'x', b't', b'o', b'n', b' ', letter]);
    for letter in [b'a', b'f', b'x'] {
        execute(&mut session, &format!("SELECT pg_advisory_lock({})", key(letter))).await;
    }
    session.lock().await.unwrap();
    let shown = f.advisory(&[]).await;
    assert_eq!(keys(&shown), [key(b'x')], "one that only looks like Sexton's");
    let mut purposes: Vec<String> = f
        .advisory(&["--all"])
        .await
        .iter()
        .filter_map(|lock| lock["purpose"].as_str().map(str::to_owned))
        .collect();
    purposes.sort();
    let expected = [
        "a job of a foreign task",
        "a migration",
        "a sweep of the failed queue",
        "an apply of jobs",
    ];
    assert_eq!(purposes, expected);
    let table = f.sexton(&["locks", "--all"]).await.expect(0).text();
    assert!(table.contains("for a sweep of the failed queue; idle in transaction"), "{table}");
    sweep.release().await.unwrap();
}

/// The URL of the database for sessions that take this role.
fn url_of(f: &Fixture, role: &str) -> String {
    let separator = if f.db.url().contains('?') { '&' } else { '?' };
    format!("{}{separator}options=-c%20role%3D{role}", f.db.url())
}

#[tokio::test]
async fn a_refusal_for_lack_of_a_privilege_names_the_roles() {
    let f = Fixture::new().await;
    let role = format!("sx_locks_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    f.sql(&format!("CREATE ROLE {role}")).await;
    f.sql(&format!("GRANT USAGE ON SCHEMA sexton TO {role}")).await;
    let url = url_of(&f, &role);
    let text = sexton_with(&["locks"], &[("DATABASE_URL", &url)]).await.expect(1).text();
    assert!(text.contains("lacks a privilege: permission denied for table"), "{text}");
    assert!(text.contains("sexton_viewer to look"), "{text}");
    f.sql(&format!("DROP OWNED BY {role}")).await;
    f.sql(&format!("DROP ROLE {role}")).await;
}

/// PostgreSQL shows another role's session to members of `pg_read_all_stats` only.
#[tokio::test]
async fn a_role_that_may_not_see_a_session_is_shown_that_it_is_hidden() {
    let f = Fixture::new().await;
    let role = format!("sx_locks_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    f.sql(&format!("CREATE ROLE {role}")).await;
    f.sql(&format!("GRANT USAGE ON SCHEMA sexton TO {role}")).await;
    f.sql(&format!("GRANT SELECT ON ALL TABLES IN SCHEMA sexton TO {role}")).await;
    let mut service = f.connect("billing-api").await;
    execute(&mut service, "SELECT pg_advisory_lock(5101)").await;
    let url = url_of(&f, &role);
    let store = Store::open(&StoreOptions::new(url, "viewer")).unwrap();
    let found = list_advisory(&store, &LockFilter::default(), 10).await.unwrap();
    let [lock] = &found.items[..] else { panic!("one lock: {found:?}") };
    let session = lock.session.as_ref().unwrap();
    assert_eq!(session.application, "billing-api");
    assert_eq!((&session.state, &session.query, lock.since), (&None, &None, None));
    f.sql(&format!("GRANT pg_read_all_stats TO {role}")).await;
    let found = list_advisory(&store, &LockFilter::default(), 10).await.unwrap();
    assert_eq!(found.items[0].since.unwrap().basis, SinceBasis::Session);
    store.close().await;
    f.sql(&format!("DROP OWNED BY {role}")).await;
    f.sql(&format!("DROP ROLE {role}")).await;
}
