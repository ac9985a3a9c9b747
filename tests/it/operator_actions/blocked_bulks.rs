//! One bulk that cannot go on, among others.

use std::time::Duration;

use lapin::options::{QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use serde_json::json;
use sexton_model::bulk::BulkKind;
use sexton_model::failures::FailureFilter;
use sexton_scheduler::background_loop::{BackgroundLoop as _, Pause};
use sexton_store::bulk::{self, NewBulk};

use super::{BY, Fixture, finish, now};

#[tokio::test]
async fn an_unreadable_bulk_delays_no_other_bulk() {
    let f = Fixture::new().await;
    f.many(5).await;
    let (unread, unknown, good) =
        (f.requeue_all().await, f.with_canary(2).await, f.requeue_all().await);
    let scheduler = f.scheduler();
    // A later version's bulk, which this version would select too much for, and one with an invalid pace.
    f.sql("UPDATE sexton.bulks SET selector = '{\"filter\": {\"mood\": \"sad\"}}' WHERE id = 1")
        .await;
    f.sql("ALTER TABLE sexton.bulks DROP CONSTRAINT bulks_rate_check").await;
    f.sql("UPDATE sexton.bulks SET rate = '1/w' WHERE id = 2").await;
    finish(&scheduler, now(2_000)).await;
    assert_eq!(f.stands(good).await, "done 5/5/0");
    assert_eq!(f.stands(unread).await, "stopped 0/0/0");
    assert_eq!(f.stands(unknown).await, "stopped 5/0/0");
    for (id, place) in [(unread, "bulks.selector"), (unknown, "bulks.rate")] {
        let bulk = f.bulk(id).await;
        assert_eq!(bulk.stopped_by.as_deref(), Some("sexton"));
        let why = bulk.why.unwrap();
        assert!(why.contains(place), "{why}");
        let audited = format!(
            "SELECT count(*) FROM sexton.operator_actions WHERE action = 'bulk_stop' AND actor = 'sexton'
             AND bulk_id = {id} AND reason LIKE '%{place}%'"
        );
        assert_eq!(f.number(&audited).await, 1);
    }
    // Its canary has shown nothing, so it holds the rest back when it can be read again.
    f.sql("UPDATE sexton.bulks SET rate = NULL WHERE id = 2").await;
    bulk::resume(f.store(), unknown, BY).await.unwrap();
    assert!(!f.bulk(unknown).await.canary_passed);
    assert_eq!(f.bulk(unknown).await.stopped_by, None);
}

#[tokio::test]
async fn a_bulk_with_refused_tickets_pauses_and_delays_no_other_bulk() {
    let f = Fixture::new().await;
    f.many(2).await;
    // A queue of that name that takes nothing, as one whose length an operator has limited.
    f.link.ensure_pools(&["full".parse().unwrap()]).await.unwrap();
    let raw = f.namespace.raw().await;
    let queue = format!("{}.full", f.namespace.main());
    raw.channel.queue_delete((*queue).into(), QueueDeleteOptions::default()).await.unwrap();
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongLongInt(0));
    arguments.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
    let options = QueueDeclareOptions::durable();
    raw.channel.queue_declare((*queue).into(), options, arguments).await.unwrap();
    let filter = json!(FailureFilter {
        until: Some(super::at(0) + Duration::from_micros(1_500)),
        ..FailureFilter::default()
    });
    let new_bulk = NewBulk { pool: Some("full"), ..Fixture::new_bulk(BulkKind::Requeue, &filter) };
    let refused = bulk::create(f.store(), &new_bulk, BY).await.unwrap();
    let other = f.requeue_all().await;
    let scheduler = f.scheduler();
    // Both are selected.
    let round = scheduler.run_once(now(2_000)).await.unwrap();
    assert_eq!((round.selected, round.unpublished), (3, 0));
    let round = scheduler.run_once(now(2_001)).await.unwrap();
    assert_eq!((round.unpublished, round.done, round.published), (1, 1, 0), "the round ends there");
    assert_eq!(scheduler.pause(&round), Pause::Exactly(Duration::from_secs(5)));
    assert_eq!((f.bulk(refused).await.done, f.bulk(other).await.done), (1, 0));
    let round = scheduler.run_once(now(2_006)).await.unwrap();
    assert_eq!((round.unpublished, round.published), (0, 1), "it is the other one's turn");
    assert_eq!(f.stands(other).await, "done 2/1/1");
    let unpublished =
        "SELECT count(*) FROM sexton.executions WHERE state = 'pending' AND pool = 'full'
        AND ticket_published_at IS NULL";
    assert_eq!(f.number(unpublished).await, 1, "which the relay publishes when it can");
    raw.channel.queue_delete((*queue).into(), QueueDeleteOptions::default()).await.unwrap();
}
