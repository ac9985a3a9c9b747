//! Breaking a lock row: what its holder finds, whom it must not hit, and what the audit says.

use std::sync::Arc;

use sexton_operations::actor::Actor;
use sexton_operations::error::{Conflict, OperationError};
use sexton_operations::locks::{break_row, find_to_break};
use sexton_store::locks::{BreakError, RowBreak};
use sexton_store::operator::AuditContext;
use sqlx::postgres::PgConnection;

use super::{Fixture, eventually, execute, process_id};

const HOLDER: &str = "h1:7:00000000-0000-0000-0000-000000000000";

/// As a holder extends its lock.
const EXTEND: &str = "UPDATE sexton.lock_rows SET lock_until = timezone('utc', clock_timestamp()) + interval '5 minutes'
    WHERE name = 'cleanup' AND locked_by LIKE 'h1:%' AND lock_until > timezone('utc', clock_timestamp())";

/// As another process takes it.
const TAKE: &str = "UPDATE sexton.lock_rows SET lock_until = timezone('utc', clock_timestamp()) + interval '5 minutes',
        locked_at = timezone('utc', clock_timestamp()), locked_by = 'h2:9:x'
    WHERE name = 'cleanup' AND lock_until <= timezone('utc', clock_timestamp())";

/// As its holder releases it.
const RELEASE: &str = "UPDATE sexton.lock_rows SET lock_until = timezone('utc', clock_timestamp())
    WHERE name = 'cleanup' AND locked_by LIKE 'h1:%'";

fn actor() -> Actor {
    Actor {
        name: "ann@ops1".to_owned(),
        host: "ops1".to_owned(),
        process_id: 1,
        origin: None,
        is_interactive: false,
    }
}

impl Fixture {
    async fn actions(&self) -> String {
        self.text("SELECT count(*)::text FROM sexton.operator_actions").await
    }

    /// Waits until the session of another process waits for a row.
    async fn until_someone_waits_behind(&self, session: &mut PgConnection) {
        let query = format!(
            "SELECT count(*)::text FROM pg_stat_activity WHERE {} = ANY (pg_blocking_pids(pid))",
            process_id(session).await
        );
        let waits = async || (self.text(&query).await != "0").then_some(());
        eventually("somebody waits", waits).await;
    }
}

#[tokio::test]
async fn a_break_frees_the_row_and_is_in_the_audit() {
    let f = Fixture::new().await;
    f.row("cleanup", "app1", 3, 5).await;
    let mut other = f.connect("another").await;
    assert_eq!(execute(&mut other, TAKE).await, 0);
    let command = ["locks", "break", "cleanup", "--reason", "app1 is gone"];
    let question = f.sexton(&command).await.expect(7).text();
    assert!(question.contains("taken by app1 at ") && question.contains("--yes"), "{question}");
    assert!(f.is_locked("cleanup").await && f.actions().await == "0", "nothing was done");
    let done = f.sexton(&[&command[..], &["--yes"]].concat()).await.expect(0).text();
    assert!(done.contains("cleanup is free"), "{done}");
    let recorded =
        "SELECT concat_ws(' ', split_part(actor, '@', 1), action, reason, before ->> 'locked_by',
            (before ->> 'lock_until')::timestamptz > at, (after ->> 'lock_until')::timestamptz = at,
            after ->> 'forced', job_id IS NULL)
        FROM sexton.operator_actions";
    assert_eq!(f.text(recorded).await, "tester break_lock app1 is gone app1 t t false t");
    let again = f.sexton(&[&command[..], &["--yes"]].concat()).await.expect(4).text();
    assert!(again.contains("is free already"), "{again}");
    assert_eq!(f.actions().await, "1");
    // The row stays, for the libraries that only update it.
    assert_eq!(execute(&mut other, TAKE).await, 1);
}

#[tokio::test]
async fn a_holder_loses_a_broken_row_at_its_next_extension() {
    let f = Fixture::new().await;
    f.row("cleanup", HOLDER, 3, 5).await;
    let mut holder = f.connect("the holder").await;
    assert_eq!(execute(&mut holder, EXTEND).await, 1);
    f.sexton(&["locks", "break", "cleanup", "--reason", "x", "--yes"]).await.expect(0);
    assert_eq!(execute(&mut holder, EXTEND).await, 0);
    let mut other = f.connect("another").await;
    assert_eq!(execute(&mut other, TAKE).await, 1);
    assert_eq!(execute(&mut holder, EXTEND).await + execute(&mut holder, RELEASE).await, 0);
    assert!(f.is_locked("cleanup").await, "of the other one");
}

/// The break waits for an extension that is under way, and counts after it.
#[tokio::test]
async fn an_extension_under_way_does_not_outlive_the_break() {
    let f = Fixture::new().await;
    f.row("cleanup", HOLDER, 3, 5).await;
    let mut holder = f.connect("the holder").await;
    execute(&mut holder, "BEGIN").await;
    assert_eq!(execute(&mut holder, EXTEND).await, 1);
    let command = ["locks", "break", "cleanup", "--reason", "x", "--yes"];
    let extending = async {
        f.until_someone_waits_behind(&mut holder).await;
        execute(&mut holder, "COMMIT").await;
    };
    let (broken, ()) = tokio::join!(f.sexton(&command), extending);
    broken.expect(0);
    assert!(!f.is_locked("cleanup").await);
    assert_eq!(execute(&mut holder, EXTEND).await, 0);
}

/// Between the look and the break, the row went to somebody else.
#[tokio::test]
async fn another_holder_than_the_one_that_the_operator_saw_is_left_alone() {
    let f = Fixture::new().await;
    f.row("cleanup", HOLDER, 3, 5).await;
    let store = f.db.store();
    let seen = find_to_break(store, "cleanup", None, false).await.unwrap();
    let mut session = f.connect("both").await;
    execute(&mut session, "BEGIN").await;
    assert_eq!(execute(&mut session, RELEASE).await, 1);
    assert_eq!(execute(&mut session, TAKE).await, 1);
    let actor = actor();
    let taking = async {
        f.until_someone_waits_behind(&mut session).await;
        execute(&mut session, "COMMIT").await;
    };
    let (refused, ()) = tokio::join!(break_row(store, &seen, false, &actor, "x"), taking);
    let refused = refused.unwrap_err();
    let OperationError::Conflict(Conflict::LockRowChanged { locked_by, .. }) = &refused else {
        panic!("{refused}");
    };
    assert_eq!(locked_by, "h2:9:x");
    // The same process that has taken it again is another holder as well.
    let seen = find_to_break(store, "cleanup", None, false).await.unwrap();
    f.sql("UPDATE sexton.lock_rows SET locked_at = locked_at + interval '1 microsecond'").await;
    let refused = break_row(store, &seen, true, &actor, "x").await.unwrap_err();
    assert!(matches!(refused, OperationError::Conflict(Conflict::LockRowChanged { .. })));
    assert!(f.is_locked("cleanup").await && f.actions().await == "0");
    // On the command line by the instant of the list.
    let stale = seen.locked_at - chrono::TimeDelta::seconds(1);
    let break_as_of = async |at: String| {
        let command = ["locks", "break", "cleanup", "--reason", "x", "--yes", "--as-of", &at];
        f.sexton(&command).await
    };
    let refused = break_as_of(stale.to_rfc3339()).await.expect(4).text();
    assert!(refused.contains("taken again since you looked, by h2:9:x"), "{refused}");
    let shown = f.locks(&[]).await["rows"]["items"][0]["locked_at"].as_str().unwrap().to_owned();
    break_as_of(shown).await.expect(0);
}

#[tokio::test]
async fn of_many_operators_who_break_a_row_at_once_one_does() {
    let f = Fixture::new().await;
    f.row("cleanup", HOLDER, 3, 5).await;
    let seen = Arc::new(find_to_break(f.db.store(), "cleanup", None, false).await.unwrap());
    let breaks = (0..10).map(|_| {
        let (store, seen) = (f.db.store().clone(), Arc::clone(&seen));
        tokio::spawn(async move {
            let request = RowBreak {
                name: &seen.name,
                locked_by: &seen.locked_by,
                locked_at: seen.locked_at,
                force: false,
            };
            let by = AuditContext { actor: "ann@ops1", reason: Some("x") };
            sexton_store::locks::break_row(&store, request, by).await
        })
    });
    let mut broken = 0;
    for end in breaks.collect::<Vec<_>>() {
        match end.await.unwrap() {
            Ok(_) => broken += 1,
            Err(error) => assert!(matches!(error, BreakError::Free(_)), "{error}"),
        }
    }
    assert_eq!((broken, f.actions().await.as_str()), (1, "1"));
}

#[tokio::test]
async fn a_row_of_an_attempt_that_runs_is_broken_by_force_only() {
    let f = Fixture::new().await;
    let lock = "lock_row = 'cleanup', lock_at_most_ms = 3600000, lock_at_least_ms = 0";
    let job = f.job("billing.cleanup", lock).await;
    f.worker("w1", 7).await;
    let id = f.running(job, "w1", 4).await;
    f.row("cleanup", HOLDER, 3, 50).await;
    let command = ["locks", "break", "cleanup", "--reason", "x", "--yes"];
    let refused = f.sexton(&command).await.expect(4).text();
    assert!(refused.contains(&format!("sexton executions cancel {id}")), "{refused}");
    assert!(refused.contains(&format!("attempt 1 of {id} runs on w1;")), "{refused}");
    f.sql("UPDATE sexton.instances SET heartbeat_at = now() - interval '5 minutes'").await;
    let refused = f.sexton(&command).await.expect(4).text();
    assert!(refused.contains("w1, which has been silent for 5 m"), "{refused}");
    let question = f.sexton(&[&command[..5], &["--force"]].concat()).await.expect(7).text();
    assert!(question.contains("another holder may work at the same time"), "{question}");
    // Refused again where it is done, for an attempt that has begun since the operator looked.
    let store = f.db.store();
    let seen = find_to_break(store, "cleanup", None, true).await.unwrap();
    let refused = break_row(store, &seen, false, &actor(), "x").await.unwrap_err();
    assert!(matches!(refused, OperationError::Conflict(Conflict::LockRowRunning { .. })));
    assert!(f.is_locked("cleanup").await && f.actions().await == "0");
    f.sexton(&[&command[..], &["--force"]].concat()).await.expect(0);
    let recorded = "SELECT concat_ws(' ', execution_id, after ->> 'forced', j.name)
        FROM sexton.operator_actions a JOIN sexton.jobs j ON j.id = a.job_id";
    assert_eq!(f.text(recorded).await, format!("{id} true billing.cleanup"));
    // One that has ended needs no force.
    f.sql("UPDATE sexton.lock_rows SET lock_until = 'infinity'").await;
    f.end(id, "lost", 1).await;
    let question = f.sexton(&command[..5]).await.expect(7).text();
    assert!(question.contains("on w1 has ended (lost)"), "{question}");
    f.sexton(&command).await.expect(0);
    assert!(!f.is_locked("cleanup").await);
}

#[tokio::test]
async fn a_row_that_stays_locked_for_its_minimum_can_be_freed_sooner() {
    let f = Fixture::new().await;
    let lock = "lock_row = 'cleanup', lock_at_most_ms = 3600000, lock_at_least_ms = 600000";
    f.job("billing.cleanup", lock).await;
    f.row("cleanup", HOLDER, 5, 5).await;
    let command = ["locks", "break", "cleanup", "--reason", "x"];
    let question = f.sexton(&command).await.expect(7).text();
    assert!(question.contains("sooner than its at_least says"), "{question}");
    let answer = f.sexton(&[&["--json"], &command[..], &["--yes"]].concat()).await.expect(0).text();
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&answer["name"], &answer["locked_by"]), (&"cleanup".into(), &HOLDER.into()));
    assert!(!f.is_locked("cleanup").await);
}
