//! The values of each job, with `METRICS_PER_JOB`.

use sexton_tests::platform::Platform;
use sqlx::AssertSqlSafe;

use super::{Scrape, run};
use crate::process::{FINAL_TIMEOUT, by_hand, count, until};

/// Schedulers read the database often here, and each job.
const PER_JOB: [(&str, &str); 2] = [("METRICS_INTERVAL_MS", "100"), ("METRICS_PER_JOB", "true")];

const TASKS: &str = "[tasks.good]\ncommand = [\"true\"]\n
    [tasks.bad]\ncommand = [\"/bin/sh\", \"-c\", \"test -e repaired\"]\nretry = { max_retries = 0 }\n";

fn series(name: &str, job: &str) -> String {
    format!("sexton_job_{name}{{job=\"{job}\"}}")
}

#[tokio::test]
async fn each_job_has_its_last_success_its_next_firing_and_its_failures_in_a_row() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(TASKS);
    let yearly = "[[job]]\nname = \"a.yearly\"\ntask = \"good\"\nschedule = \"0 3 1 1 *\"\n";
    let jobs = [yearly.to_owned(), by_hand("b.bad", "bad", ""), by_hand("c.paused", "good", "")];
    platform.apply(&jobs.concat()).await.unwrap();
    run(&platform, &["jobs", "pause", "c.paused", "--reason", "still"]).await;
    let mut scheduler = platform.start_scheduler("s1", &PER_JOB).unwrap();
    let mut without = platform.start_scheduler("s2", &[PER_JOB[0]]).unwrap();
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    for program in [&mut scheduler, &mut without, &mut worker] {
        program.ready().await;
    }
    for _ in 0..2 {
        run(&platform, &["jobs", "trigger", "b.bad"]).await;
    }
    run(&platform, &["jobs", "trigger", "a.yearly"]).await;
    until(&platform, "sexton.executions WHERE state = 'failed'", 2).await;
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 1).await;

    let seconds = async |instant: &str| -> i64 {
        let query = format!("SELECT round(extract(epoch FROM {instant}))::bigint");
        let pool = platform.store().pool();
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(pool).await.unwrap()
    };
    let success =
        seconds("(SELECT finished_at FROM sexton.executions WHERE state = 'succeeded')").await;
    let next = seconds("(SELECT next_fire_at FROM sexton.jobs WHERE name = 'a.yearly')").await;
    let scrape = async |wanted: &[(String, i64)]| {
        let look = async || {
            let scrape = Scrape::of(&scheduler).await;
            let agrees = wanted.iter().all(|(series, value)| scrape.value(series) == *value);
            agrees.then_some(scrape)
        };
        platform.eventually("the values of each job", FINAL_TIMEOUT, look).await
    };
    let wanted = [
        (series("last_success_timestamp_seconds", "a.yearly"), success),
        (series("next_firing_timestamp_seconds", "a.yearly"), next),
        (series("consecutive_failures", "a.yearly"), 0),
        (series("consecutive_failures", "b.bad"), 2),
    ];
    let found = scrape(&wanted).await;
    for absent in [
        series("last_success_timestamp_seconds", "b.bad"),
        series("next_firing_timestamp_seconds", "b.bad"),
        series("next_firing_timestamp_seconds", "c.paused"),
        series("consecutive_failures", "_other"),
    ] {
        assert!(!found.0.contains_key(&absent), "{absent}");
    }
    assert!(found.0.contains_key(&series("consecutive_failures", "c.paused")));
    let names: Vec<String> = Scrape::of(&without).await.names().map(str::to_owned).collect();
    assert!(names.iter().all(|name| !name.starts_with("sexton_job_")), "{names:?}");

    // A success ends the row of failures.
    std::fs::write(platform.folder().join("repaired"), "").unwrap();
    run(&platform, &["jobs", "trigger", "b.bad"]).await;
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 2).await;
    scrape(&[(series("consecutive_failures", "b.bad"), 0)]).await;
    assert_eq!(count(&platform, "sexton.executions WHERE state = 'failed'").await, 2);
}

/// 1,004 jobs: four are beyond the bound, and the worst of their values stands for them.
#[tokio::test]
async fn jobs_beyond_the_bound_are_one_series_that_shows_the_worst() {
    let platform = Platform::new().await.unwrap();
    let jobs = (0..1_000).map(|number| by_hand(&format!("m.job{number:04}"), "good", ""));
    let late = ["z.first", "z.later", "z.never", "z.paused"].map(|name| {
        let schedule = match name {
            "z.first" => "schedule = \"0 3 1 1 *\"\n",
            "z.later" => "schedule = \"0 3 2 1 *\"\n",
            "z.paused" => "every = \"1s\"\npaused = true\n",
            _ => "",
        };
        format!("[[job]]\nname = \"{name}\"\ntask = \"good\"\n{schedule}")
    });
    platform.apply(&jobs.chain(late).collect::<String>()).await.unwrap();
    // What ran: an old success of one, a newer one of the other, and three failures in a row of the third.
    sqlx::query(
        "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool, params,
             idempotency_key, claimed_by, claimed_at, relay_after, finished_at, ticket_published_at)
         SELECT gen_random_uuid(), j.id, n::text, now(), CASE j.name WHEN 'z.never' THEN 'failed' ELSE 'succeeded' END, 'good',
             'default', '{}', n::text, 't:1', now() - n * interval '1 minute', now(),
             date_trunc('second', now()) - interval '1 hour' * CASE j.name WHEN 'z.first' THEN 2 ELSE 1 END, now()
         FROM sexton.jobs j, generate_series(1, 3) n
         WHERE j.name = 'z.never' OR j.name IN ('z.first', 'z.later') AND n = 1",
    )
    .execute(platform.store().pool())
    .await
    .unwrap();
    let (success, next): (i64, i64) = sqlx::query_as(
        "SELECT (SELECT extract(epoch FROM min(finished_at)) FROM sexton.executions WHERE state = 'succeeded')::bigint,
                extract(epoch FROM next_fire_at)::bigint FROM sexton.jobs WHERE name = 'z.first'",
    )
    .fetch_one(platform.store().pool())
    .await
    .unwrap();
    let mut one = platform.start_scheduler("s1", &PER_JOB).unwrap();
    let mut two = platform.start_scheduler("s2", &PER_JOB).unwrap();
    for program in [&mut one, &mut two] {
        program.ready().await;
    }
    for program in [&one, &two] {
        let look = async || {
            let scrape = Scrape::of(program).await;
            let other = |name| scrape.value(&series(name, "_other"));
            let worst = (
                other("last_success_timestamp_seconds"),
                other("next_firing_timestamp_seconds"),
                other("consecutive_failures"),
            );
            (worst == (success, next, 3)).then_some(scrape)
        };
        let found = platform.eventually("the worst of the others", FINAL_TIMEOUT, look).await;
        let failures = found.0.keys().filter(|key| key.starts_with("sexton_job_consecutive"));
        assert_eq!(failures.count(), 1_001);
        assert!(found.value("sexton_series_dropped_total") >= 12, "three values of four jobs");
        assert!(!found.0.contains_key(&series("consecutive_failures", "z.first")));
    }
}
