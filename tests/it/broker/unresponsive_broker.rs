//! A broker that takes connections and says nothing, as one does that is frozen; and a queue that takes
//! messages and confirms none, as one does that has no leader.

use std::io::{ErrorKind, Read as _};
use std::time::Duration;

use sexton_broker::{Endpoint, Link, LinkSettings, PublishError, Publisher, Timeouts};
use sexton_model::pool::PoolName;
use sexton_tests::namespace::TestNamespace;
use sexton_tests::proxy::Proxy;
use sexton_tests::virtual_host::VirtualHost;
use tokio::net::{TcpListener, TcpStream};

use super::{DEADLINE, ticket, within};

/// For one attempt, here.
const CONNECT: Duration = Duration::from_millis(500);
/// Attempts that are looked at.
const ATTEMPTS: usize = 8;
/// The first one, which the client library cannot give up, and the last one. And one for luck: it may
/// be on its way to its end.
const OPEN: usize = 3;

fn is_open(stream: TcpStream) -> bool {
    // It does not block.
    let mut stream = stream.into_std().unwrap();
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

#[tokio::test]
async fn a_link_leaves_no_attempts_behind_at_a_broker_that_does_not_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("amqp://{}", listener.local_addr().unwrap());
    let link = Link::start(LinkSettings {
        endpoint: Endpoint::parse(&url).unwrap(),
        timeouts: Timeouts { connect: CONNECT, ..Timeouts::default() },
        ..TestNamespace::new().settings()
    });
    let mut attempts = Vec::new();
    while attempts.len() < ATTEMPTS {
        let (attempt, _) = within("another attempt", listener.accept()).await.unwrap();
        attempts.push(attempt);
    }
    let open = attempts.into_iter().filter_map(|attempt| is_open(attempt).then_some(())).count();
    assert!(open <= OPEN, "{open} of {ATTEMPTS} attempts are still open");
    link.close().await;
}

#[tokio::test]
async fn an_unresponsive_queue_delays_nobody_twice_and_is_detected_when_it_answers() {
    const CONFIRM: Duration = Duration::from_secs(5);
    let silent = PoolName::new("silent").unwrap();
    let ns = TestNamespace::new()
        .with_pool(silent)
        .with_timeouts(Timeouts { confirm: CONFIRM, ..Timeouts::default() });
    let proxy = Proxy::before(ns.url()).await.unwrap();
    let endpoint = Endpoint::parse(&proxy.url(ns.url())).unwrap();
    let link = Link::start(LinkSettings { endpoint, ..ns.settings() });
    assert!(link.up().await.is_some());
    let publisher = Publisher::start(&link, 2);
    let queue = format!("{}.silent", ns.main());
    // Lost on its way, so that nothing confirms it; while another queue does.
    let losing = proxy.lose_requests_matching(queue.as_bytes());
    let speaking = async {
        while losing.pieces() == 0 {
            tokio::task::yield_now().await;
        }
        publisher.publish_one(ticket(&ns.main(), "x")).await
    };
    let (silent, speaking) = tokio::join!(publisher.publish_one(ticket(&queue, "a")), speaking);
    assert!(matches!(silent, Err(PublishError::TimedOut { .. })), "{silent:?}");
    assert_eq!(speaking, Ok(()));
    proxy.pass();

    let batch = vec![ticket(&queue, "b"), ticket(&ns.main(), "c"), ticket(&queue, "d")];
    let answers = within("answers", publisher.publish(batch)).await;
    for refused in [&answers[0], &answers[2]] {
        assert!(matches!(refused, Err(PublishError::TimedOut { .. })), "{answers:?}");
    }
    assert_eq!(answers[1], Ok(()));
    assert_eq!(link.depth(&queue).await.unwrap().ready, 0, "nothing was sent to the silent one");

    let answered = async {
        while publisher.publish_one(ticket(&queue, "e")).await.is_err() {
            tokio::time::sleep(CONFIRM / 50).await;
        }
    };
    tokio::time::timeout(CONFIRM + DEADLINE, answered).await.expect("it is asked again");
    assert_eq!(publisher.publish_one(ticket(&queue, "f")).await, Ok(()));
    assert_eq!(link.depth(&queue).await.unwrap().ready, 2);
}

#[tokio::test]
async fn a_queue_unresponsive_during_an_idle_period_delays_no_other_queue_later() {
    const CONFIRM: Duration = Duration::from_secs(3);
    let host = VirtualHost::create().await.unwrap();
    let silent = PoolName::new("silent").unwrap();
    let timeouts = Timeouts { confirm: CONFIRM, probe: 2 * CONFIRM, ..Timeouts::default() };
    let ns = TestNamespace::on(host.url()).with_pool(silent).with_timeouts(timeouts);
    let link = Link::start(ns.settings());
    assert!(link.up().await.is_some());
    let publisher = Publisher::start(&link, 2);
    let queue = format!("{}.silent", ns.main());
    host.suspend_queue(&queue).await.unwrap();
    // More than one lane's worth, so that both are held up, and nobody else publishes.
    let batch = (0..100).map(|number| ticket(&queue, &number.to_string())).collect();
    let answers = publisher.publish(batch).await;
    let timed_out = |one: &_| matches!(one, Err(PublishError::TimedOut { .. }));
    assert!(answers.iter().all(timed_out), "{answers:?}");

    // Polled once, it is with the task that publishes it, before all others.
    let mut again = Box::pin(publisher.publish_one(ticket(&queue, "again")));
    assert!(futures_util::poll!(&mut again).is_pending());
    for number in ["x", "y", "z"] {
        let others = publisher.publish_one(ticket(&ns.main(), number));
        let answer = tokio::time::timeout(CONFIRM, others).await;
        assert_eq!(answer.expect("both lanes are free"), Ok(()));
    }
    assert!(within("the silent queue's answer", again).await.is_err());
}
