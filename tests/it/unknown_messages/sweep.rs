//! What the sweep writes down, removes and puts back, and what a crash in between leaves.

use lapin::BasicProperties;
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::state::State;
use sexton_service::clock;
use sexton_store::operator::AuditContext;
use sexton_store::unknown_messages;
use sexton_tests::factory::{NewExecution, NewJob};
use uuid::Uuid;

use super::{Stage, pass_of, unknown_properties};

const ME: AuditContext<'static> = AuditContext { actor: "test", reason: Some("rubbish") };

#[tokio::test]
async fn an_unknown_message_is_recorded_whole_and_stays_in_the_queue() {
    let stage = Stage::new().await;
    let pool = stage.platform.store().pool();
    let job: JobId = NewJob::new("a.b").insert(pool).await.unwrap();
    let at = clock::now();
    let known: ExecutionId =
        NewExecution::new(job, State::Failed, at).published().insert(pool).await.unwrap();
    stage.put(b"{}", unknown_properties(known.get())).await;
    let bytes: Vec<u8> = (0..=255).collect();
    let nul = BasicProperties::default().with_message_id("a\0b".into());
    stage.put(&bytes, nul).await;
    stage.put(br#"{"type":"report"}"#, BasicProperties::default()).await;
    stage.put(b"{}", unknown_properties(Uuid::nil())).await;
    // The row's number is 1, and the message names 2: it is stale, and no raw one.
    let tally = stage.pass().await;
    assert_eq!((tally.unknown, tally.removed, tally.discarded), (3, 1, 0));
    let listed = stage.listed(&[]).await;
    let kinds: Vec<_> = listed.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["unreadable", "foreign", "ticket"]);
    let id = listed[0]["id"].as_str().unwrap();
    let (body, properties) = unknown_messages::content(&stage.store(), id).await.unwrap().unwrap();
    assert_eq!((body, properties.as_str()), (bytes.clone(), r#"{"message_id":"a\u0000b"}"#));
    assert!(stage.bodies().await.contains(&bytes));
    // Another pass meets the clean copies: they are the same messages.
    stage.pass().await;
    let again = stage.listed(&[]).await;
    assert_eq!(again.len(), 3);
    assert_eq!(again[0]["id"], listed[0]["id"]);
    assert_eq!(again[0]["first_seen"], listed[0]["first_seen"]);
}

#[tokio::test]
async fn equal_messages_are_one_row_that_counts_them() {
    let stage = Stage::new().await;
    for _ in 0..3 {
        stage.put(b"rubbish", BasicProperties::default()).await;
    }
    for _ in 0..2 {
        stage.pass().await;
        let listed = stage.listed(&[]).await;
        assert_eq!((listed.len(), listed[0]["copies"].as_i64()), (1, Some(3)));
    }
    stage.discard(&stage.id().await).await;
    assert_eq!(stage.pass().await.discarded, 3);
    assert_eq!(stage.ready().await, 0);
}

#[tokio::test]
async fn the_next_sweep_applies_a_discard_and_a_restore_republishes_the_message() {
    let stage = Stage::new().await;
    stage.put(b"rubbish", unknown_properties(Uuid::nil())).await;
    stage.put(b"keep", BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.listed(&[]).await[0]["id"].as_str().unwrap().to_owned();
    stage.discard(&id).await;
    assert_eq!(stage.state(&id).await, "discarding");
    assert_eq!(stage.ready().await, 2, "nothing is removed before a pass");
    let tally = stage.pass().await;
    assert_eq!((tally.discarded, tally.unknown), (1, 1));
    assert_eq!(stage.bodies().await, [b"keep".to_vec()]);
    assert_eq!(stage.state(&id).await, "discarded");
    let done = stage.command(&["restore", &id]).await;
    assert!(done.status.success() && done.stdout.contains("is restored"), "{done}");
    assert_eq!(stage.state(&id).await, "restoring");
    stage.pass().await;
    assert_eq!(stage.bodies().await, [b"keep".to_vec(), b"rubbish".to_vec()]);
    assert_eq!(stage.state(&id).await, "parked");
    // Its properties have come back, too: it is the same message.
    assert_eq!(stage.listed(&[]).await.len(), 2);
    assert_eq!(
        (stage.count_actions("discard_raw").await, stage.count_actions("restore_raw").await),
        (1, 1)
    );
}

#[tokio::test]
async fn a_discard_restored_in_time_removes_nothing() {
    let stage = Stage::new().await;
    stage.put(b"rubbish", BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.id().await;
    stage.discard(&id).await;
    let done = stage.command(&["restore", &id]).await;
    assert!(done.stdout.contains("stays in the failed queue"), "{done}");
    assert_eq!(stage.pass().await.discarded, 0);
    assert_eq!(stage.ready().await, 1);
}

/// The pass died between its note and its acknowledgement: the message is back in the queue.
#[tokio::test]
async fn a_sweep_that_dies_before_a_removal_keeps_message_and_mark() {
    let stage = Stage::new().await;
    stage.put(b"rubbish", BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.id().await;
    stage.discard(&id).await;
    let seen = rubbish(digest_of(&stage, &id).await);
    let noted = unknown_messages::record_message(&stage.store(), &seen, clock::now(), true, None)
        .await
        .unwrap();
    assert_eq!(noted, unknown_messages::RecordOutcome::Discarded);
    assert_eq!(stage.state(&id).await, "discarding");
    let busy = unknown_messages::restore(&stage.store(), &id, ME, None).await.unwrap_err();
    assert!(busy.to_string().contains("being removed by a sweep"), "{busy}");
    assert_eq!(stage.pass().await.discarded, 1);
    assert_eq!(stage.state(&id).await, "discarded");
    assert_eq!(stage.ready().await, 0);
}

/// The pass died between its publication and the row: the message is there, and comes once more.
#[tokio::test]
async fn a_sweep_that_dies_during_a_restore_leaves_at_most_a_copy() {
    let stage = Stage::new().await;
    stage.put(b"rubbish", BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.id().await;
    stage.discard(&id).await;
    stage.pass().await;
    assert!(stage.command(&["restore", &id]).await.status.success());
    stage.put(b"rubbish", BasicProperties::default()).await;
    stage.pass().await;
    assert_eq!(stage.state(&id).await, "parked");
    assert_eq!(stage.listed(&[]).await[0]["copies"], 2);
    assert_eq!(stage.ready().await, 2, "kept, both");
}

#[tokio::test]
async fn an_equal_message_that_comes_after_a_discard_is_a_new_one() {
    let stage = Stage::new().await;
    stage.put(b"rubbish", BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.id().await;
    stage.discard(&id).await;
    stage.pass().await;
    stage.put(b"rubbish", BasicProperties::default()).await;
    let tally = stage.pass().await;
    assert_eq!((tally.discarded, tally.unknown), (0, 1), "nobody has discarded this one");
    assert_eq!(stage.state(&id).await, "parked");
}

#[tokio::test]
async fn a_message_removed_by_somebody_is_reported_and_pruned() {
    let stage = Stage::new().await;
    stage.put(b"rubbish", BasicProperties::default()).await;
    stage.put(b"stays", BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.listed(&[]).await[0]["id"].as_str().unwrap().to_owned();
    stage.take().await;
    stage.pass().await;
    assert_eq!(stage.state(&id).await, "taken");
    assert_eq!(stage.listed(&[]).await.len(), 1);
    let later = clock::now() + chrono::TimeDelta::days(31);
    assert_eq!(unknown_messages::prune(&stage.store(), 30, 1_000, Some(later)).await.unwrap(), 1);
    assert_eq!(stage.listed(&["--all"]).await.len(), 1, "what is in the queue is never forgotten");
    stage.purge().await;
    stage.pass().await;
    assert_eq!(stage.listed(&[]).await.len(), 0);
}

#[tokio::test]
async fn a_truncated_message_is_not_discarded_implicitly() {
    let stage = Stage::new().await;
    let long = vec![b'x'; unknown_messages::MAX_BODY_BYTES + 1];
    stage.put(&long, BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.id().await;
    let refused = stage.command(&["discard", &id, "--reason", "long", "--yes"]).await;
    assert_eq!(refused.status.code(), Some(4), "{refused}");
    assert!(refused.stderr.contains("--allow-truncated"), "{refused}");
    let file = stage.platform.folder().join("long");
    let to = file.to_str().unwrap();
    let refused = stage.command(&["export", &id, "--to", to]).await;
    assert_eq!(refused.status.code(), Some(4), "{refused}");
    assert!(stage.command(&["export", &id, "--to", to, "--cut"]).await.status.success());
    assert_eq!(std::fs::read(&file).unwrap(), &long[1..]);
    let arguments = ["discard", &id, "--reason", "long", "--yes", "--allow-truncated"];
    assert!(stage.command(&arguments).await.status.success());
    stage.pass().await;
    assert_eq!(stage.ready().await, 0);
    let refused = stage.command(&["restore", &id]).await;
    assert!(refused.stderr.contains("only a part is kept"), "{refused}");
}

/// Of three copies a pass has met one when the mark is made. It removes none of them, the next all.
#[tokio::test]
async fn a_mark_that_is_made_between_the_copies_of_a_message_is_for_the_next_pass() {
    let stage = Stage::new().await;
    stage.put(b"rubbish", BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.id().await;
    let (store, digest) = (stage.store(), digest_of(&stage, &id).await);
    let under_way = clock::now();
    let seen = rubbish(digest);
    let note = async |pass| {
        unknown_messages::record_message(&store, &seen, pass, true, None).await.unwrap()
    };
    assert_eq!(note(under_way).await, unknown_messages::RecordOutcome::Kept { new: false });
    stage.discard(&id).await;
    for _ in 0..2 {
        assert_eq!(
            note(under_way).await,
            unknown_messages::RecordOutcome::Kept { new: false },
            "as the first was"
        );
    }
    unknown_messages::mark_gone(&store, under_way, None).await.unwrap();
    assert_eq!(stage.state(&id).await, "discarding", "it is in the queue, and the mark holds");
    let next = clock::now();
    for _ in 0..3 {
        assert_eq!(note(next).await, unknown_messages::RecordOutcome::Discarded);
    }
    unknown_messages::mark_gone(&store, next, None).await.unwrap();
    assert_eq!(stage.state(&id).await, "discarded");
    assert_eq!(stage.listed(&["--all"]).await[0]["copies"], 3, "a restore puts all back");
}

/// Batches of two among five copies and as many others: the pass sees the whole queue all the same.
#[tokio::test]
async fn a_discard_across_many_batches_is_confirmed_and_can_be_restored() {
    let stage = Stage::new().await;
    for number in 0..5 {
        stage.put(b"rubbish", BasicProperties::default()).await;
        stage.put(format!("keep {number}").as_bytes(), BasicProperties::default()).await;
    }
    let pass = async || pass_of(&stage.sweep().with_batch(2)).await;
    assert_eq!(pass().await.unknown, 10);
    let listed = stage.listed(&[]).await;
    let many = listed.iter().find(|one| one["copies"] == 5).unwrap();
    let id = many["id"].as_str().unwrap().to_owned();
    stage.discard(&id).await;
    let tally = pass().await;
    assert_eq!((tally.discarded, tally.unknown, tally.complete), (5, 5, true));
    assert_eq!(stage.state(&id).await, "discarded");
    assert!(stage.command(&["restore", &id]).await.status.success());
    pass().await;
    assert_eq!((stage.ready().await, stage.state(&id).await.as_str()), (10, "parked"));
}

/// A pass that broke off has removed one of two copies: the mark holds for the other, and both are put back.
#[tokio::test]
async fn an_interrupted_discard_continues_and_is_restored_as_a_whole() {
    let stage = Stage::new().await;
    for _ in 0..2 {
        stage.put(b"rubbish", BasicProperties::default()).await;
    }
    stage.pass().await;
    let id = stage.id().await;
    stage.discard(&id).await;
    let seen = rubbish(digest_of(&stage, &id).await);
    let noted = unknown_messages::record_message(&stage.store(), &seen, clock::now(), true, None)
        .await
        .unwrap();
    assert_eq!(noted, unknown_messages::RecordOutcome::Discarded);
    stage.take().await;
    // It dies here, before the end of the queue, so it reports no message gone.
    assert_eq!(stage.state(&id).await, "discarding");
    assert_eq!(stage.pass().await.discarded, 1);
    assert_eq!(stage.state(&id).await, "discarded");
    assert!(stage.command(&["restore", &id]).await.status.success());
    stage.pass().await;
    assert_eq!(stage.ready().await, 2);
}

/// A pass that ended early did not see every message, so it reports no message and no mark as done.
#[tokio::test]
async fn an_interrupted_sweep_reports_no_message_gone() {
    let stage = Stage::new().await;
    stage.put(b"rubbish", BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.id().await;
    assert!(!stage.pass_broken_off().await.complete);
    assert_eq!(stage.state(&id).await, "parked");
    stage.discard(&id).await;
    assert!(!stage.pass_broken_off().await.complete);
    assert_eq!((stage.state(&id).await.as_str(), stage.ready().await), ("discarding", 1));
    assert_eq!(stage.pass().await.discarded, 1);
    assert_eq!(stage.state(&id).await, "discarded");
}

/// The sweep that carried it out died, and the numbers may fit.
#[tokio::test]
async fn a_discard_mark_requests_sweeps_until_the_message_is_gone() {
    let stage = Stage::new().await;
    stage.put(b"rubbish", BasicProperties::default()).await;
    stage.pass().await;
    let id = stage.id().await;
    let waits = async || unknown_messages::needs_sweep(&stage.store(), false).await.unwrap();
    assert!(!waits().await);
    stage.discard(&id).await;
    assert!(waits().await);
    let seen = rubbish(digest_of(&stage, &id).await);
    unknown_messages::record_message(&stage.store(), &seen, clock::now(), true, None)
        .await
        .unwrap();
    assert!(waits().await, "the pass that noted it died");
    assert_eq!(stage.pass().await.discarded, 1);
    assert!(!waits().await);
}

/// Dead after the first of three copies: the other two are put back, and not all three again.
#[tokio::test]
async fn restored_copies_are_not_restored_again_after_a_crash() {
    let stage = Stage::new().await;
    for _ in 0..3 {
        stage.put(b"rubbish", BasicProperties::default()).await;
    }
    stage.pass().await;
    let id = stage.id().await;
    stage.discard(&id).await;
    assert_eq!(stage.pass().await.discarded, 3);
    assert!(stage.command(&["restore", &id]).await.status.success());
    stage.put(b"rubbish", BasicProperties::default()).await;
    assert!(
        unknown_messages::mark_copy_restored(&stage.store(), &digest_of(&stage, &id).await)
            .await
            .unwrap()
    );
    stage.pass().await;
    assert_eq!(stage.ready().await, 3);
    assert_eq!(stage.listed(&[]).await[0]["copies"], 3);
}

#[tokio::test]
async fn messages_over_the_storage_limit_stay_in_the_queue_and_are_counted() {
    let stage = Stage::new().await;
    for number in 0..5 {
        stage.put(format!("rubbish {number}").as_bytes(), BasicProperties::default()).await;
    }
    let limit = unknown_messages::Capacity { messages: 2, ..unknown_messages::MAX_STORED };
    for _ in 0..2 {
        let tally = stage.pass_within(limit).await;
        assert_eq!((tally.unknown, tally.unrecorded, tally.removed), (5, 3, 0));
    }
    assert_eq!(stage.ready().await, 5);
    assert_eq!(stage.listed(&[]).await.len(), 2);
    let list = stage.command(&["list"]).await;
    assert!(list.stderr.contains("3 more messages of the failed queue (27 bytes)"), "{list}");
    let status = stage.platform.sexton_json(&["status"]).await;
    let over = serde_json::json!({"kind": "raw_messages_overflow", "messages": 3, "bytes": 27,
                                  "at_least": false});
    assert!(status["warnings"].as_array().unwrap().contains(&over), "{status}");
    // What is gone makes room only when retention forgets it: until then its discard can be taken back.
    let id = stage.listed(&[]).await[0]["id"].as_str().unwrap().to_owned();
    stage.discard(&id).await;
    assert_eq!(stage.pass_within(limit).await.unrecorded, 3);
    let later = clock::now() + chrono::TimeDelta::days(31);
    assert_eq!(unknown_messages::prune(&stage.store(), 30, 1_000, Some(later)).await.unwrap(), 1);
    assert_eq!(stage.pass_within(limit).await.unrecorded, 2);
    // The bytes have a limit of their own: two messages of 9 bytes, each with properties of 2, take 22.
    let small = |bytes| unknown_messages::Capacity { bytes, ..unknown_messages::MAX_STORED };
    assert_eq!(stage.pass_within(small(32)).await.unrecorded, 2);
    assert_eq!(stage.pass_within(small(33)).await.unrecorded, 1);
    assert_eq!(stage.pass_within(unknown_messages::MAX_STORED).await.unrecorded, 0);
    assert_eq!((stage.ready().await, stage.listed(&[]).await.len()), (4, 4));
    assert!(stage.command(&["list"]).await.stderr.is_empty(), "nothing is left to tell");
}

fn rubbish(digest: unknown_messages::Digest) -> unknown_messages::SeenMessage<'static> {
    unknown_messages::SeenMessage {
        digest,
        kind: "unreadable",
        reason: "a test",
        body: b"rubbish",
        properties: "{}",
    }
}

async fn digest_of(stage: &Stage, id: &str) -> unknown_messages::Digest {
    let digest: Vec<u8> = sqlx::query_scalar("SELECT decode($1, 'hex')")
        .bind(id)
        .fetch_one(stage.platform.store().pool())
        .await
        .unwrap();
    digest.try_into().unwrap()
}
