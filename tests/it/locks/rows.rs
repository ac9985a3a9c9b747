//! Lock rows, as workers and other libraries write them.

use serde_json::{Value, json};

use super::Fixture;

async fn row(f: &Fixture, name: &str) -> Value {
    let found = f.locks(&["--row", name]).await;
    let [row] = &found["rows"]["items"].as_array().unwrap()[..] else { panic!("one row: {found}") };
    assert_eq!(found["advisory"]["items"], json!([]));
    row.clone()
}

#[tokio::test]
async fn a_row_is_held_bound_to_its_minimum_or_free() {
    let f = Fixture::new().await;
    let lock = "lock_row = 'minimum', lock_at_most_ms = 3600000, lock_at_least_ms = 600000";
    let job = f.job("billing.cleanup", lock).await;
    f.row("free", "app1", 10, -5).await;
    f.row("held", "app1", 10, 5).await;
    // Ten minutes from the beginning, which was five minutes ago.
    f.row("minimum", "h1:7:00000000-0000-0000-0000-000000000000", 5, 5).await;
    assert_eq!(f.row_names(&[]).await, ["held", "minimum"]);
    assert_eq!(f.row_names(&["--all"]).await, ["held", "minimum", "free"]);
    assert_eq!(f.row_names(&["--service", "billing."]).await, ["minimum"]);
    assert_eq!(f.row_names(&["--service", "app"]).await, ["held"]);
    assert_eq!(f.row_names(&["--waiting"]).await, [""; 0]);
    for (name, state) in [("free", "free"), ("held", "held"), ("minimum", "at_least")] {
        assert_eq!(row(&f, name).await["state"], state, "{name}");
    }
    // While its attempt runs, it is held.
    f.worker("w1", 7).await;
    f.running(job, "w1", 6).await;
    assert_eq!(row(&f, "minimum").await["state"], "held");
    let table = f.sexton(&["locks", "--all"]).await.expect(0).text();
    let lines: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((lines[1][0], lines[1][1]), ("held", "held"), "{table}");
    assert!(table.contains("ends in ") && table.contains("ended 5 m"), "{table}");
    let table = f.sexton(&["locks", "--limit", "1"]).await.expect(0).text();
    assert!(table.contains("and 1 more lock rows"), "{table}");
}

#[tokio::test]
async fn a_row_names_the_attempt_that_took_it_also_when_that_has_ended() {
    let f = Fixture::new().await;
    let lock = "lock_row = 'cleanup', lock_at_most_ms = 3600000, lock_at_least_ms = 0";
    let job = f.job("billing.cleanup", lock).await;
    for (worker, process_id) in [("w1", 7), ("w2", 8), ("w3", 7)] {
        f.worker(worker, process_id).await;
    }
    let holder = f.running(job, "w1", 10).await;
    f.row("cleanup", "h1:7:00000000-0000-0000-0000-000000000000", 9, 50).await;
    // Of another process; began later; found the row locked.
    f.running(job, "w2", 10).await;
    f.running(job, "w1", 1).await;
    let refused = f.running(job, "w3", 10).await;
    f.end(refused, "locked", 8).await;
    let found = row(&f, "cleanup").await;
    assert_eq!(found["attempt"]["execution_id"], holder.to_string());
    assert_eq!(found["attempt"]["worker"], "w1");
    assert_eq!(found["attempt"]["finished_at"], Value::Null);
    assert_eq!((&found["state"], &found["executions_waiting"]), (&json!("held"), &json!(1)));
    assert_eq!(found["jobs"]["timeout_ms"], 60_000);
    f.end(holder, "lost", 3).await;
    let found = row(&f, "cleanup").await;
    assert_eq!(found["attempt"]["execution_id"], holder.to_string());
    assert_eq!((&found["attempt"]["outcome"], &found["state"]), (&json!("lost"), &json!("held")));
    let table = f.sexton(&["locks"]).await.expect(0).text();
    assert!(table.contains("its attempt has ended (lost)"), "{table}");
}

/// Other programs write the table as well.
#[tokio::test]
async fn values_that_no_clock_shows_and_names_with_escapes_are_listed() {
    let f = Fixture::new().await;
    f.sql(
        "INSERT INTO sexton.lock_rows (name, lock_until, locked_at, locked_by)
         VALUES (E'a\\u001b[2J', 'infinity', '-infinity', E'host\\u009b2J:99999999999:x')",
    )
    .await;
    let found = row(&f, "a\u{1b}[2J").await;
    assert_eq!(
        (&found["state"], &found["lock_until"]),
        (&json!("held"), &json!("9999-12-31T00:00:00Z"))
    );
    let table = f.sexton(&["locks"]).await.expect(0).text();
    assert!(table.contains("a\\u{1b}[2J") && table.contains("host\\u{9b}2J"), "{table}");
    let question =
        f.sexton(&["locks", "break", "a\u{1b}[2J", "--reason", "x"]).await.expect(7).text();
    assert!(question.contains("a\\u{1b}[2J") && !question.contains('\u{1b}'), "{question}");
    f.sexton(&["locks", "break", "a\u{1b}[2J", "--reason", "x", "--yes"]).await.expect(0);
}
