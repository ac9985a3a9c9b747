//! The examples that everybody begins with, run as they stand.

use sexton_peers::smtp::{Script, Server};
use sexton_tests::platform::Platform;

use super::until;
use crate::docs::{root, text};

/// The catalogue of the examples, from its folder, with a mail server of the test's.
fn catalogue(server: &Server) -> String {
    let smtp_url = format!("smtp://127.0.0.1:{}", server.port);
    let folder = format!("\"{}/examples/tasks/", root().display());
    let replacements = [("smtp://mailpit:1025", smtp_url.as_str()), ("\"tasks/", &folder)];
    replacements.iter().fold(text("examples/tasks.toml"), |catalogue, (theirs, ours)| {
        assert!(catalogue.contains(theirs), "{theirs} is not in it any more");
        catalogue.replace(theirs, ours)
    })
}

#[tokio::test]
async fn every_task_type_and_every_kind_of_job_of_the_examples_does_what_it_says() {
    let mut server = Server::start(Script::default()).await;
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(&catalogue(&server));
    platform.apply_file(&root().join("examples/jobs.toml")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let _worker = platform.start_worker("w1", &[]).unwrap();
    for (job, state, attempt) in [
        ("billing.monthlyInvoices", "succeeded", 1),
        ("reminders.weekdayMorning", "succeeded", 1),
        ("catalogue.rebuild", "succeeded", 1),
        ("example.flaky", "succeeded", 3),
        // Parked under the number of the attempt that a requeue would begin.
        ("example.broken", "failed", 4),
        ("example.repaired", "failed", 4),
    ] {
        let answer = platform.sexton_json(&["jobs", "trigger", job]).await;
        let id = answer["id"].as_str().unwrap().to_owned();
        let ended = |state, attempt| {
            format!(
                "sexton.executions WHERE id = '{id}' AND state = '{state}' AND attempt = {attempt}"
            )
        };
        until(&platform, &ended(state, attempt), 1).await;
        let logs = platform.sexton(&["executions", "logs", &id]).await.stdout;
        match job {
            "billing.monthlyInvoices" => {
                assert!(logs.contains("report of billing.monthlyInvoices"), "{logs}");
                assert!(logs.contains("target 25"), "{logs}");
            }
            "reminders.weekdayMorning" => {
                let mail = server.conversation().await;
                assert!(mail.contains("\nTo: team@example.com\n"), "{mail}");
                assert!(mail.contains("\nSubject: Due today\n"), "{mail}");
                assert!(mail.contains("\nThis is due: Due today.\n"), "{mail}");
            }
            "catalogue.rebuild" => {
                let shown = platform.sexton_json(&["executions", "show", &id]).await;
                assert_eq!(shown["result"], serde_json::json!({"seconds": 2}));
            }
            "example.repaired" => {
                let done = platform.sexton(&["failed", "requeue", &id]).await;
                assert!(done.status.success(), "{done}");
                until(&platform, &ended("succeeded", 4), 1).await;
            }
            "example.flaky" => assert!(logs.contains("attempt 3 of example.flaky"), "{logs}"),
            _ => assert!(logs.contains("the other system did not answer"), "{logs}"),
        }
    }
}
