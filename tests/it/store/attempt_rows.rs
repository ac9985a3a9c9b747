//! Rows of attempts: written once, at the end, also where a program of the version before ends one.

use serde_json::json;
use sexton_model::id::ExecutionId;
use sexton_model::output::{Line, Stream};
use sexton_model::retry::Decision;
use sexton_store::lease::AttemptFence;
use sexton_store::lost_attempts::{self, LossGrounds};
use sexton_store::output::{OutputPart, WriteOutcome, write};
use sexton_store::settle::{SettleOutcome, Settlement, settle};
use sexton_store::{attempts, executions};
use sexton_tests::database::migrator;

use super::{Fixture, at, fail, retry, settlement};

/// What the version before writes where it ends the attempts of a dead worker: `$1` are ids, `$2` the state that
/// follows.
const ENDED_BY_THE_VERSION_BEFORE: &str = r#"
    WITH l AS MATERIALIZED (
        SELECT e.id, e.attempt, $2::text AS becomes, 1 AS crashes FROM sexton.executions e
        WHERE e.id = ANY ($1) AND e.state = 'running' ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED),
    u AS (
        UPDATE sexton.executions e SET
            state = l.becomes, rev = e.rev + 1,
            attempt = e.attempt + CASE WHEN l.becomes IN ('retrying', 'failed') THEN 1 ELSE 0 END,
            worker_id = NULL, open_token = NULL, lease_until = NULL,
            next_attempt_at = CASE WHEN l.becomes = 'retrying' THEN now() END,
            finished_at = CASE WHEN l.becomes <> 'retrying' THEN now() END,
            ticket_published_at = NULL, relay_after = now(), crashes_used = l.crashes,
            outcome = 'lost', error_class = 'lost', error_message = 'lost, said that version'
                || CASE WHEN l.becomes = 'failed' THEN (
                    SELECT format('; %s crashed, no more are allowed: ', l.crashes) || string_agg(
                        format('attempt %s %s on %s, begun %s%s', t.number,
                               replace(coalesce(t.outcome, 'lost'), '_', ' '),
                               coalesce(i.name, t.worker_id::text),
                               to_char(t.opened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'),
                               ', signal ' || t.signal), '; ' ORDER BY t.number)
                    FROM (SELECT * FROM sexton.attempts c WHERE c.execution_id = l.id
                            AND (c.number = l.attempt OR c.outcome IN ('lost', 'out_of_memory'))
                          ORDER BY c.number DESC LIMIT least(l.crashes, 5)) t
                    LEFT JOIN sexton.instances i ON i.id = t.worker_id) ELSE '' END
        FROM l WHERE e.id = l.id RETURNING e.id),
    a AS (
        UPDATE sexton.attempts t SET finished_at = now(), outcome = 'lost', error_class = 'lost',
            error_message = 'lost, said that version'
        FROM l WHERE t.execution_id = l.id AND t.number = l.attempt)
    SELECT id FROM u"#;

async fn rows(fixture: &Fixture, id: ExecutionId) -> Vec<(i32, Option<String>)> {
    sqlx::query_as("SELECT number, outcome FROM sexton.attempts WHERE execution_id = $1 ORDER BY 1")
        .bind(id.get())
        .fetch_all(fixture.db.pool())
        .await
        .unwrap()
}

/// A row's worker, instants and lease.
async fn fields(fixture: &Fixture, id: ExecutionId, number: i32) -> String {
    sqlx::query_scalar(
        "SELECT concat_ws(' ', worker_id, extract(epoch FROM opened_at)::bigint,
                          extract(epoch FROM finished_at)::bigint, lease_ms)
         FROM sexton.attempts WHERE execution_id = $1 AND number = $2",
    )
    .bind(id.get())
    .bind(number)
    .fetch_one(fixture.db.pool())
    .await
    .unwrap()
}

/// The rows of an execution whose one attempt ended so.
fn ended(outcome: &str) -> [(i32, Option<String>); 1] {
    [(1, Some(outcome.to_owned()))]
}

/// Records another end of attempt 1, as only a change by hand leaves it.
async fn timed_out_by_hand(fixture: &Fixture, id: ExecutionId) {
    sqlx::query(
        "INSERT INTO sexton.attempts (execution_id, number, worker_id, opened_at, finished_at, outcome)
         VALUES ($1, 1, gen_random_uuid(), $2, $2, 'timeout')",
    )
    .bind(id.get())
    .bind(at(0))
    .execute(fixture.db.pool())
    .await
    .unwrap();
}

/// Output of one line, and a progress.
fn part(text: &str) -> OutputPart {
    let line = Line { at: at(1), stream: Stream::Stdout, text: text.to_owned() };
    let chunk = sexton_model::output::Chunk::new(1, 0, 10, &[line]);
    let progress = Some(json!({"percent": 40}));
    OutputPart { chunks: vec![chunk.into()], progress, ..OutputPart::default() }
}

#[tokio::test]
async fn an_attempt_is_written_when_it_ends_and_is_listed_while_it_runs() {
    let fixture = Fixture::new().await;
    for (key, verdict, outcome) in
        [("a", Decision::Succeed, "succeeded"), ("b", retry(0, 1), "error"), ("c", fail(), "error")]
    {
        let id = fixture.claim(key).await;
        let held = fixture.opened(id, 1, 3).await;
        assert_eq!(rows(&fixture, id).await, []);
        assert_eq!(fixture.column(id, "lease_ms").await.as_deref(), Some("20000"));
        let listed = attempts::list_by_execution(fixture.store(), id.get(), 10).await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].number, listed[0].worker_id), (1, fixture.worker.get()));
        assert_eq!((listed[0].opened_at, &listed[0].outcome), (at(3), &None));
        let row = executions::find(fixture.store(), id.get()).await.unwrap().unwrap();
        assert_eq!(row.attempts_made, Some(1));
        assert!(matches!(fixture.settle(held, verdict, 5).await, SettleOutcome::Done { .. }));
        assert_eq!(rows(&fixture, id).await, ended(outcome));
        let expected =
            format!("{} {} {} 20000", fixture.worker, at(3).timestamp(), at(5).timestamp());
        assert_eq!(fields(&fixture, id, 1).await, expected);
        assert_eq!(fixture.column(id, "lease_ms").await, None);
        let row = executions::find(fixture.store(), id.get()).await.unwrap().unwrap();
        assert_eq!(row.attempts_made, Some(1));
    }
}

#[tokio::test]
async fn an_attempt_with_output_has_its_row_from_the_first_of_it_on() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 3).await;
    let parts = [(held, part("one"))];
    assert_eq!(write(fixture.store(), &parts).await.unwrap(), [WriteOutcome::Done]);
    assert_eq!(rows(&fixture, id).await, [(1, None)]);
    let listed = attempts::list_by_execution(fixture.store(), id.get(), 10).await.unwrap();
    assert_eq!((listed.len(), &listed[0].progress), (1, &Some(json!({"percent": 40}))));
    let row = executions::find(fixture.store(), id.get()).await.unwrap().unwrap();
    assert_eq!((row.attempts_made, row.progress), (Some(1), Some(json!({"percent": 40}))));
    fixture.settle(held, Decision::Succeed, 5).await;
    assert_eq!(rows(&fixture, id).await, ended("succeeded"));
    let expected = format!("{} {} {} 20000", fixture.worker, at(3).timestamp(), at(5).timestamp());
    assert_eq!(fields(&fixture, id, 1).await, expected);
    let listed = attempts::list_by_execution(fixture.store(), id.get(), 10).await.unwrap();
    assert_eq!(listed[0].progress, Some(json!({"percent": 40})), "the end does not remove it");
}

#[tokio::test]
async fn no_end_is_written_over_another() {
    let fixture = Fixture::new().await;
    for (key, plain) in [("a", true), ("b", false)] {
        let id = fixture.claim(key).await;
        let held = fixture.opened(id, 1, 0).await;
        timed_out_by_hand(&fixture, id).await;
        let output = (!plain).then(|| part("one"));
        let end = Settlement { output, ..settlement(held, Decision::Succeed) };
        let done = settle(fixture.store(), &[end], Some(at(5))).await.unwrap();
        assert!(matches!(done[0], SettleOutcome::Done { .. }));
        assert_eq!(rows(&fixture, id).await, ended("timeout"));
    }
}

#[tokio::test]
async fn no_loss_is_written_over_an_end() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("a").await;
    fixture.opened(id, 1, 0).await;
    timed_out_by_hand(&fixture, id).await;
    let workers = [fixture.worker];
    let grounds = LossGrounds::OfWorkers(&workers);
    let found = lost_attempts::find(fixture.store(), &grounds, 10).await.unwrap();
    let verdict = Decision::Fail { used: found[0].used };
    let ends = [(found[0].clone(), verdict)];
    let done = lost_attempts::settle(fixture.store(), &grounds, &ends, Some(at(5))).await.unwrap();
    assert_eq!(done, [id]);
    assert_eq!(rows(&fixture, id).await, ended("timeout"));
}

#[tokio::test]
async fn an_attempt_that_the_version_before_ends_is_recorded_and_leaves_no_lease() {
    let fixture = Fixture::new().await;
    for (key, next) in [("a", "retrying"), ("b", "failed")] {
        let quiet = fixture.claim(key).await;
        let wrote = fixture.claim(&format!("{key}, with output")).await;
        fixture.opened(quiet, 1, 3).await;
        let held: AttemptFence = fixture.opened(wrote, 1, 3).await;
        write(fixture.store(), &[(held, part("one"))]).await.unwrap();
        let end = sqlx::query(ENDED_BY_THE_VERSION_BEFORE);
        let end = end.bind([quiet.get(), wrote.get()]).bind(next);
        assert_eq!(end.execute(fixture.db.pool()).await.unwrap().rows_affected(), 2);
        for id in [quiet, wrote] {
            assert_eq!(rows(&fixture, id).await, ended("lost"));
            let expected = format!("{} {} ", fixture.worker, at(3).timestamp());
            assert!(fields(&fixture, id, 1).await.starts_with(&expected));
            assert_eq!(fixture.state(id).await, format!("{next}/2"));
            // Or the next attempt, if that version opens it, would be judged by the lease of this one.
            assert_eq!(fixture.column(id, "lease_ms").await, None);
            let message = fixture.column(id, "error_message").await;
            assert!(message.as_ref().is_some_and(|text| !text.is_empty()), "{message:?}");
            let listed = attempts::list_by_execution(fixture.store(), id.get(), 10).await.unwrap();
            let message = listed[0].error_message.as_deref();
            assert!(message.is_some_and(|text| !text.contains("crashed")), "{message:?}");
        }
    }
}

#[tokio::test]
async fn an_attempt_that_runs_has_its_row_after_a_way_back() {
    let fixture = Fixture::new().await;
    let (quiet, wrote) = (fixture.claim("a").await, fixture.claim("b").await);
    fixture.opened(quiet, 1, 3).await;
    let held = fixture.opened(wrote, 1, 3).await;
    write(fixture.store(), &[(held, part("one"))]).await.unwrap();
    migrator().await.unwrap().undo(fixture.db.pool(), 2).await.unwrap();
    for id in [quiet, wrote] {
        assert_eq!(rows(&fixture, id).await, [(1, None)]);
        let expected = format!("{} {} 20000", fixture.worker, at(3).timestamp());
        assert_eq!(fields(&fixture, id, 1).await, expected);
    }
}
