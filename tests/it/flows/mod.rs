//! Flows: executions that depend on the ends of others.
//!
//! Method: flows are begun by the SQL function that callers use, or by a claim of a job that has one; their members end by
//! the statements of workers and operators; the rows are looked at from outside.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod beginning;
mod callers;
mod console;
mod ends;
mod fan_in;
mod jobs;
mod races;
mod results;
mod whole;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sexton_model::id::ExecutionId;
use sexton_model::retry::Decision;
use sqlx::PgPool;
use uuid::Uuid;

use crate::store::{Fixture as Rows, at};

/// A database with the job `the.job`, and flows of its executions.
struct Fixture {
    rows: Rows,
}

impl Fixture {
    async fn new() -> Self {
        Self { rows: Rows::new().await }
    }

    fn pool(&self) -> &PgPool {
        self.rows.db.pool()
    }

    /// Begins a flow of members such as `("load", ["extract"], {"when": "all_done"})`.
    async fn begin(&self, members: &[(&str, &[&str], Value)]) -> Uuid {
        let members: Vec<Value> = members.iter().map(member).collect();
        let definition = json!({"name": "the flow", "members": members});
        let beginning = sqlx::query_scalar("SELECT flow_id FROM sexton.flow($1)");
        beginning.bind(definition).fetch_one(self.pool()).await.unwrap()
    }

    /// The execution of a member.
    async fn id(&self, member: &str) -> ExecutionId {
        let reading =
            sqlx::query_scalar("SELECT execution_id FROM sexton.flow_members WHERE name = $1");
        ExecutionId::new(reading.bind(member).fetch_one(self.pool()).await.unwrap())
    }

    /// The state of each member; one that waits for others is `blocked`.
    async fn states(&self) -> BTreeMap<String, String> {
        let reading = "SELECT m.name, CASE WHEN e.state = 'pending' AND NOT m.decided THEN 'blocked' ELSE e.state END
                       FROM sexton.flow_members m JOIN sexton.executions e ON e.id = m.execution_id";
        let rows: Vec<(String, String)> =
            sqlx::query_as(reading).fetch_all(self.pool()).await.unwrap();
        rows.into_iter().collect()
    }

    async fn expect(&self, expected: &[(&str, &str)]) {
        let expected: BTreeMap<String, String> = expected
            .iter()
            .map(|(name, state)| ((*name).to_owned(), (*state).to_owned()))
            .collect();
        assert_eq!(self.states().await, expected);
    }

    /// Number of members that have not ended, and whether the flow has.
    async fn open(&self) -> (i32, bool) {
        let reading = "SELECT open, ended_at IS NOT NULL FROM sexton.flows";
        sqlx::query_as(reading).fetch_one(self.pool()).await.unwrap()
    }

    /// A worker opens a member's ticket and settles it.
    async fn settle(&self, member: &str, verdict: Decision) {
        let id = self.id(member).await;
        let held = self.rows.opened(id, 1, 0).await;
        self.rows.settle(held, verdict, 1).await;
    }

    async fn succeed(&self, member: &str) {
        self.settle(member, Decision::Succeed).await;
    }

    async fn run(&self, statement: &'static str) {
        sqlx::query(statement).execute(self.pool()).await.unwrap();
    }
}

fn member((name, after, more): &(&str, &[&str], Value)) -> Value {
    let mut one = json!({"name": name, "job": "the.job"});
    if !after.is_empty() {
        one["after"] = json!(after);
    }
    for (field, value) in more.as_object().into_iter().flatten() {
        one[field] = value.clone();
    }
    one
}

/// A member that waits for others.
const fn after<'a>(name: &'a str, upstream: &'a [&'a str]) -> (&'a str, &'a [&'a str], Value) {
    (name, upstream, Value::Null)
}

#[expect(clippy::unnecessary_wraps, reason = "the statements take the instant as an option")]
fn later(seconds: i64) -> sexton_store::Now {
    Some(at(seconds))
}
