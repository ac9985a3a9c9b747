//! A task catalogue that cannot be used: the worker does not start, and says what to correct.

use sexton_tests::platform::{Platform, Program};

use super::DEADLINE;

/// Waits until the worker has refused to start; its log must hold these words.
async fn refuses(mut worker: Program, words: &[&str]) {
    let status = worker.exit(DEADLINE).await;
    let log = worker.log();
    assert_eq!(status.code(), Some(1), "{log}");
    for word in words {
        assert!(log.contains(word), "{word:?} is missing: {log}");
    }
    assert!(log.lines().count() < 10, "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

#[tokio::test]
async fn a_worker_whose_catalogue_names_missing_programs_refuses_to_start_and_names_all_of_them() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(
        "[tasks.report]\ncommand = [\"/nowhere/generate\"]\n\n\
         [tasks.good]\ncommand = [\"/bin/true\"]\n\n\
         [tasks.refresh]\ncommand = [\"no-such-program\", \"--fast\"]\n\n\
         [tasks.folder]\ncommand = [\"/tmp\"]\n",
    );
    let worker = platform.start_worker("w1", &[]).unwrap();
    let words = [
        ".toml is not usable",
        "line 2: task `report`: `command`: the program /nowhere/generate does not exist",
        "line 8: task `refresh`: `command`: no program `no-such-program` in PATH: install it",
        "line 11: task `folder`: `command`: the program /tmp is not a file",
    ];
    refuses(worker, &words).await;
    let instances: i64 = sqlx::query_scalar("SELECT count(*) FROM sexton.instances")
        .fetch_one(platform.store().pool())
        .await
        .unwrap();
    assert_eq!(instances, 0, "a worker that did not start has no row");
}

#[tokio::test]
async fn a_worker_without_a_catalogue_refuses_to_start_and_names_the_setting() {
    let platform = Platform::new().await.unwrap();
    refuses(platform.start_worker("w1", &[]).unwrap(), &["WORKER_TASKS is not set"]).await;
    let missing = [("WORKER_TASKS", "/nowhere/tasks.toml")];
    let words = ["/nowhere/tasks.toml", "cannot be read", "No such file", "WORKER_TASKS"];
    refuses(platform.start_worker("w2", &missing).unwrap(), &words).await;
}
