//! Lock keys: the registry of ranges, the keys of jobs, and the formulas of other systems.
//!
//! Method: the command `sexton` and the store's functions, on databases of their own; the rows are looked at from outside.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod applying;
mod assigning;
mod checking;
mod deriving;
mod importing;
mod migrating;
mod removing;

use serde_json::Value;
use sexton_tests::database::TestDatabase;

use crate::cli::{Ended, sexton_on};

/// A platform's database, and files.
struct Fixture {
    db: TestDatabase,
    folder: tempfile::TempDir,
}

impl Fixture {
    async fn new() -> Self {
        let db = TestDatabase::create().await.unwrap();
        Self { db, folder: tempfile::tempdir().unwrap() }
    }

    async fn run(&self, args: &[&str]) -> Ended {
        sexton_on(&self.db, args).await
    }

    /// The document that a command prints first.
    async fn json(&self, args: &[&str], code: i32) -> Value {
        let text = self.run(&[&["--json"], args].concat()).await.expect(code).text();
        let mut documents = serde_json::Deserializer::from_str(&text).into_iter();
        documents.next().unwrap().unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Applies jobs with these keys, such as `("billing.run", "lock_key = 7")`.
    async fn apply(&self, jobs: &[(&str, &str)]) -> Ended {
        let job = |(name, more): &(&str, &str)| {
            format!("[[job]]\nname = \"{name}\"\ntask = \"t\"\n{more}\n\n")
        };
        let file = self.file("jobs.toml", &jobs.iter().map(job).collect::<String>());
        self.run(&["jobs", "apply", "-f", &file]).await
    }

    /// The jobs with a key, as `name key`, by name.
    async fn keys(&self) -> Vec<String> {
        let reading = "SELECT name || ' ' || lock_key FROM sexton.jobs
                       WHERE lock_key IS NOT NULL AND deleted_at IS NULL ORDER BY name";
        sqlx::query_scalar(reading).fetch_all(self.db.pool()).await.unwrap()
    }

    /// The ranges, as `service first keys`, by their numbers.
    async fn ranges(&self) -> Vec<String> {
        let reading =
            "SELECT service || ' ' || first_key || ' ' || keys FROM sexton.lock_key_ranges
                       ORDER BY first_key";
        sqlx::query_scalar(reading).fetch_all(self.db.pool()).await.unwrap()
    }

    async fn count(&self, what: &'static str) -> i64 {
        sqlx::query_scalar(what).fetch_one(self.db.pool()).await.unwrap()
    }
}

const ASSIGNMENTS: &str =
    "SELECT count(*) FROM sexton.operator_actions WHERE action = 'assign_keys'";
