//! The dead man's switch: when it pings the outside watcher, and what keeps it silent.

use std::time::Duration;

use sexton_broker::Link;
use sexton_model::dead_man::{
    MAX_CHANNELS_FAIL, MAX_CLAIM_DELAY, MAX_HEARTBEAT_DELAY, MAX_PUBLISH_DELAY, MAX_SEND_DELAY,
};
use sexton_model::state::State;
use sexton_outbound::channel::send::Sender;
use sexton_peers::http::{Act, Server};
use sexton_scheduler::alerts::dead_man::{DeadManReport, DeadManSwitch};
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_store::heartbeats::expire::expire;
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::namespace::TestNamespace;

use super::{Fixture, at, environment};
use crate::scheduler::link_without_broker;

const PERIOD: Duration = Duration::from_mins(1);

/// A platform with a watcher, and a link to RabbitMQ.
struct Scene {
    f: Fixture,
    watcher: Server,
    namespace: TestNamespace,
    link: Link,
}

impl Scene {
    async fn new() -> Self {
        Self::watched_by(Server::answering("200 OK", "", "").await).await
    }

    async fn watched_by(watcher: Server) -> Self {
        let namespace = TestNamespace::new();
        let link = namespace.link().await;
        link.up().await.unwrap();
        Self { f: Fixture::new().await, watcher, namespace, link }
    }

    /// The switch of a scheduler.
    fn switch(&self, link: &Link) -> DeadManSwitch {
        let url = format!("http://{}/dead-man", self.watcher.address).parse().unwrap();
        let sender = Sender::new(environment(), sexton_tls::TlsClient::default());
        let store = self.f.db.other_store().unwrap();
        DeadManSwitch::new(store, link.clone(), sender, Some((url, PERIOD)))
    }

    /// A look of a scheduler that is connected.
    async fn look(&self, seconds: i64) -> DeadManReport {
        self.switch(&self.link).run_once(Some(at(seconds))).await.unwrap()
    }

    async fn pings(&self, seconds: i64) {
        assert_eq!(self.look(seconds).await, DeadManReport::Pinged, "at {seconds} s");
    }

    /// A look that finds this problem, and sends nothing.
    async fn is_silent(&mut self, seconds: i64, problem: &str) {
        while !self.watcher.saw_nothing_more() {}
        match self.look(seconds).await {
            DeadManReport::Silent(found) => assert!(found.contains(problem), "{found}"),
            report => panic!("{report:?} at {seconds} s, though {problem}"),
        }
        assert!(self.watcher.saw_nothing_more(), "a ping, though {problem}");
    }
}

fn seconds(limit: Duration) -> i64 {
    i64::try_from(limit.as_secs()).unwrap()
}

#[tokio::test]
async fn of_two_schedulers_that_look_at_the_same_instants_one_pings_in_each_period() {
    let mut scene = Scene::new().await;
    let (one, two) = (scene.switch(&scene.link), scene.switch(&scene.link));
    let mut pinged = Vec::new();
    for second in (0..=180).step_by(5) {
        let (a, b) = tokio::join!(one.run_once(Some(at(second))), two.run_once(Some(at(second))));
        for report in [a.unwrap(), b.unwrap()] {
            assert!(!matches!(report, DeadManReport::Silent(_)), "{report:?}");
            if report == DeadManReport::Pinged {
                pinged.push(second);
            }
        }
    }
    assert_eq!(pinged, [0, 55, 110, 165], "each nine tenths of a period after the last, or later");
    for _ in pinged {
        assert!(scene.watcher.request().await.head.starts_with("POST /dead-man "));
    }
    assert!(scene.watcher.saw_nothing_more());
}

#[tokio::test]
async fn late_firings_and_tickets_silence_it_until_they_are_claimed_and_published() {
    let mut scene = Scene::new().await;
    scene.pings(-100).await;
    let job = NewJob::new("a.late").cron("* * * * *", at(0));
    let job = job.insert(scene.f.db.pool()).await.unwrap();
    let limit = seconds(MAX_CLAIM_DELAY);
    scene.pings(limit).await;
    scene.is_silent(limit + 60, "claims").await;
    scene.f.sql("UPDATE sexton.jobs SET next_fire_at = next_fire_at + interval '1 day'").await;
    scene.pings(limit + 70).await;

    let due = 1_000;
    let execution = NewExecution::new(job, State::Pending, at(due));
    execution.insert(scene.f.db.pool()).await.unwrap();
    let limit = due + seconds(MAX_PUBLISH_DELAY);
    scene.pings(limit).await;
    scene.is_silent(limit + 60, "not published").await;
    scene.f.sql("UPDATE sexton.executions SET ticket_published_at = next_attempt_at").await;
    scene.pings(limit + 70).await;
}

#[tokio::test]
async fn notifications_and_heartbeats_that_nobody_tries_silence_it_until_they_are_sent() {
    let mut scene = Scene::new().await;
    let receiver = Server::answering("200 OK", "", "").await;
    scene.f.webhook("hook", &receiver).await;
    scene.f.opened("a.b", "hook", 0).await;
    let limit = seconds(MAX_SEND_DELAY);
    scene.pings(limit).await;
    scene.is_silent(limit + 60, "a notification").await;
    assert_eq!(scene.f.run(limit + 60).await.accepted, 1);
    scene.pings(limit + 70).await;

    let job = scene.f.reporting_to("a.b", &receiver).await;
    scene.f.heartbeat(job, "start", 1_000).await;
    let limit = 1_000 + seconds(MAX_HEARTBEAT_DELAY);
    scene.pings(limit).await;
    scene.is_silent(limit + 60, "a heartbeat of a job").await;
    assert_eq!(scene.f.beat(limit + 60).await.sent, 1);
    scene.pings(limit + 70).await;
}

#[tokio::test]
async fn a_refused_heartbeat_and_what_waits_behind_it_do_not_silence_it() {
    let mut scene = Scene::new().await;
    let answer = |status| Act::answer(status, "", "");
    let refuses = Server::start(vec![answer("404 Not Found")]).await;
    let broken = Server::start(vec![answer("500 Internal Server Error")]).await;
    let job = scene.f.reporting_to("a.refused", &refuses).await;
    let failing = scene.f.reporting_to("b.failing", &broken).await;
    let behind = scene.f.reporting_to("c.behind", &broken).await;
    scene.f.heartbeat(job, "start", 0).await;
    scene.f.heartbeat(failing, "start", 0).await;
    assert_eq!(scene.f.beat(0).await.failed, 2);
    scene.f.heartbeat(job, "success", 1).await;
    scene.f.heartbeat(behind, "success", 1).await;
    let tries = "SELECT count(*) FROM sexton.heartbeats WHERE state = 'pending' AND tries = 0";
    assert_eq!(
        scene.f.number(tries).await,
        2,
        "one behind the refused one, one at the address that fails"
    );
    scene.pings(3_000).await;
    // The first one is dropped. The next has been due for an hour, but could not be sent before.
    expire(scene.f.db.store(), Some(at(3_600))).await.unwrap();
    assert_eq!(scene.f.number(tries).await, 2);
    scene.pings(3_600).await;
    let limit = 3_600 + seconds(MAX_HEARTBEAT_DELAY);
    scene.pings(limit).await;
    scene.is_silent(limit + 60, "a heartbeat of a job").await;
}

#[tokio::test]
async fn what_waits_behind_a_notification_that_is_tried_again_does_not_silence_it() {
    let mut scene = Scene::new().await;
    let answer = |status| Act::answer(status, "", "");
    let receiver = Server::start(vec![answer("404 Not Found"), answer("200 OK")]).await;
    scene.f.webhook("hook", &receiver).await;
    let (incident, _) = scene.f.opened("a.b", "hook", 0).await;
    assert_eq!(scene.f.run(0).await.failed, 1);
    // The channel works, and the refused message waits for at least 225 s. Another one of its incident waits behind it.
    scene.f.opened("c.d", "hook", 20).await;
    assert_eq!(scene.f.run(20).await.accepted, 1);
    scene.f.notification(incident, "hook", "acknowledged", 21).await;
    assert_eq!(
        scene.f.states().await,
        ["opened pending 1", "opened sent 1", "acknowledged pending 0"]
    );
    scene.pings(21 + seconds(MAX_SEND_DELAY) + 60).await;
    // Now both could have been sent, for long.
    let limit = 375 + seconds(MAX_SEND_DELAY);
    scene.is_silent(limit + 60, "a notification").await;
    // The channel had failed and works again; what waited meanwhile is on its way.
    sqlx::query("UPDATE sexton.channels SET last_sent_at = $1")
        .bind(at(1_000))
        .execute(scene.f.db.pool())
        .await
        .unwrap();
    scene.pings(1_000 + seconds(MAX_SEND_DELAY)).await;
    scene.is_silent(1_000 + seconds(MAX_SEND_DELAY) + 60, "a notification").await;
    // Somebody has changed it, so that it may work.
    scene.f.sql("UPDATE sexton.channels SET updated_at = last_sent_at + interval '600 s'").await;
    scene.pings(1_600 + seconds(MAX_SEND_DELAY)).await;
}

#[tokio::test]
async fn one_channel_that_fails_does_not_silence_it_and_all_of_them_do() {
    let mut scene = Scene::new().await;
    let dead = Server::answering("500 Internal Server Error", "", "").await;
    scene.f.webhook("dead", &dead).await;
    scene.f.webhook("works", &dead).await;
    scene.f.opened("a.b", "dead", 0).await;
    assert_eq!(scene.f.run(0).await.failed, 1);
    scene.f.notification(scene.f.incident("c.d").await, "dead", "opened", 1).await;
    let limit = seconds(MAX_CHANNELS_FAIL);
    scene.pings(limit + 60).await;
    // The other one fails as well, from now on.
    scene.f.notification(scene.f.incident("e.f").await, "works", "opened", 2_000).await;
    scene.f.run(2_000).await;
    scene.pings(2_000 + limit).await;
    scene.is_silent(2_000 + limit + 60, "no channel accepts").await;
}

#[tokio::test]
async fn a_ping_that_was_not_accepted_is_tried_again_within_the_period() {
    let refused = Act::answer("503 Service Unavailable", "", "");
    let acts = vec![refused.clone(), refused, Act::answer("200 OK", "", "")];
    let mut scene = Scene::watched_by(Server::start(acts).await).await;
    let mut pinged = Vec::new();
    for second in (0..=90).step_by(2) {
        match scene.look(second).await {
            DeadManReport::NotDue => {}
            DeadManReport::Pinged => pinged.push((second, true)),
            DeadManReport::Silent(problem) => {
                assert!(problem.contains("did not accept"), "{problem}");
                assert!(!problem.contains("/dead-man"), "the URL is a secret: {problem}");
                pinged.push((second, false));
            }
        }
    }
    // An eighth of the period, and a little less, lies between two tries.
    assert_eq!(pinged, [(0, false), (8, false), (16, true), (70, true)]);
    for _ in pinged {
        scene.watcher.request().await;
    }
    assert!(scene.watcher.saw_nothing_more());
}

#[tokio::test]
async fn a_scheduler_without_rabbitmq_keeps_no_other_from_pinging() {
    let mut scene = Scene::new().await;
    let cut_off = scene.switch(&link_without_broker(&scene.namespace));
    let connected = scene.switch(&scene.link);
    let mut pinged = Vec::new();
    for second in (0..=240).step_by(5) {
        // The one that cannot ping always comes first.
        let report = cut_off.run_once(Some(at(second))).await.unwrap();
        assert_ne!(report, DeadManReport::Pinged, "it is cut off");
        if connected.run_once(Some(at(second))).await.unwrap() == DeadManReport::Pinged {
            pinged.push(second);
        }
    }
    assert_eq!(pinged, [10, 75, 140, 205], "each at most one look late");
    for _ in pinged {
        scene.watcher.request().await;
    }
    assert!(scene.watcher.saw_nothing_more());
}

#[tokio::test]
async fn without_an_address_nothing_is_judged_or_recorded() {
    let scene = Scene::new().await;
    let sender = Sender::new(environment(), sexton_tls::TlsClient::default());
    let store = scene.f.db.other_store().unwrap();
    let switch = DeadManSwitch::new(store, scene.link.clone(), sender, None);
    for second in [0, 60, 600] {
        assert_eq!(switch.run_once(Some(at(second))).await.unwrap(), DeadManReport::NotDue);
    }
    let untouched = "SELECT count(*) FROM sexton.dead_man
                     WHERE pinged_at IS NULL AND tried_at IS NULL AND problem IS NULL";
    assert_eq!(scene.f.number(untouched).await, 1);
}
