//! Tasks that are statements: real workers, a real database, and whatever can go wrong between them.

mod failures;
mod interruption;
mod lost_commits;
mod transfers;

use serde_json::Value;
use sexton_tests::platform::{Platform, Program};

use super::{FINAL_TIMEOUT, by_hand, count, until};

/// A platform whose task type `work` is a statement, with a table that counts effects.
struct Bank {
    platform: Platform,
    _scheduler: Program,
}

impl Bank {
    /// `prepared` is run in the database before; `entry` stands in the catalogue, `job` in the job's
    /// definition.
    async fn new(prepared: &'static str, entry: &str, job: &str) -> Self {
        let mut platform = Platform::new().await.unwrap();
        let effects = "CREATE TABLE effects (key text, attempt text)";
        for statement in [effects, prepared] {
            sqlx::raw_sql(statement).execute(platform.store().pool()).await.unwrap();
        }
        platform.catalogue(&format!("[tasks.work]\n{entry}\n"));
        platform.apply(&by_hand("a.b", "work", job)).await.unwrap();
        let scheduler = platform.start_scheduler("s1", &[]).unwrap();
        Self { platform, _scheduler: scheduler }
    }

    fn worker(&self, env: &[(&str, &str)]) -> Program {
        self.platform.start_worker("w1", &[&[("WORKER_SLOTS", "1")], env].concat()).unwrap()
    }

    async fn trigger(&self, key: &str) {
        let done = self.platform.sexton(&["jobs", "trigger", "a.b", "--key", key]).await;
        assert!(done.status.success(), "{done}");
    }

    async fn until(&self, what: &str, wanted: i64) {
        until(&self.platform, what, wanted).await;
    }

    async fn count(&self, what: &str) -> i64 {
        count(&self.platform, what).await
    }

    /// The only execution, as `sexton executions show` tells it.
    async fn shown(&self) -> Value {
        let list = self.platform.sexton_items(&["executions", "list"]).await;
        let id = list[0]["id"].as_str().unwrap().to_owned();
        self.platform.sexton_json(&["executions", "show", &id]).await
    }

    /// Waits until sessions of the workers' tasks run something that holds `text`, or none does.
    async fn until_running(&self, text: &str, wanted: i64) {
        let what = format!(
            "pg_stat_activity WHERE datname = current_database() AND application_name LIKE
             'sexton worker % tasks' AND state = 'active' AND query LIKE '%{text}%'"
        );
        self.until(&what, wanted).await;
    }
}
