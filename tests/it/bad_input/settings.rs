//! Invalid settings: the program names all of them at once, and starts nothing.

use sexton_tests::platform::{Platform, Program};

use super::DEADLINE;

/// Waits for the refusal: status 2, a line for each of these beginnings, no secret.
async fn refuses(mut program: Program, beginnings: &[&str]) {
    let status = program.exit(DEADLINE).await;
    let log = program.log();
    assert_eq!(status.code(), Some(2), "{log}");
    let headline = format!("{} problems in the environment variables:", beginnings.len());
    assert_eq!(log.lines().next(), Some(headline.as_str()), "{log}");
    for beginning in beginnings {
        assert!(
            log.lines().any(|line| line.trim_start().starts_with(beginning)),
            "{beginning:?} is missing: {log}"
        );
    }
    assert_eq!(log.lines().count(), beginnings.len() + 1, "{log}");
    assert!(!log.contains("hunter2"), "a password is shown: {log}");
}

#[tokio::test]
async fn a_worker_with_many_wrong_settings_names_all_of_them_at_once() {
    let platform = Platform::new().await.unwrap();
    let wrong = [
        ("DATABASE_URL", "mysql://app:hunter2@db/sexton"),
        ("AMQP_URL", "amqp://app:hunter2@"),
        ("SEXTON_NAMESPACE", "cron"),
        ("DB_POOL_SIZE", "0"),
        ("HEALTH_ADDR", "everywhere"),
        ("LOG_FORMAT", "xml"),
        ("WORKER_POOLS", "default,Bad Pool"),
        ("WORKER_SLOTS", "many"),
        ("LEASE_MS", "-5"),
        ("WORKER_TASK", "/etc/tasks.toml"),
        ("SEXTON_PASSWORD", "hunter2"),
    ];
    let worker = platform.start_worker("w1", &wrong).unwrap();
    let beginnings = [
        "DATABASE_URL: ",
        "AMQP_URL: ",
        "SEXTON_NAMESPACE = \"cron\": ",
        "DB_POOL_SIZE = \"0\": ",
        "HEALTH_ADDR = \"everywhere\": ",
        "LOG_FORMAT = \"xml\": ",
        "WORKER_POOLS = \"default,Bad Pool\": ",
        "WORKER_SLOTS = \"many\": ",
        "LEASE_MS = \"-5\": ",
        "WORKER_TASK: no such setting; did you mean WORKER_TASKS?",
        "SEXTON_PASSWORD: no such setting; `--help` lists them all",
    ];
    refuses(worker, &beginnings).await;
}

#[tokio::test]
async fn a_scheduler_with_many_wrong_settings_names_all_of_them_at_once() {
    let platform = Platform::new().await.unwrap();
    let wrong = [
        ("AMQP_URL", "http://app:hunter2@rabbit"),
        ("CRON_MAX_RETRIES", "-1"),
        ("CRON_RETRY_DELAY_MULTIPLIER", "0.5"),
        ("SHUTDOWN_GRACE_MS", "soon"),
        ("RETENTION_DAYS", "0"),
        ("CRON_JOB", "{}"),
    ];
    let scheduler = platform.start_scheduler("s1", &wrong).unwrap();
    let beginnings = [
        "AMQP_URL: ",
        "CRON_MAX_RETRIES = \"-1\": ",
        "CRON_RETRY_DELAY_MULTIPLIER = \"0.5\": ",
        "SHUTDOWN_GRACE_MS = \"soon\": ",
        "RETENTION_DAYS = \"0\": ",
        "CRON_JOB: no such setting; did you mean CRON_JOBS?",
    ];
    refuses(scheduler, &beginnings).await;
}

#[tokio::test]
async fn a_scheduler_with_a_wrong_job_in_its_environment_names_job_and_field() {
    let platform = Platform::new().await.unwrap();
    let jobs =
        r#"{"nightly":{"schedule":"61 * * * *"},"hourly":{"schedule":"0 * * * *","lock":3}}"#;
    let mut scheduler = platform.start_scheduler("s1", &[("CRON_JOBS", jobs)]).unwrap();
    let status = scheduler.exit(DEADLINE).await;
    let log = scheduler.log();
    assert_eq!(status.code(), Some(2), "{log}");
    for word in ["CRON_JOBS", "nightly", "61", "hourly", "lock"] {
        assert!(log.contains(word), "{word:?} is missing: {log}");
    }
}
