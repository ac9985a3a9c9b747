//! Heartbeats from their row to the watcher: order, retries, limits, and addresses that do not delay each other.

use std::time::Duration;

use serde_json::json;
use sexton_outbound::channel::send::Sender;
use sexton_peers::http::{Act, Server};
use sexton_scheduler::alerts::heartbeat_delivery::{HeartbeatReport, HeartbeatSender};
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_store::alerts::claim::ClaimFilter;
use sexton_store::heartbeats::claim::{ClaimedHeartbeats, claim};
use sexton_store::heartbeats::undelivered;
use sexton_tests::factory::NewJob;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Fixture, at, environment};

impl Fixture {
    /// A job that reports to this URL.
    async fn reporting(&self, name: &str, url: serde_json::Value) -> Uuid {
        let job = NewJob::new(name).insert(self.db.pool()).await.unwrap().get();
        let all = ["start", "success", "failure"];
        let heartbeat = json!({"url": url, "on": all, "allow_private": true});
        sqlx::query("UPDATE sexton.jobs SET heartbeat = $2 WHERE id = $1")
            .bind(job)
            .bind(heartbeat)
            .execute(self.db.pool())
            .await
            .unwrap();
        job
    }

    /// A job that reports to this server.
    pub(super) async fn reporting_to(&self, name: &str, server: &Server) -> Uuid {
        self.reporting(name, format!("http://{}/{name}", server.address).into()).await
    }

    /// A heartbeat that waits.
    pub(super) async fn heartbeat(&self, job: Uuid, event: &str, seconds: i64) {
        sqlx::query(
            "INSERT INTO sexton.heartbeats (job_id, execution_id, attempt, event, address, created_at, due_at)
             SELECT id, gen_random_uuid(), 1, $2, sexton.heartbeat_address(heartbeat), $3, $3 FROM sexton.jobs WHERE id = $1",
        )
        .bind(job)
        .bind(event)
        .bind(at(seconds))
        .execute(self.db.pool())
        .await
        .unwrap();
    }

    /// 10,050 heartbeats of the beginning, which is more than one batch, to an address to which nothing is sent now, so that no claim
    /// looks at them.
    async fn more_than_a_batch_too_old(&self) {
        let waits = self.reporting("b.waits", json!("https://hc.example/b")).await;
        for statement in [
            "UPDATE sexton.heartbeat_addresses SET next_send_at = $2::timestamptz + interval '30 days'
             WHERE address = 'https://hc.example' AND $1 IS NOT NULL",
            "INSERT INTO sexton.heartbeats (job_id, execution_id, attempt, event, address, created_at, due_at)
             SELECT $1, gen_random_uuid(), 1, 'success', 'https://hc.example', $2, $2 FROM generate_series(1, 10050)",
        ] {
            let query = sqlx::query(statement).bind(waits).bind(at(0));
            query.execute(self.db.pool()).await.unwrap();
        }
    }

    fn heartbeat_sender(&self, limit: Duration) -> HeartbeatSender {
        let sender = Sender::new(environment(), sexton_tls::TlsClient::default()).within(limit);
        HeartbeatSender::new(self.db.other_store().unwrap(), sender, CancellationToken::new())
    }

    /// One round of the heartbeat sender at an instant.
    pub(super) async fn beat(&self, seconds: i64) -> HeartbeatReport {
        let sender = self.heartbeat_sender(Duration::from_secs(10));
        sender.run_once(Some(at(seconds))).await.unwrap()
    }

    /// The heartbeats in the order in which they were written, as `event state tries`.
    async fn heartbeats(&self) -> Vec<String> {
        self.texts(
            "SELECT event || ' ' || state || ' ' || tries FROM sexton.heartbeats ORDER BY id",
        )
        .await
    }
}

#[tokio::test]
async fn a_start_that_is_not_accepted_holds_up_the_end_of_its_job_and_no_other() {
    let f = Fixture::new().await;
    let answer = |status| Act::answer(status, "", "");
    let mut server = Server::start(vec![answer("404 Not Found"), answer("200 OK")]).await;
    let (bad, good) =
        (f.reporting_to("a.bad", &server).await, f.reporting_to("b.good", &server).await);
    f.heartbeat(bad, "start", 0).await;
    assert_eq!(f.beat(0).await, HeartbeatReport { failed: 1, ..HeartbeatReport::default() });
    assert!(server.request().await.head.starts_with("POST /a.bad/start?rid="));
    f.heartbeat(bad, "success", 1).await;
    f.heartbeat(good, "success", 1).await;
    assert_eq!(f.beat(10).await.sent, 1);
    assert!(server.request().await.head.starts_with("POST /b.good?rid="));
    assert_eq!(f.heartbeats().await, ["start pending 1", "success pending 0", "success sent 1"]);
    // A refusal waits for five minutes, with its jitter.
    assert_eq!(f.beat(220).await.sent, 0);
    assert_eq!(f.beat(400).await.sent, 2);
    assert!(server.request().await.head.starts_with("POST /a.bad/start?rid="));
    assert!(server.request().await.head.starts_with("POST /a.bad?rid="));
}

#[tokio::test]
async fn a_heartbeat_is_tried_for_an_hour_then_dropped_and_reported_all_the_while() {
    let f = Fixture::new().await;
    let mut server = Server::answering("500 Internal Server Error", "", "").await;
    let job = f.reporting_to("a.b", &server).await;
    f.heartbeat(job, "start", 0).await;
    let undelivered =
        async |seconds| undelivered::list(f.db.store(), Some(at(seconds))).await.unwrap();
    let mut tries = 0;
    for seconds in (0..3_600).step_by(30) {
        tries += f.beat(seconds).await.failed;
    }
    assert!((8..=18).contains(&tries), "{tries} tries");
    for _ in 0..tries {
        server.request().await;
    }
    assert_eq!(undelivered(599).await, []);
    let found = undelivered(601).await;
    assert_eq!((found[0].job.as_str(), found[0].since), ("a.b", at(0)));
    assert!(found[0].error.contains("500"), "{found:?}");
    let report = f.beat(3_600).await;
    assert_eq!(report, HeartbeatReport { dropped: 1, ..HeartbeatReport::default() });
    assert_eq!(f.heartbeats().await, [format!("start dropped {tries}")]);
    assert_eq!(undelivered(7_200).await.len(), 1, "none has arrived since");
    // One that arrives ends it.
    let works = Server::answering("200 OK", "", "").await;
    let url = json!(format!("http://{}/", works.address));
    sqlx::query("UPDATE sexton.jobs SET heartbeat = jsonb_set(heartbeat, '{url}', $1)")
        .bind(url)
        .execute(f.db.pool())
        .await
        .unwrap();
    f.heartbeat(job, "success", 7_200).await;
    assert_eq!(f.beat(7_200).await.sent, 1);
    assert_eq!(undelivered(9_000).await, []);
}

#[tokio::test]
async fn an_address_that_hangs_delays_no_other_and_has_one_claim_under_way() {
    let f = Fixture::new().await;
    let mut hangs = Server::start(vec![Act::Hang]).await;
    let mut works = Server::answering("200 OK", "", "").await;
    for number in 0..20 {
        let job = f.reporting_to(&format!("hangs.n{number:02}"), &hangs).await;
        f.heartbeat(job, "start", 0).await;
        f.heartbeat(job, "success", 0).await;
        let job = f.reporting_to(&format!("works.n{number:02}"), &works).await;
        f.heartbeat(job, "start", 0).await;
        f.heartbeat(job, "success", 0).await;
    }
    let sender = f.heartbeat_sender(Duration::from_mins(5));
    let round = tokio::spawn(async move { sender.run_once(Some(at(1))).await });
    for _ in 0..16 {
        assert!(hangs.request().await.head.contains("/start?"), "a start comes before its end");
    }
    for _ in 0..40 {
        works.request().await;
    }
    assert!(hangs.saw_nothing_more(), "a claim has sixteen heartbeats of as many jobs");
    round.abort();
}

#[tokio::test]
async fn an_address_that_fails_gets_one_heartbeat_at_a_time_until_it_answers() {
    let f = Fixture::new().await;
    let mut acts = vec![Act::answer("500 Internal Server Error", "", ""); 4];
    acts.push(Act::answer("200 OK", "", ""));
    let server = Server::start(acts).await;
    for number in 0..3 {
        let job = f.reporting_to(&format!("a.n{number}"), &server).await;
        f.heartbeat(job, "success", 0).await;
    }
    assert_eq!(f.beat(0).await.failed, 3);
    assert_eq!(f.beat(1).await.failed, 0, "the address waits");
    assert_eq!(f.beat(20).await.failed, 1, "one tries whether it is back");
    assert_eq!(f.beat(90).await.sent, 3);
    let clear = "SELECT count(*) FROM sexton.heartbeat_addresses WHERE failures = 0 AND failing_since IS NULL AND next_send_at IS NULL";
    assert_eq!(f.number(clear).await, 1);
}

#[tokio::test]
async fn of_a_job_a_hundred_heartbeats_wait_and_a_hundred_are_kept() {
    let f = Fixture::new().await;
    let server = Server::answering("200 OK", "", "").await;
    let job = f.reporting_to("a.b", &server).await;
    for second in 0..130 {
        f.heartbeat(job, "success", second).await;
    }
    let report = f.beat(130).await;
    assert_eq!((report.dropped, report.sent), (30, 100), "the oldest ones are dropped");
    let oldest =
        "SELECT extract(epoch FROM min(created_at))::bigint - 1800000000 FROM sexton.heartbeats";
    assert_eq!(f.number(oldest).await, 30);
    for second in 131..140 {
        f.heartbeat(job, "success", second).await;
    }
    assert_eq!(f.beat(140).await.sent, 9);
    assert_eq!(f.number("SELECT count(*) FROM sexton.heartbeats").await, 100);
}

#[tokio::test]
async fn what_a_dead_scheduler_had_claimed_is_sent_when_its_lease_is_over() {
    let f = Fixture::new().await;
    let server = Server::answering("200 OK", "", "").await;
    let job = f.reporting_to("a.b", &server).await;
    f.heartbeat(job, "success", 0).await;
    let filter = ClaimFilter { busy: &[], allows_failing: true };
    let claimed = claim(f.db.store(), filter, Some(at(0))).await.unwrap();
    assert!(matches!(claimed, ClaimedHeartbeats::Delivery(claim) if claim.heartbeats.len() == 1));
    assert_eq!(f.beat(59).await.sent, 0, "it may still be sending");
    assert_eq!(f.beat(61).await.sent, 1);
    assert_eq!(f.heartbeats().await, ["success sent 2"]);
}

#[tokio::test]
async fn a_url_may_be_a_secret_of_the_schedulers_and_is_in_no_error() {
    let f = Fixture::new().await;
    // A variable that holds something else than a URL, and one that is missing.
    for (name, variable) in [("a.wrong", "MAIL"), ("a.missing", "NO_SUCH_VARIABLE")] {
        let job = f.reporting(name, json!({"env": variable})).await;
        f.heartbeat(job, "failure", 0).await;
    }
    assert_eq!(f.beat(0).await.failed, 2);
    let errors = f.texts("SELECT last_error FROM sexton.heartbeats ORDER BY id").await;
    assert_eq!(errors[0], "the heartbeat's URL is none of an HTTP server");
    assert!(errors[1].contains("NO_SUCH_VARIABLE"), "{errors:?}");
    assert!(!errors.join("").contains("hunter2"), "{errors:?}");
}

#[tokio::test]
async fn what_waits_for_a_job_whose_heartbeat_was_taken_away_is_dropped() {
    let f = Fixture::new().await;
    let mut server = Server::answering("200 OK", "", "").await;
    let job = f.reporting_to("a.b", &server).await;
    f.heartbeat(job, "start", 0).await;
    f.heartbeat(job, "success", 0).await;
    f.sql("UPDATE sexton.jobs SET heartbeat = NULL").await;
    assert_eq!(f.beat(1).await, HeartbeatReport { dropped: 2, ..HeartbeatReport::default() });
    assert!(server.saw_nothing_more());
}

#[tokio::test]
async fn what_is_too_old_is_dropped_batch_by_batch_while_a_round_is_busy() {
    let f = Fixture::new().await;
    let mut hangs = Server::start(vec![Act::Hang]).await;
    let busy = f.reporting_to("a.busy", &hangs).await;
    f.heartbeat(busy, "start", 7_200).await;
    f.more_than_a_batch_too_old().await;
    let sender = f.heartbeat_sender(Duration::from_mins(2));
    let round = tokio::spawn(async move { sender.run_once(Some(at(7_200))).await.is_ok() });
    hangs.request().await;
    f.until_none("SELECT count(*) FROM sexton.heartbeats WHERE address = 'https://hc.example'")
        .await;
    assert!(!round.is_finished(), "the round has ended");
    round.abort();
}

#[tokio::test]
async fn a_full_batch_of_what_is_too_old_is_followed_by_the_next_at_once() {
    let f = Fixture::new().await;
    f.more_than_a_batch_too_old().await;
    let sender = f.heartbeat_sender(Duration::from_secs(10));
    for dropped in [10_000, 50, 0] {
        let report = sender.run_once(Some(at(7_200))).await.unwrap();
        assert_eq!(report, HeartbeatReport { dropped, ..HeartbeatReport::default() });
    }
}

#[tokio::test]
async fn a_claim_drops_what_is_too_old_instead_of_sending_it() {
    let f = Fixture::new().await;
    let mut server = Server::answering("200 OK", "", "").await;
    let (old, young) =
        (f.reporting_to("a.old", &server).await, f.reporting_to("b.young", &server).await);
    f.heartbeat(old, "start", 0).await;
    f.heartbeat(young, "start", 1).await;
    let filter = ClaimFilter { busy: &[], allows_failing: true };
    let claimed = claim(f.db.store(), filter, Some(at(3_600))).await.unwrap();
    let ClaimedHeartbeats::Delivery(claimed) = claimed else { panic!("{claimed:?}") };
    let jobs: Vec<Uuid> = claimed.heartbeats.iter().map(|one| one.job).collect();
    assert_eq!((jobs, claimed.dropped), (vec![young], 1));
    assert_eq!(f.heartbeats().await, ["start dropped 0", "start pending 1"]);
    assert!(server.saw_nothing_more());
}

#[tokio::test]
async fn heartbeats_that_were_given_up_count_as_undelivered_for_a_day() {
    let f = Fixture::new().await;
    let job = f.reporting("a.b", json!("https://hc.example/a")).await;
    let undelivered = async |seconds| {
        let found = undelivered::list(f.db.store(), Some(at(seconds))).await.unwrap();
        found.into_iter().map(|one| (one.since - at(0)).num_seconds()).collect::<Vec<i64>>()
    };
    for (written, dropped) in [(0, 3_600), (7_200, 10_800)] {
        f.heartbeat(job, "success", written).await;
        sqlx::query("UPDATE sexton.heartbeats SET state = 'dropped', tries = 3, finished_at = $1 WHERE state = 'pending'")
            .bind(at(dropped))
            .execute(f.db.pool())
            .await
            .unwrap();
    }
    let day = 86_400;
    assert_eq!(undelivered(3_599 + day).await, [0]);
    assert_eq!(undelivered(3_600 + day).await, [7_200], "the first counts no more");
    assert_eq!(undelivered(10_799 + day).await, [7_200]);
    assert_eq!(undelivered(10_800 + day).await, [0; 0]);
    // One that still waits counts, however old it is.
    f.heartbeat(job, "success", 20_000).await;
    f.sql("UPDATE sexton.heartbeats SET tries = 1").await;
    assert_eq!(undelivered(20_000 + 2 * day).await, [20_000]);
}
