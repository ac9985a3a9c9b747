//! Output: who may store it, and that it is stored once.

use std::sync::Arc;

use serde_json::json;
use sexton_model::id::{AttemptNumber, ExecutionId, OpenToken};
use sexton_model::output::{Chunk, Line, Stream};
use sexton_model::retry::Decision;
use sexton_store::lease::AttemptFence;
use sexton_store::output::{OutputPart, WriteOutcome, find_with_chunks, list_chunks, write};
use sexton_store::settle::{SettleOutcome, Settlement, settle};
use sexton_store::{StoreError, attempts};
use uuid::Uuid;

use super::{Fixture, at, fail, n, retry, settlement};

/// A chunk of one line of ten bytes.
fn chunk(line: i64, text: &str) -> Arc<Chunk> {
    let one = Line { at: at(line), stream: Stream::Stdout, text: text.to_owned() };
    Arc::new(Chunk::new(line, (line - 1) * 10, 10, &[one]))
}

fn part(chunks: Vec<Arc<Chunk>>) -> OutputPart {
    OutputPart { chunks, ..OutputPart::default() }
}

async fn texts(fixture: &Fixture, id: ExecutionId, number: i32) -> Vec<String> {
    let chunks = list_chunks(fixture.store(), id.get(), number, 0, 100).await.unwrap();
    chunks.iter().flat_map(|one| one.read().unwrap()).map(|line| line.text).collect()
}

async fn wrote(fixture: &Fixture, held: AttemptFence, part: OutputPart) -> WriteOutcome {
    write(fixture.store(), &[(held, part)]).await.unwrap()[0]
}

#[tokio::test]
async fn a_part_is_stored_once_however_often_it_is_written() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    for _ in 0..2 {
        let both = part(vec![chunk(1, "one"), chunk(2, "two")]);
        assert_eq!(wrote(&fixture, held, both).await, WriteOutcome::Done);
    }
    // The end brings the last part again, of which nobody knew whether it was stored.
    let output = Some(part(vec![chunk(2, "two"), chunk(3, "three")]));
    let end = Settlement { output, ..settlement(held, Decision::Succeed) };
    assert!(matches!(
        settle(fixture.store(), &[end], None).await.unwrap()[0],
        SettleOutcome::Done { .. }
    ));
    assert_eq!(texts(&fixture, id, 1).await, ["one", "two", "three"]);
}

#[tokio::test]
async fn an_overtaken_worker_writes_no_output() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let first = fixture.opened(id, 1, 0).await;
    let one = || part(vec![chunk(1, "late")]);
    fixture.settle(first, retry(0, 1), 1).await;
    assert_eq!(wrote(&fixture, first, one()).await, WriteOutcome::Fenced, "its attempt has ended");
    let second = fixture.opened(id, 2, 1).await;
    assert_eq!(
        wrote(&fixture, first, one()).await,
        WriteOutcome::Fenced,
        "the next attempt is open"
    );
    let other = AttemptFence { token: OpenToken::new(Uuid::new_v4()), ..second };
    assert_eq!(wrote(&fixture, other, one()).await, WriteOutcome::Fenced, "the token fences alone");
    let other = AttemptFence { attempt: n(1), ..second };
    assert_eq!(wrote(&fixture, other, one()).await, WriteOutcome::Fenced, "and so does the number");
    let nothing: [&str; 0] = [];
    assert_eq!(texts(&fixture, id, 1).await, nothing);
    assert_eq!(texts(&fixture, id, 2).await, nothing);
    assert_eq!(wrote(&fixture, second, one()).await, WriteOutcome::Done);
    assert_eq!(texts(&fixture, id, 2).await, ["late"]);
}

#[tokio::test]
async fn an_attempt_is_read_with_its_first_chunks_in_one_statement() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let read = async |number, limit| {
        find_with_chunks(fixture.store(), id.get(), number, limit).await.unwrap()
    };
    assert_eq!(read(None, 9).await, None);
    let first = fixture.opened(id, 1, 0).await;
    let lines = (1..=3).map(|line| chunk(line, &line.to_string())).collect();
    wrote(&fixture, first, part(lines)).await;
    let found = read(None, 2).await.unwrap();
    assert_eq!((found.number, &found.outcome), (1, &None));
    assert_eq!(found.chunks, [(*chunk(1, "1")).clone(), (*chunk(2, "2")).clone()]);
    fixture.settle(first, retry(0, 1), 1).await;
    fixture.opened(id, 2, 1).await;
    let last = read(None, 9).await.unwrap();
    assert_eq!((last.number, &last.outcome, last.chunks.len()), (2, &None, 0), "the last one");
    let first = read(Some(1), 9).await.unwrap();
    assert_eq!((first.number, first.outcome.as_deref(), first.chunks.len()), (1, Some("error"), 3));
    assert_eq!(read(Some(3), 9).await, None);
    // A worker from before chunks stored it in the attempt's row; where both are, the chunks count.
    let old = json!({"lines": []});
    sqlx::query("UPDATE sexton.attempts SET output = $1")
        .bind(&old)
        .execute(fixture.db.pool())
        .await
        .unwrap();
    assert_eq!(read(Some(1), 9).await.unwrap().legacy_output, None);
    sqlx::query("DELETE FROM sexton.attempt_output").execute(fixture.db.pool()).await.unwrap();
    assert_eq!(read(Some(1), 9).await.unwrap().legacy_output, Some(old));
}

#[tokio::test]
async fn superseded_output_is_removed_and_the_head_stays() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let lines = (1..=4).map(|line| chunk(line, &line.to_string())).collect();
    wrote(&fixture, held, part(lines)).await;
    let newer = OutputPart { superseded: Some((1, 4)), ..part(vec![chunk(9, "9")]) };
    wrote(&fixture, held, newer).await;
    assert_eq!(texts(&fixture, id, 1).await, ["1", "4", "9"]);
    let output = Some(OutputPart { superseded: Some((1, 20)), ..part(vec![chunk(20, "20")]) });
    let end = Settlement { output, ..settlement(held, fail()) };
    settle(fixture.store(), &[end], None).await.unwrap();
    assert_eq!(texts(&fixture, id, 1).await, ["1", "20"]);
}

#[tokio::test]
async fn the_last_progress_stays_with_its_attempt() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let progress = |percent| Some(json!({ "percent": percent }));
    let part = OutputPart { progress: progress(10), ..OutputPart::default() };
    assert_eq!(wrote(&fixture, held, part).await, WriteOutcome::Done);
    let stored_progress = async || {
        let all = attempts::list_by_execution(fixture.store(), id.get(), 9).await.unwrap();
        all[0].progress.clone()
    };
    assert_eq!(stored_progress().await, progress(10));
    // The task reported no progress until the end.
    fixture.settle(held, retry(0, 1), 1).await;
    assert_eq!(stored_progress().await, progress(10));
    let held = fixture.opened(id, 2, 1).await;
    let output = Some(OutputPart { progress: progress(99), ..OutputPart::default() });
    settle(fixture.store(), &[Settlement { output, ..settlement(held, fail()) }], None)
        .await
        .unwrap();
    let all = attempts::list_by_execution(fixture.store(), id.get(), 9).await.unwrap();
    assert_eq!(all[1].progress, progress(99));
}

#[tokio::test]
async fn output_of_a_locked_row_is_written_later() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let other = fixture.locked(id).await;
    let one = || part(vec![chunk(1, "one")]);
    assert_eq!(wrote(&fixture, held, one()).await, WriteOutcome::Locked);
    other.rollback().await.unwrap();
    assert_eq!(wrote(&fixture, held, one()).await, WriteOutcome::Done);
}

#[tokio::test]
async fn a_text_that_cannot_be_stored_spoils_its_whole_batch_and_says_so() {
    let fixture = Fixture::new().await;
    let (good, bad) = (fixture.claim("a").await, fixture.claim("b").await);
    let held = [fixture.opened(good, 1, 0).await, fixture.opened(bad, 1, 0).await];
    let parts = [(held[0], part(vec![chunk(1, "good")])), (held[1], part(vec![chunk(1, "b\0d")]))];
    let error = write(fixture.store(), &parts).await.unwrap_err();
    assert!(matches!(error, StoreError::Data(_)), "{error}");
    assert!(texts(&fixture, good, 1).await.is_empty());
}

#[tokio::test]
async fn output_goes_with_its_attempt() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, AttemptNumber::FIRST.get(), 0).await;
    wrote(&fixture, held, part(vec![chunk(1, "one")])).await;
    sqlx::query("DELETE FROM sexton.attempts").execute(fixture.db.pool()).await.unwrap();
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM sexton.attempt_output")
        .fetch_one(fixture.db.pool())
        .await
        .unwrap();
    assert_eq!(left, 0);
}
