//! Declaring: idempotent, and never over a queue with other arguments.

use lapin::ExchangeKind;
use lapin::options::{ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use sexton_broker::names::{exchange, main_queue, retry_queue};
use sexton_broker::{
    DELAY_QUEUES_MS, Endpoint, InspectError, Link, LinkState, PoolName, TopologyError, topology,
};
use sexton_tests::namespace::TestNamespace;

use super::{DEADLINE, within};

#[tokio::test]
async fn connecting_declares_the_topology_and_connecting_again_changes_nothing() {
    let batch = PoolName::new("batch").unwrap();
    let ns = TestNamespace::new().with_pool(batch.clone());
    let first = ns.link().await;
    let second = ns.link().await;
    for link in [first, second] {
        assert_eq!(link.depth(&ns.failed()).await.unwrap().ready, 0);
        for pool in [&batch, &PoolName::default_pool()] {
            link.depth(&main_queue(ns.namespace(), pool)).await.unwrap();
            for delay_ms in DELAY_QUEUES_MS {
                link.depth(&retry_queue(ns.namespace(), pool, delay_ms)).await.unwrap();
            }
        }
        link.close().await;
        assert!(matches!(*link.state().borrow(), LinkState::Closed));
    }
}

#[tokio::test]
async fn a_pool_can_be_added_to_a_connected_link() {
    let late = PoolName::new("late").unwrap();
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let ns = ns.with_pool(late.clone());
    let queue = main_queue(ns.namespace(), &late);
    assert_eq!(link.depth(&queue).await, Err(InspectError::Missing(queue.clone())));
    link.ensure_pools(&[late]).await.unwrap();
    link.depth(&queue).await.unwrap();
}

#[tokio::test]
async fn deleting_leaves_nothing_and_can_be_repeated() {
    let ns = TestNamespace::new();
    let link = ns.link().await;
    let raw = ns.raw().await;
    for _ in 0..2 {
        topology::delete(&raw.channel, ns.namespace(), ns.pools(), DEADLINE).await.unwrap();
    }
    let names = DELAY_QUEUES_MS.map(|delay_ms| ns.retry(delay_ms)).into_iter();
    for queue in names.chain([ns.main(), ns.failed()]) {
        assert_eq!(link.depth(&queue).await, Err(InspectError::Missing(queue)));
    }
}

#[tokio::test]
async fn a_queue_with_other_arguments_ends_the_link_and_names_the_way_out() {
    let ns = TestNamespace::new();
    let raw = ns.raw().await;
    let mut arguments = topology::main_arguments(ns.namespace());
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(7));
    let options = QueueDeclareOptions::durable();
    raw.channel.queue_declare((*ns.main()).into(), options, arguments).await.unwrap();

    let link = Link::start(ns.settings());
    let error = within("the failure", link.failed()).await;
    let TopologyError::Mismatch { queue, argument, ours, theirs, .. } = &error else {
        panic!("another error: {error}");
    };
    assert_eq!(*queue, format!("queue {}", ns.main()));
    assert_eq!((&**argument, &**ours, &**theirs), ("x-delivery-limit", "100", "7"));
    assert!(error.to_string().contains("drain the queue"), "{error}");
    assert_eq!(within("no connection", link.up()).await, None);
}

#[tokio::test]
async fn an_argument_that_is_missing_on_the_broker_is_named_too() {
    let ns = TestNamespace::new();
    let raw = ns.raw().await;
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    let options = QueueDeclareOptions::durable();
    raw.channel.queue_declare((*ns.failed()).into(), options, arguments).await.unwrap();

    let link = Link::start(ns.settings());
    let error = within("the failure", link.failed()).await.to_string();
    assert!(error.contains(&ns.failed()) && error.contains("= none"), "{error}");
}

#[tokio::test]
async fn an_exchange_of_another_type_ends_the_link() {
    let ns = TestNamespace::new();
    let raw = ns.raw().await;
    let name = exchange(ns.namespace());
    let options = ExchangeDeclareOptions { durable: true, ..Default::default() };
    let declaring = raw.channel.exchange_declare(
        (*name).into(),
        ExchangeKind::Fanout,
        options,
        FieldTable::default(),
    );
    declaring.await.unwrap();

    let link = Link::start(ns.settings());
    let error = within("the failure", link.failed()).await.to_string();
    assert!(error.contains(&name) && error.contains("type = fanout"), "{error}");
}

/// The reason of the first failed try.
async fn reason_for(url: &str) -> String {
    let mut settings = TestNamespace::new().settings();
    settings.endpoint = Endpoint::parse(url).unwrap();
    let link = Link::start(settings);
    let mut state = link.state();
    let tried = |state: &LinkState| matches!(state, LinkState::Down { reason: Some(_) });
    let state = within("a failed try", state.wait_for(tried)).await.unwrap().clone();
    let LinkState::Down { reason: Some(reason) } = state else { unreachable!() };
    reason
}

#[tokio::test]
async fn wrong_credentials_give_a_remedy_without_the_password() {
    let url = TestNamespace::new().url().to_owned();
    let (_, rest) = url.split_once('@').unwrap();
    let reason = reason_for(&format!("amqp://nobody:hunter2@{rest}")).await;
    assert!(reason.contains("AMQP_URL") && reason.contains("`nobody`"), "{reason}");
    assert!(!reason.contains("hunter2"), "{reason}");
}

#[tokio::test]
async fn a_missing_vhost_and_an_absent_server_give_a_remedy() {
    let url = TestNamespace::new().url().to_owned();
    // The URL may name a vhost or not.
    let (scheme, rest) = url.split_once("://").unwrap();
    let authority = rest.split('/').next().unwrap();
    let reason = reason_for(&format!("{scheme}://{authority}/no-such-vhost")).await;
    assert!(reason.contains("vhost `no-such-vhost`"), "{reason}");
    let reason = reason_for("amqp://guest:hunter2@127.0.0.1:1/%2f").await;
    assert!(reason.contains("127.0.0.1:1") && reason.contains("AMQP_URL"), "{reason}");
    assert!(!reason.contains("hunter2"), "{reason}");
}
