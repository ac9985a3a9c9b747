//! Tasks that are handlers of a user's program (`tests/src/bin/handlers.rs`): how they end, what they are
//! given, and what they leave.

mod interruption;
mod outcomes;
mod schemas;
mod transactions;
mod transfers;

use serde_json::Value;
use sexton_tests::platform::{Platform, Program};

use super::{FINAL_TIMEOUT, by_hand, count, until};

/// A platform with a worker of handlers to come, and a table that counts effects.
struct Shop {
    platform: Platform,
    _scheduler: Program,
}

impl Shop {
    /// `job` is added to the definition of the jobs `a.obey`, `a.transfer`, `a.statements`,
    /// `a.careless`.
    async fn new(job: &str) -> Self {
        let platform = Platform::new().await.unwrap();
        let effects = "CREATE TABLE effects (key text)";
        sqlx::raw_sql(effects).execute(platform.store().pool()).await.unwrap();
        let one = |task| by_hand(&format!("a.{task}"), task, job);
        let jobs = ["obey", "transfer", "statements", "careless"].map(one).concat();
        platform.apply(&jobs).await.unwrap();
        let scheduler = platform.start_scheduler("s1", &[]).unwrap();
        Self { platform, _scheduler: scheduler }
    }

    fn worker(&self, env: &[(&str, &str)]) -> Program {
        self.platform.start_handlers("w1", &[&[("WORKER_SLOTS", "1")], env].concat()).unwrap()
    }

    /// Triggers `a.<task>` with these params; its id.
    async fn trigger(&self, task: &str, params: &str) -> String {
        let job = format!("a.{task}");
        let args = ["jobs", "trigger", &job, "--params", params];
        self.platform.sexton_json(&args).await["id"].as_str().unwrap().to_owned()
    }

    /// Triggers `a.obey` with this order.
    async fn order(&self, what: &str) -> String {
        self.trigger("obey", &format!(r#"{{"do": "{what}"}}"#)).await
    }

    async fn cancel(&self, id: &str) {
        let done = self.platform.sexton(&["executions", "cancel", id]).await;
        assert!(done.status.success(), "{done}");
    }

    /// Lets those go on that wait for the file `release`.
    fn release(&self) {
        std::fs::write(self.platform.folder().join("release"), "").unwrap();
    }

    async fn until(&self, what: &str, wanted: i64) {
        until(&self.platform, what, wanted).await;
    }

    async fn count(&self, what: &str) -> i64 {
        count(&self.platform, what).await
    }

    async fn show(&self, id: &str) -> Value {
        self.platform.sexton_json(&["executions", "show", id]).await
    }
}
