//! Each value is compared with the rows that it counts.

use std::collections::BTreeSet;

use sexton_tests::platform::{Platform, Program};

use super::{Scrape, run};
use crate::process::{FINAL_TIMEOUT, by_hand, count, until};

/// How often schedulers read the database here.
const OFTEN: (&str, &str) = ("METRICS_INTERVAL_MS", "100");

struct Scene {
    platform: Platform,
    scheduler: Program,
    worker: Program,
}

impl Scene {
    async fn new() -> Self {
        let mut platform = Platform::new().await.unwrap();
        platform.catalogue(
            "[tasks.good]\ncommand = [\"true\"]\n[tasks.bad]\ncommand = [\"false\"]\nretry = { max_retries = 0 }\n",
        );
        let often = "[[job]]\nname = \"a.often\"\ntask = \"good\"\nevery = \"1s\"\n".to_owned();
        let jobs = [often, by_hand("a.good", "good", ""), by_hand("a.bad", "bad", "")];
        platform.apply(&jobs.concat()).await.unwrap();
        let mut scheduler = platform.start_scheduler("s1", &[OFTEN]).unwrap();
        let mut worker = platform.start_worker("w1", &[("WORKER_SLOTS", "3")]).unwrap();
        scheduler.ready().await;
        worker.ready().await;
        Self { platform, scheduler, worker }
    }

    /// The scrape of `program` once `condition` holds.
    async fn scrape(&self, program: &Program, condition: impl Fn(&Scrape) -> bool) -> Scrape {
        let scrape = async || Some(Scrape::of(program).await).filter(&condition);
        self.platform.eventually("the metrics say so", FINAL_TIMEOUT, scrape).await
    }
}

#[tokio::test]
async fn counters_and_gauges_agree_with_the_rows() {
    let scene = Scene::new().await;
    let platform = &scene.platform;
    for job in ["a.good", "a.good", "a.bad"] {
        run(platform, &["jobs", "trigger", job]).await;
    }
    until(platform, "sexton.executions WHERE state = 'failed'", 1).await;
    let several = async || {
        (count(platform, "sexton.executions WHERE state = 'succeeded'").await >= 5).then_some(())
    };
    platform.eventually("five executions", FINAL_TIMEOUT, several).await;
    run(platform, &["jobs", "pause", "a.often", "--reason", "enough"]).await;
    until(platform, "sexton.executions WHERE state NOT IN ('succeeded', 'failed')", 0).await;

    let succeeded = count(platform, "sexton.executions WHERE state = 'succeeded'").await;
    let fired =
        count(platform, "sexton.executions WHERE NOT own_key AND execution_key LIKE 'every-%'");
    let fired = fired.await;
    let ended = r#"sexton_attempts_total{pool="default",task_type="good",outcome="succeeded"}"#;
    let worker = scene.scrape(&scene.worker, |scrape| scrape.value(ended) == succeeded).await;
    for (series, value) in [
        (r#"sexton_attempts_total{pool="default",task_type="bad",outcome="error"}"#, 1),
        (r#"sexton_attempt_duration_seconds_count{pool="default",task_type="good"}"#, succeeded),
        (r#"sexton_queue_wait_seconds_count{pool="default"}"#, succeeded + 1),
        (r#"sexton_slots{pool="default",state="idle"}"#, 3),
        (r#"sexton_slots{pool="default",state="busy"}"#, 0),
        (r#"sexton_broker_connected{link="consuming"}"#, 1),
        (r#"sexton_broker_connected{link="publishing"}"#, 1),
    ] {
        assert_eq!(worker.value(series), value, "{series} of {worker:#?}");
    }
    let failed = r#"sexton_failed{pool="default"}"#;
    let scheduler = scene.scrape(&scene.scheduler, |scrape| {
        scrape.value(failed) == 1
            && scrape.value("sexton_unpublished_tickets") == 0
            && scrape.value(r#"sexton_executions{pool="default",state="running"}"#) == 0
    });
    let scheduler = scheduler.await;
    for (series, value) in [
        (r#"sexton_firings_total{disposition="claimed"}"#, fired),
        (r#"sexton_pool_slots{pool="default"}"#, 3),
        ("sexton_unaccounted_firings", 0),
    ] {
        assert_eq!(scheduler.value(series), value, "{series} of {scheduler:#?}");
    }
    let lags = scheduler.value("sexton_firing_lag_seconds_count");
    assert!(lags >= fired, "a lag for each firing, and for each trigger: {lags}");

    let id = platform.sexton_json(&["failed", "list"]).await["items"][0]["id"].to_string();
    let requeue = ["failed", "requeue", id.trim_matches('"'), "--reason", "once more"];
    run(platform, &requeue).await;
    let requeued = r#"sexton_requeued_total{how="single"}"#;
    scene.scrape(&scene.scheduler, |scrape| scrape.value(requeued) == 1).await;
}

/// A task that no worker serves keeps its execution pending, and the reconciler publishes its ticket again and again.
#[tokio::test]
async fn a_ticket_that_is_published_again_is_no_lag_of_a_firing() {
    let scene = Scene::new().await;
    let platform = &scene.platform;
    run(platform, &["jobs", "pause", "a.often", "--reason", "still"]).await;
    platform.apply(&by_hand("a.nobody", "nobody", "")).await.unwrap();
    run(platform, &["jobs", "trigger", "a.nobody"]).await;
    until(platform, "sexton.executions WHERE state <> 'succeeded'", 1).await;
    let published = |rev: i32| {
        format!(
            "sexton.executions WHERE ticket_published_at IS NOT NULL AND rev = {rev} AND state = 'pending'"
        )
    };
    until(platform, &published(1), 1).await;
    let lags = async || Scrape::of(&scene.scheduler).await.value("sexton_firing_lag_seconds_count");
    let before = lags().await;
    let again = "UPDATE sexton.executions SET ticket_published_at = NULL, rev = rev + 1, relay_after = now()
         WHERE state = 'pending'";
    sqlx::query(again).execute(platform.store().pool()).await.unwrap();
    until(platform, &published(2), 1).await;
    assert_eq!(lags().await, before);
}

#[tokio::test]
async fn every_scraped_name_is_declared_and_every_scheduler_answers_the_same_of_the_platform() {
    let scene = Scene::new().await;
    run(&scene.platform, &["jobs", "pause", "a.often", "--reason", "still"]).await;
    run(&scene.platform, &["jobs", "trigger", "a.bad"]).await;
    until(&scene.platform, "sexton.executions WHERE state = 'failed'", 1).await;
    let mut other = scene.platform.start_scheduler("s2", &[OFTEN]).unwrap();
    other.ready().await;
    let page = include_str!("../../../docs/reference/metrics.md");
    let declared: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name))
        .collect();
    let of_platform: BTreeSet<&str> = page
        .lines()
        .filter(|line| line.contains("| *platform* |"))
        .map(|line| line.strip_prefix("| `").unwrap().split_once('`').unwrap().0)
        .collect();
    let agreed = async || {
        let (one, two) = (Scrape::of(&scene.scheduler).await, Scrape::of(&other).await);
        let of_both = [one, two].map(|scrape| {
            for name in scrape.names() {
                assert!(declared.contains(name), "{name} is not declared");
            }
            let shared = scrape.0.into_iter().filter(|(series, _)| {
                let name = series.split('{').next().unwrap();
                // Ages grow from one reading to the next.
                of_platform.contains(name) && !name.ends_with("_seconds")
            });
            shared.collect::<Vec<_>>()
        });
        (of_both[0] == of_both[1] && of_both[0].len() >= 12).then_some(())
    };
    scene.platform.eventually("both answer the same", FINAL_TIMEOUT, agreed).await;
    for name in Scrape::of(&scene.worker).await.names() {
        assert!(declared.contains(name), "{name} is not declared");
    }
}
