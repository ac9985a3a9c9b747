//! Tasks that speak to others: real workers, and small real servers that do what they should not.

mod encrypted;
mod mails;
mod requests;

use serde_json::Value;
use sexton_tests::platform::{Platform, Program};

use super::{FINAL_TIMEOUT, by_hand, count, until};

/// What a secret of these tests is.
const SECRET: &str = "token-4711";
/// The variable that the worker has it in.
const SECRET_OF_THE_WORKER: (&str, &str) = ("PEER_TOKEN", SECRET);

/// At once, and as often as the tests need.
const IMMEDIATE_RETRY: &str = "retry = { delay = \"0s\" }";
/// The first timeout parks.
const ONE_TIMEOUT: &str = "retry = { max_timeouts = 1 }";

/// A platform with a scheduler, and one worker with one slot.
struct Scene {
    platform: Platform,
    _scheduler: Program,
    _worker: Program,
}

impl Scene {
    /// `tasks` are names and what stands in the catalogue beneath them; for each there is a job
    /// `a.<name>` with `job` in its definition. `env` is the worker's.
    async fn new(tasks: &[(&str, String)], job: &str, env: &[(&str, &str)]) -> Self {
        let mut platform = Platform::new().await.unwrap();
        let entries = tasks.iter().map(|(name, entry)| format!("[tasks.{name}]\n{entry}\n"));
        platform.catalogue(&entries.collect::<String>());
        let jobs = tasks.iter().map(|(name, _)| by_hand(&format!("a.{name}"), name, job));
        platform.apply(&jobs.collect::<String>()).await.unwrap();
        let scheduler = platform.start_scheduler("s1", &[]).unwrap();
        let env = [&[("WORKER_SLOTS", "1"), SECRET_OF_THE_WORKER], env].concat();
        let worker = platform.start_worker("w1", &env).unwrap();
        Self { platform, _scheduler: scheduler, _worker: worker }
    }

    /// Triggers the job of the task; the execution.
    async fn trigger(&self, task: &str) -> String {
        let trigger = ["jobs", "trigger", &format!("a.{task}")];
        let answer = self.platform.sexton_json(&trigger).await;
        answer["id"].as_str().unwrap().to_owned()
    }

    /// Waits for the execution's state, and what `sexton executions show` tells then.
    async fn ends(&self, id: &str, state: &str) -> Value {
        let row = format!("sexton.executions WHERE id = '{id}' AND state = '{state}'");
        until(&self.platform, &row, 1).await;
        self.platform.sexton_json(&["executions", "show", id]).await
    }

    /// Triggers the task and waits until it is parked; its only attempt's class and message.
    async fn parked(&self, task: &str) -> (String, String) {
        let id = self.trigger(task).await;
        let shown = self.ends(&id, "failed").await;
        let attempts = shown["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 1, "{shown}");
        let text_of = |field: &str| attempts[0][field].as_str().unwrap().to_owned();
        (text_of("error_class"), text_of("error_message"))
    }

    /// Whether this stands anywhere in the database, or a worker has logged it.
    async fn is_stored(&self, text: &str) -> bool {
        let pool = self.platform.store().pool();
        let tables =
            "SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables
                      WHERE table_schema IN ('public', 'sexton') AND table_type = 'BASE TABLE'";
        let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(pool).await.unwrap();
        assert!(tables.len() > 5, "{tables:?}");
        for table in tables {
            let rows = format!("{table} AS one WHERE one::text LIKE '%{text}%'");
            if count(&self.platform, &rows).await > 0 {
                return true;
            }
        }
        self.platform.logs().contains(text)
    }
}
