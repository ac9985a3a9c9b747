//! Stories with real programs behind the console.

use std::time::Duration;

use serde_json::json;
use sexton_service::clock;
use sexton_tests::platform::{Platform, Program};

use super::play::site;
use super::story;

const DEADLINE: Duration = Duration::from_mins(1);
const JOBS: &str = r#"
[[job]]
name = "office.print"
every = "24h"
phase = "PHASE"
task = "print"
params = { pages = 2 }
retry = { max_retries = 0 }
misfire = { policy = "skip" }

[[job]]
name = "office.copy"
task = "print"
params = { pages = 1 }
retry = { max_retries = 0 }
"#;

/// The jobs. The one with a schedule fires twelve hours before and after now, so that it does not fire while a story runs at midnight.
fn jobs() -> String {
    const HALF_A_DAY_S: i64 = 12 * 3_600;
    let phase = (clock::now().timestamp() + HALF_A_DAY_S).rem_euclid(2 * HALF_A_DAY_S);
    JOBS.replace("PHASE", &format!("{phase}s"))
}

/// A platform whose task fails until there is paper, and wants a number of pages.
struct Office {
    server: Program,
    _worker: Program,
    _scheduler: Program,
    platform: Platform,
}

impl Office {
    async fn open(role: &str) -> Self {
        let mut platform = Platform::new().await.unwrap();
        let paper = platform.folder().join("paper");
        let script = format!("test -e {} || {{ echo no paper >&2; exit 1; }}", paper.display());
        let schema = r#"{ required = ["pages"], properties = { pages = { type = "integer" } } }"#;
        platform.catalogue(&format!(
            "[tasks.print]\ncommand = [\"sh\", \"-c\", \"{script}\"]\nparams_schema = {schema}\n"
        ));
        platform.apply(&jobs()).await.unwrap();
        let scheduler = platform.start_scheduler("s1", &[]).unwrap();
        let mut worker = platform.start_worker("w1", &[]).unwrap();
        let mut server = platform.start_server("console", &[("SERVE_LOCAL_ROLE", role)]).unwrap();
        worker.ready().await;
        server.ready().await;
        Self { server, _worker: worker, _scheduler: scheduler, platform }
    }

    fn site(&self) -> String {
        site(&self.server)
    }

    fn bring_paper(&self) {
        std::fs::write(self.platform.folder().join("paper"), "").unwrap();
    }

    /// Triggers a job, waits until it has failed, and returns the execution's id.
    async fn fail(&self, job: &str) -> String {
        let triggered = self.platform.sexton_json(&["jobs", "trigger", job]).await;
        let id = triggered["id"].as_str().unwrap().to_owned();
        let show = ["executions", "show", &*id];
        let failed = self.platform.eventually("it fails", DEADLINE, async || {
            let shown = self.platform.sexton_json(&show).await;
            (shown["state"] == "failed").then_some(())
        });
        failed.await;
        id
    }

    /// How many executions of a job are failed.
    async fn failed(&self, job: &str) -> usize {
        let items = self.platform.sexton_items(&["failed", "list", "--job", job]).await;
        items.as_array().unwrap().len()
    }
}

#[tokio::test]
async fn a_bulk_is_previewed_begun_with_a_canary_followed_and_stopped() {
    let office = Office::open("operator").await;
    for job in ["office.print", "office.print", "office.print", "office.copy"] {
        office.fail(job).await;
    }
    office.bring_paper();
    let done = story("bulk.js", &[&office.site(), "office.print", "3"]).await;
    if done.is_some() {
        let left = (office.failed("office.print").await, office.failed("office.copy").await);
        assert_eq!(left, (2, 1));
        let bulk = office.platform.sexton_json(&["bulks", "show", "1"]).await["bulk"].take();
        assert_eq!((&bulk["state"], &bulk["done"]), (&json!("stopped"), &json!(1)), "{bulk}");
    }
}

#[tokio::test]
async fn params_are_corrected_with_the_changes_shown_and_what_was_typed_is_never_lost() {
    let office = Office::open("editor").await;
    let id = office.fail("office.print").await;
    office.bring_paper();
    let failure = format!("/failed/{id}");
    story("edit.js", &[&office.site(), &failure, "pages", "2", "3"]).await;
}

#[tokio::test]
async fn a_job_is_run_with_other_params_backfilled_explained_paused_and_resumed() {
    let office = Office::open("operator").await;
    office.bring_paper();
    story("jobs.js", &[&office.site(), "office.print", "pages"]).await;
}
