//! Connections that break: everything recovers by itself, soon, and nothing reports a false success.
//!
//! Method: the link goes through a relay on a loopback port, which cuts its connections and refuses
//! new ones on command.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lapin::uri::AMQPUri;
use sexton_broker::{AckOutcome, Endpoint, Link, LinkState, PublishError, Publisher, SlotConsumer};
use sexton_tests::namespace::TestNamespace;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{id, publish, receive, ticket, within};

/// The guaranteed time from the broker's first answer until the slot consumes again.
const BACK_WITHIN: Duration = Duration::from_secs(5);

/// A relay to the broker. The number is the epoch: a change cuts the existing connections, and an
/// odd one refuses new ones.
struct Relay {
    address: SocketAddr,
    epoch: Arc<watch::Sender<u32>>,
}

impl Relay {
    async fn start(ns: &TestNamespace) -> Self {
        let authority = ns.url().parse::<AMQPUri>().unwrap().authority;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let epoch = Arc::new(watch::Sender::new(0));
        let watched = Arc::clone(&epoch);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut epoch = watched.subscribe();
                if *epoch.borrow_and_update() % 2 == 1 {
                    continue;
                }
                let target = (authority.host.clone(), authority.port);
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = epoch.changed() => {}
                    }
                });
            }
        });
        Self { address, epoch }
    }

    fn link(&self, ns: &TestNamespace) -> Link {
        let url: AMQPUri = ns.url().parse().unwrap();
        let mut through = url.clone();
        through.authority.host = self.address.ip().to_string();
        through.authority.port = self.address.port();
        let mut settings = ns.settings();
        settings.endpoint = Endpoint::parse(&through.to_string()).unwrap();
        Link::start(settings)
    }

    /// Cuts every connection and accepts new ones.
    fn cut(&self) {
        self.epoch.send_modify(|epoch| *epoch += 2);
    }

    /// Cuts every connection and refuses new ones, or accepts them again.
    fn toggle(&self) {
        self.epoch.send_modify(|epoch| *epoch += 1);
    }
}

#[tokio::test]
async fn a_cut_connection_comes_back_with_the_message_that_was_held() {
    let ns = TestNamespace::new();
    let relay = Relay::start(&ns).await;
    let link = relay.link(&ns);
    assert_eq!(within("a connection", link.up()).await, Some(1));
    publish(&link, &ns.main(), &["a"]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    let held = receive(&mut slot).await;

    let begun = Instant::now();
    relay.cut();
    let again = receive(&mut slot).await;
    assert!(begun.elapsed() < BACK_WITHIN, "back after {:?}", begun.elapsed());
    assert_eq!((id(&again), again.redelivered), ("a", true));
    assert_eq!(held.ack().await, AckOutcome::ChannelGone, "an ack to a channel that is gone");
    assert_eq!(again.ack().await, AckOutcome::Written);
    assert_eq!(link.up().await, Some(2));
    publish(&link, &ns.main(), &["b"]).await;
    assert_eq!(id(&receive(&mut slot).await), "b");
}

#[tokio::test]
async fn a_suspended_slot_resumes_on_the_next_connection() {
    let ns = TestNamespace::new();
    let relay = Relay::start(&ns).await;
    let link = relay.link(&ns);
    within("a connection", link.up()).await;
    publish(&link, &ns.main(), &["a"]).await;
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    let held = receive(&mut slot).await;
    slot.suspend().await;
    relay.cut();
    assert_eq!(id(&receive(&mut slot).await), "a");
    assert_eq!(held.ack().await, AckOutcome::ChannelGone);
}

#[tokio::test]
async fn publishing_fails_fast_without_a_broker_and_recovers_afterwards() {
    let ns = TestNamespace::new();
    let relay = Relay::start(&ns).await;
    let link = relay.link(&ns);
    within("a connection", link.up()).await;
    let publisher = Publisher::start(&link, 2);
    let mut slot = SlotConsumer::new(&link, ns.main(), 1);
    publish(&link, &ns.main(), &["before"]).await;
    let _ = receive(&mut slot).await.ack().await;

    relay.toggle();
    let mut state = link.state();
    let tried = |state: &LinkState| matches!(state, LinkState::Down { reason: Some(_) });
    within("the loss", state.wait_for(tried)).await.unwrap();
    let begun = Instant::now();
    let refused = publisher.publish_one(ticket(&ns.main(), "during")).await;
    assert!(matches!(refused, Err(PublishError::Unavailable { .. })), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(1));
    // Three failed tries, so that the pauses have grown.
    for _ in 0..3 {
        within("another try", state.changed()).await.unwrap();
    }

    let begun = Instant::now();
    relay.toggle();
    within("a connection", link.up()).await;
    publisher.publish_one(ticket(&ns.main(), "after")).await.unwrap();
    let mut delivery = receive(&mut slot).await;
    if id(&delivery) == "before" {
        // An ack that was written just before the cut may never have arrived.
        let _ = delivery.ack().await;
        delivery = receive(&mut slot).await;
    }
    assert_eq!(id(&delivery), "after");
    assert!(begun.elapsed() < BACK_WITHIN, "back after {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_publication_confirmed_before_a_cut_is_in_the_queue() {
    let ns = TestNamespace::new();
    let relay = Relay::start(&ns).await;
    let link = relay.link(&ns);
    within("a connection", link.up()).await;
    let publisher = Publisher::start(&link, 2);
    let (mut confirmed, mut again) = (0, 0);
    for round in 0..6 {
        let batch = (0..500).map(|n| ticket(&ns.main(), &format!("{round}-{n}"))).collect();
        let publishing = tokio::spawn({
            let publisher = publisher.clone();
            async move { publisher.publish(batch).await }
        });
        if round % 2 == 1 {
            relay.cut();
        }
        let answers = within("every answer", publishing).await.unwrap();
        confirmed += answers.iter().filter(|answer| answer.is_ok()).count();
        // The link may not have noticed the cut yet.
        let noticing = async {
            while publisher.publish_one(ticket(&ns.main(), &format!("{round}"))).await.is_err() {
                link.up().await;
            }
        };
        within("a publication", noticing).await;
        again += 1;
    }
    let ready = ns.link().await.depth(&ns.main()).await.unwrap().ready;
    let there = confirmed + again;
    assert!(ready as usize >= there, "{there} confirmed, {ready} in the queue");
    assert!(confirmed >= 1_500, "only {confirmed} confirmed");
}
