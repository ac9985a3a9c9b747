//! What a round of the relay reads and takes: what is due, in fair parts, and nothing else.

use serde_json::Value;
use sexton_model::flow_control::Destination;
use sexton_model::state::State;
use sexton_store::relay::{PostponedTicket, find_destinations, postpone, take_batch};
use sexton_tests::database::TestDatabase;
use sexton_tests::relaying::take_due;
use sqlx::{AssertSqlSafe, Row as _};

use super::{Fixture, at};

const DESTINATIONS: &str = include_str!("../../../shared/store/src/tickets/relay/destinations.sql");
const TAKE: &str = include_str!("../../../shared/store/src/tickets/relay/take.sql");
/// Rows that are not due.
const WAITING: i64 = 100_000;

fn pending(pool: &str) -> Destination {
    Destination { pool: pool.to_owned(), state: State::Pending }
}

/// Adds unpublished rows to a pool, with this `relay_after`, a second apart.
async fn rows(f: &Fixture, pool: &str, count: i64, relay_after: &str, waits: Option<&str>) {
    let statement = format!(
        "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
            params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at, waits)
         SELECT gen_random_uuid(), $1, $2 || $5::text || n, $3 + n * interval '1 s', 'pending', 'work', $2,
            '{{}}', 'k', 'test:1', $3, {relay_after}, $3, $6 FROM generate_series(1, $4) n"
    );
    sqlx::query(AssertSqlSafe(statement))
        .bind(f.job.get())
        .bind(pool)
        .bind(at(0))
        .bind(count)
        .bind(relay_after)
        .bind(waits)
        .execute(f.db.pool())
        .await
        .unwrap();
}

/// The rows of `executions` that each node of a plan has read, in all. What a bitmap's index scans have found counts there.
fn rows_read(plan: &Value) -> f64 {
    let below: f64 = plan["Plans"].as_array().into_iter().flatten().map(rows_read).sum();
    let number = |field: &str| plan[field].as_f64().unwrap_or(0.0);
    let node = plan["Node Type"].as_str().unwrap_or("");
    let reads = node.contains("Scan")
        && node != "Bitmap Heap Scan"
        && (plan["Relation Name"] == "executions"
            || plan["Index Name"].as_str().is_some_and(|name| name.starts_with("executions")));
    let each = number("Actual Rows") + number("Rows Removed by Filter");
    let each = if reads { each } else { 0.0 } + number("Rows Removed by Index Recheck");
    below + each * number("Actual Loops")
}

/// What a round reads by itself: its two statements, run and rolled back.
async fn round_reads(db: &TestDatabase, pools: &[&str]) -> f64 {
    let explain =
        |sql: &str| AssertSqlSafe(format!("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}"));
    let mut tx = db.pool().begin().await.unwrap();
    let finding = sqlx::query(explain(DESTINATIONS)).bind(at(100)).bind("").bind("").bind(500_i32);
    let found: Value = finding.fetch_one(&mut *tx).await.unwrap().get(0);
    let states = vec!["pending"; pools.len()];
    let taking = sqlx::query(explain(TAKE))
        .bind(at(100))
        .bind(pools.iter().map(ToString::to_string).collect::<Vec<_>>())
        .bind(states.iter().map(ToString::to_string).collect::<Vec<_>>())
        .bind(vec![500_i64; pools.len()]);
    let taken: Value = taking.fetch_one(&mut *tx).await.unwrap().get(0);
    tx.rollback().await.unwrap();
    let read = rows_read(&found[0]["Plan"]) + rows_read(&taken[0]["Plan"]);
    assert!(read < 60.0, "{read} rows were read: {found:#} {taken:#}");
    read
}

#[tokio::test]
async fn a_hundred_thousand_rows_that_are_not_due_or_refused_cost_a_round_nothing() {
    let f = Fixture::new().await;
    for pool in ["busy", "other"] {
        rows(&f, pool, 3, "$3", None).await;
    }
    let none = round_reads(&f.db, &["busy", "other"]).await;
    // Older by their nominal time than what is due, so the order of the nominal times finds them first.
    sqlx::query("UPDATE sexton.executions SET scheduled_for = scheduled_for + interval '1 year'")
        .execute(f.db.pool())
        .await
        .unwrap();
    let third = WAITING / 3;
    rows(&f, "busy", third, "'9999-01-01'", Some("queue")).await;
    rows(&f, "busy", third, "$3 + n * interval '1 h'", None).await;
    rows(&f, "full", third, "$3 + interval '5 min'", None).await;
    // With what PostgreSQL knew of the table before, and with what it knows then.
    for analyze in ["SELECT 1", "ANALYZE sexton.executions"] {
        sqlx::raw_sql(analyze).execute(f.db.pool()).await.unwrap();
        // Rows that earlier rounds have rolled back count as read in some plans; of few, VACUUM leaves the index entries.
        let vacuum = sqlx::raw_sql("VACUUM (INDEX_CLEANUP ON) sexton.executions");
        vacuum.execute(f.db.pool()).await.unwrap();
        let read = round_reads(&f.db, &["busy", "other"]).await;
        println!("MEASURED a round reads {none} rows by itself, {read} among {WAITING}");
        // The destination that has nothing due costs lookups, and each destination the row that is due next.
        assert!(read <= none + 7.0, "{none} rows by itself, {read} among {WAITING}");
    }
    let taken = take_due(f.store(), 500, Some(at(100))).await.unwrap();
    assert_eq!(taken.tickets.len(), 6);
}

#[tokio::test]
async fn a_batch_is_divided_among_destinations_and_each_gets_what_was_due_first() {
    let f = Fixture::new().await;
    rows(&f, "large", 1_000, "$3 + n * interval '1 ms'", None).await;
    rows(&f, "small", 3, "$3 + interval '90 s'", None).await;
    let quotas = [(pending("large"), 20), (pending("small"), 20), (pending("none"), 20)];
    let taken = take_batch(f.store(), &quotas, Some(at(100))).await.unwrap();
    assert_eq!(taken.counts, [20, 3, 0]);
    let large = taken.tickets.iter().filter(|unpublished| unpublished.pool.as_str() == "large");
    let seconds: Vec<_> =
        large.map(|unpublished| (unpublished.ticket.scheduled_for - at(0)).num_seconds()).collect();
    assert_eq!(seconds, (1..=20).collect::<Vec<_>>());
    let again = take_batch(f.store(), &quotas, Some(at(100))).await.unwrap();
    assert_eq!(again.counts, [20, 0, 0], "what was taken is hidden");
}

#[tokio::test]
async fn destinations_are_found_in_turns_whatever_they_hold() {
    let f = Fixture::new().await;
    for pool in 0..25 {
        rows(&f, &format!("pool-{pool:02}"), 40, "$3", None).await;
    }
    rows(&f, "later", 40, "$3 + interval '1 h'", None).await;
    let (mut after, mut seen, mut turns) = (None, Vec::new(), 0);
    loop {
        let found = find_destinations(f.store(), after.as_ref(), 10, Some(at(0))).await.unwrap();
        seen.extend(found.due.into_iter().map(|one| one.pool));
        turns += 1;
        let Some(next) = found.next else { break };
        after = Some(next);
    }
    assert_eq!(turns, 3);
    assert_eq!(seen, (0..25).map(|pool| format!("pool-{pool:02}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_postponement_finds_only_the_revision_that_was_tried_and_an_unpublished_ticket() {
    let f = Fixture::new().await;
    let ids = [f.claim("moved").await, f.claim("published").await, f.claim("refused").await];
    let sql = "UPDATE sexton.executions SET rev = rev + 1 WHERE id = $1";
    sqlx::query(sql).bind(ids[0].get()).execute(f.db.pool()).await.unwrap();
    let sql = "UPDATE sexton.executions SET ticket_published_at = now() WHERE id = $1";
    sqlx::query(sql).bind(ids[1].get()).execute(f.db.pool()).await.unwrap();
    let all = ids.map(|execution_id| PostponedTicket { execution_id, rev: 1, wait_ms: 5_000 });
    let before = f.column(ids[0], "relay_after").await;
    assert_eq!(postpone(f.store(), &all, Some(at(50))).await.unwrap(), 1);
    assert_eq!(f.column(ids[0], "relay_after").await, before);
    assert_eq!(
        f.column(ids[2], "(extract(epoch FROM relay_after)::bigint)").await.unwrap(),
        "1800000055"
    );
}
