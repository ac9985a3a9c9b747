//! When a retry begins: through the delay queues, with delays that are none of their lengths.

use std::collections::BTreeMap;

use sexton_tests::platform::Platform;

use super::{by_hand, count, until};

/// Delays and the most stays in delay queues that they take.
const DELAYS: [(&str, f64, f64); 4] =
    [("1s500ms", 1.5, 3.0), ("2s300ms", 2.3, 4.0), ("7s", 7.0, 4.0), ("11s200ms", 11.2, 5.0)];
/// Retries at once, by the main queue: what a ticket's way takes on this machine, at this moment.
const IMMEDIATE_RETRIES: usize = 6;

#[tokio::test]
async fn a_retry_begins_within_a_second_after_it_is_due_and_never_before() {
    let mut platform = Platform::new().await.unwrap();
    let first_fails = "[ $SEXTON_ATTEMPT -gt 1 ]";
    platform
        .catalogue(&format!("[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"{first_fails}\"]\n"));
    let job = |name: &str, delay: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\ntask = \"work\"\nretry = {{ delay = \"{delay}\", jitter = 0.0 }}\n"
        )
    };
    let mut jobs = job("at.once", "0s");
    for (number, (delay, ..)) in DELAYS.iter().enumerate() {
        jobs += &job(&format!("delayed.n{number}"), delay);
    }
    platform.apply(&jobs).await.unwrap();
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    for number in 0..DELAYS.len() {
        platform.sexton(&["jobs", "trigger", &format!("delayed.n{number}")]).await;
    }
    // Before, beside and after them.
    for number in 0..IMMEDIATE_RETRIES {
        platform.sexton(&["jobs", "trigger", "at.once"]).await;
        let all = "sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
                   WHERE j.name = 'at.once' AND e.state = 'succeeded'";
        until(&platform, all, number as i64 + 1).await;
    }
    let all = (DELAYS.len() + IMMEDIATE_RETRIES) as i64;
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 2", all).await;

    // By the database's clock: the end of the first attempt is what the delay counts from.
    let late: Vec<(String, f64)> = sqlx::query_as(
        "SELECT j.name, extract(epoch FROM b.opened_at - a.finished_at)::float8
                - j.retry_delay_ms / 1000.0::float8
         FROM sexton.all_attempts a JOIN sexton.all_attempts b USING (execution_id)
         JOIN sexton.executions e ON e.id = execution_id JOIN sexton.jobs j ON j.id = e.job_id
         WHERE a.number = 1 AND b.number = 2",
    )
    .fetch_all(platform.store().pool())
    .await
    .unwrap();
    println!("MEASURED seconds after the due instant: {late:.3?}");
    assert!(late.iter().all(|(_, late)| *late >= 0.0), "before it was due: {late:?}");
    let way = late.iter().filter(|(name, _)| name == "at.once").map(|(_, late)| *late);
    let way = way.fold(0.0, f64::max);
    let late: BTreeMap<String, f64> = late.into_iter().collect();
    for (number, (delay, _, stays)) in DELAYS.into_iter().enumerate() {
        let late = late[&format!("delayed.n{number}")];
        // Every stay in a delay queue ends with one such way. On an idle machine it is milliseconds.
        let most = 1.0 + stays * way;
        assert!(late < most, "{delay}: {late:.3} s late; one way takes {way:.3} s here");
    }
}

#[tokio::test]
async fn retry_settings_of_the_job_override_the_catalogue_and_the_worker() {
    let mut platform = Platform::new().await.unwrap();
    let fails = "command = [\"/bin/false\"]";
    platform.catalogue(&format!(
        "[tasks.with_retry]\n{fails}\nretry = {{ max_retries = 2, delay = \"0s\" }}\n[tasks.plain]\n{fails}\n"
    ));
    let jobs = [
        by_hand("of.job", "with_retry", "retry = { max_retries = 0 }"),
        by_hand("of.catalogue", "with_retry", ""),
        by_hand("of.worker", "plain", "retry = { delay = \"0s\" }"),
    ];
    platform.apply(&jobs.concat()).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let _worker = platform.start_worker("w1", &[("CRON_MAX_RETRIES", "1")]).unwrap();
    for (job, attempts) in [("of.job", 1), ("of.catalogue", 3), ("of.worker", 2)] {
        let done = platform.sexton(&["jobs", "trigger", job]).await;
        assert!(done.status.success(), "{done}");
        let of_job = format!(
            "sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id AND j.name = '{job}'"
        );
        until(&platform, &format!("{of_job} WHERE e.state = 'failed'"), 1).await;
        let of_attempts = format!("{of_job} JOIN sexton.all_attempts a ON a.execution_id = e.id");
        assert_eq!(count(&platform, &of_attempts).await, attempts, "{job}");
    }
}
