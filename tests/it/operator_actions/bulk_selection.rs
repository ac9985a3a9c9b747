//! The executions that a bulk selects: those that a list with the same filter shows.

use sexton_model::failures::{FailureFilter, GroupDecision, Order};
use sexton_model::fingerprint::fingerprint;
use sexton_store::failures::{GroupChange, decide, search};

use super::{BY, Fixture, bulk, now};

#[tokio::test]
async fn a_bulk_selects_the_executions_that_a_list_with_the_same_filter_shows() {
    let f = Fixture::new().await;
    let mut ids = Vec::new();
    for second in 1..=4 {
        ids.push(f.failed(second).await);
    }
    let group = fingerprint("lost", "the worker is gone");
    // As a lost attempt is recorded: the row's message is longer than the group's pattern.
    sqlx::query(
        "UPDATE sexton.executions SET error_class = 'lost', fingerprint = $2,
             error_message = 'the worker is gone; 2 crashed, no more are allowed'
         WHERE id = ANY ($1)",
    )
    .bind(ids[..2].iter().map(|id| id.get()).collect::<Vec<_>>())
    .bind(group.to_string())
    .execute(f.db.pool())
    .await
    .unwrap();
    let mute = GroupChange::Decide(GroupDecision::Muted);
    decide(f.store(), &group.to_string(), mute, BY, None).await.unwrap();
    let text =
        |text: &str| FailureFilter { text: Some(text.to_owned()), ..FailureFilter::default() };
    for (filter, expected) in [
        (FailureFilter::default(), 2),
        (FailureFilter { muted: true, ..FailureFilter::default() }, 4),
        (FailureFilter { fingerprint: Some(group), ..FailureFilter::default() }, 2),
        (FailureFilter { muted: true, ..text("worker is") }, 2),
        (FailureFilter { muted: true, ..text("orker") }, 0),
    ] {
        let listed = search(f.store(), &filter, Order::Oldest, None, 100).await.unwrap();
        let previewed = bulk::preview(f.store(), &filter, now(1_000)).await.unwrap();
        assert_eq!((listed.len(), previewed.count), (expected, expected as u64), "{filter:?}");
    }
}
