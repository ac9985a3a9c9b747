//! Publishing: `Ok` means in the queue, everything else is an error of the right message.

use futures_util::future::join_all;
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};
use sexton_broker::{
    Endpoint, Link, MAX_BODY_BYTES, Properties, Publication, PublishError, Publisher, SlotConsumer,
};
use sexton_tests::namespace::TestNamespace;
use tokio::time::Instant;

use super::{delete_queue, id, receive, ticket, within};

#[tokio::test]
async fn a_confirmed_publication_is_in_its_queue_whole() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let publisher = Publisher::start(&link, 2);
    let properties = Properties {
        message_id: Some("whole".into()),
        kind: Some("report".into()),
        content_type: Some("application/json".into()),
        timestamp_s: Some(1_750_000_000),
        attempt: Some(4),
        schema: Some(1),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        ..Properties::default()
    };
    let sizes = [0, 1, 16_384, MAX_BODY_BYTES];
    for size in sizes {
        let publication = Publication::new(ns.main(), vec![7; size], properties.clone());
        publisher.publish_one(publication).await.unwrap();
    }
    assert_eq!(link.depth(&ns.main()).await.unwrap().ready, 4);
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    for size in sizes {
        let delivery = receive(&mut slot).await;
        assert_eq!((delivery.body.len(), &delivery.properties), (size, &properties));
        assert!(!delivery.redelivered && delivery.last_death.is_none());
        let _ = delivery.ack().await;
    }
}

#[tokio::test]
async fn a_publication_over_the_size_limit_is_refused_before_it_is_sent() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let publisher = Publisher::start(&link, 1);
    let large = Publication::new(ns.main(), vec![0; MAX_BODY_BYTES + 1], Properties::default());
    let kind = Properties { kind: Some("k".repeat(256)), ..Properties::default() };
    let batch = vec![large, Publication::new(ns.main(), vec![], kind), ticket(&ns.main(), "fits")];
    let answers = publisher.publish(batch).await;
    assert!(matches!(answers[0], Err(PublishError::TooLarge { what: "body", .. })));
    assert!(matches!(answers[1], Err(PublishError::TooLarge { what: "type", .. })));
    assert_eq!(answers[2], Ok(()));
    assert_eq!(link.depth(&ns.main()).await.unwrap().ready, 1);

    // A copy of what the broker has delivered has to go somewhere, whatever its size.
    let copy = Publication::copy(ns.main(), vec![0; MAX_BODY_BYTES + 1], Properties::default());
    assert_eq!(publisher.publish_one(copy).await, Ok(()));
}

#[tokio::test]
async fn a_deleted_queue_is_an_error_and_is_declared_again_for_the_next_publication() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let publisher = Publisher::start(&link, 1);
    publisher.publish_one(ticket(&ns.main(), "before")).await.unwrap();
    delete_queue(&ns.raw().await, &ns.main()).await;
    let lost = publisher.publish_one(ticket(&ns.main(), "lost")).await;
    assert_eq!(lost, Err(PublishError::Unroutable { queue: ns.main() }));
    assert_eq!(publisher.publish_one(ticket(&ns.main(), "after")).await, Ok(()));
}

/// The client library alone gave 52 wrong answers of 1600 here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_batches_with_returned_messages_get_the_right_answer_each() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let publisher = Publisher::start(&link, 2);
    let missing = format!("{}-missing", ns.namespace());
    let batches = (0..8).map(|task| {
        let (publisher, main, missing) = (publisher.clone(), ns.main(), missing.clone());
        tokio::spawn(async move {
            let queue = |n| if (n + task) % 2 == 0 { &main } else { &missing };
            let batch = (0..200).map(|n| ticket(queue(n), &format!("{task}-{n}"))).collect();
            let answers = publisher.publish(batch).await;
            assert_eq!(answers.len(), 200);
            for (n, answer) in answers.into_iter().enumerate() {
                let routable = (n + task) % 2 == 0;
                let expected = if routable {
                    Ok(())
                } else {
                    Err(PublishError::Unroutable { queue: missing.clone() })
                };
                assert_eq!(answer, expected, "message {n} of task {task}");
            }
        })
    });
    for done in within("all answers", join_all(batches)).await {
        done.unwrap();
    }
    // Some twice, for windows are sent again; but each routable one at least once.
    assert!(link.depth(&ns.main()).await.unwrap().ready >= 800);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_batch_is_published_in_full_and_answered_in_order() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let publisher = Publisher::start(&link, 2);
    let batch = (0..3_000).map(|n| ticket(&ns.main(), &n.to_string())).collect();
    let answers = within("all confirms", publisher.publish(batch)).await;
    assert_eq!(answers, vec![Ok(()); 3_000]);
    assert_eq!(link.depth(&ns.main()).await.unwrap().ready, 3_000);
}

#[tokio::test]
async fn a_full_queue_refuses_and_only_what_did_not_fit_fails() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let raw = ns.raw().await;
    let queue = format!("{}-small", ns.namespace());
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(1));
    arguments.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
    let options = QueueDeclareOptions { exclusive: true, ..Default::default() };
    raw.channel.queue_declare((*queue).into(), options, arguments).await.unwrap();

    let publisher = Publisher::start(&link, 1);
    assert_eq!(publisher.publish_one(ticket(&queue, "fits")).await, Ok(()));
    let batch = vec![ticket(&queue, "too-much"), ticket(&ns.main(), "other-queue")];
    let answers = publisher.publish(batch).await;
    assert_eq!(answers, [Err(PublishError::Refused { queue: queue.clone() }), Ok(())]);
}

#[tokio::test]
async fn without_a_connection_publishing_fails_at_once() {
    let ns = TestNamespace::new();
    let mut settings = ns.settings();
    settings.endpoint = Endpoint::parse("amqp://guest:guest@127.0.0.1:1/%2f").unwrap();
    let publisher = Publisher::start(&Link::start(settings), 1);
    let begun = Instant::now();
    let answers = publisher.publish(vec![ticket(&ns.main(), "a"), ticket(&ns.main(), "b")]).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(PublishError::Unavailable { .. }))));
    assert!(begun.elapsed().as_secs() < 2, "took {:?}", begun.elapsed());
}

#[tokio::test]
async fn publications_of_one_lane_stay_in_order() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let ids: Vec<_> = (0..50).map(|n| n.to_string()).collect();
    let batch = ids.iter().map(|id| ticket(&ns.main(), id)).collect();
    assert!(Publisher::start(&link, 1).publish(batch).await.iter().all(Result::is_ok));
    let mut slot = SlotConsumer::new(&link, ns.main(), 10);
    for expected in &ids {
        let delivery = receive(&mut slot).await;
        assert_eq!(id(&delivery), expected);
        let _ = delivery.ack().await;
    }
}
