//! Goal: whatever a server does, the attempt ends in time, is judged by the answer, and leaves no
//! connection behind.
//!
//! Method: a real server on a real socket for each test, whose behaviour the test writes down.

mod answers;
mod encrypted;
mod ends;
mod server;

use std::future::Future;
use std::sync::Arc;

use serde_json::json;
use tokio::time::timeout;
use uuid::Uuid;

use self::server::Server;
use super::*;
use crate::executor::{HostInstant, TaskSupervisor};
use crate::secret::SecretRef;

/// How long anything may take before a test fails.
const DEADLINE: Duration = Duration::from_secs(30);

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.expect("in time")
}

/// A request to the server, which is allowed although it is here.
fn to(server: &Server) -> HttpTask {
    HttpTask {
        url: Url::parse(&format!("http://{}/charges?dry=1", server.address)).unwrap(),
        method: Method::POST,
        headers: Vec::new(),
        timeout: DEADLINE,
        max_response: 64 * 1024,
        allowed: true,
    }
}

fn executor(spec: HttpTask) -> HttpExecutor {
    let variables = [("TOKEN", "Bearer hunter2"), ("LINES", "a\nb")];
    let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
    // What dates in the answers are counted from.
    let clock = || "1994-11-06T08:49:00Z".parse().unwrap();
    let host = HttpHost::new(SecretSource::new(variables), Arc::new(clock));
    HttpExecutor::new(Arc::new(host), spec)
}

fn task(attempt: u32) -> TaskRun {
    let scheduled_for = "2025-12-12T08:00:00Z".parse().unwrap();
    TaskRun {
        execution_id: Uuid::from_u128(7),
        attempt,
        job: "billing.charge".to_owned(),
        target: None,
        execution_key: "cron-2025-12-12T08:00:00Z".to_owned(),
        scheduled_for,
        deadline: scheduled_for,
        idempotency_key: "billing.charge:cron-2025-12-12T08:00:00Z".to_owned(),
        params: json!({"customer": 4891, "name": "Zoë"}),
        timeout: DEADLINE,
    }
}

fn long_lease() -> (TaskSupervisor, TaskControl) {
    TaskSupervisor::new(HostInstant::now() + 2 * DEADLINE)
}

async fn run(spec: HttpTask) -> TaskEnd {
    run_task(spec, &task(1)).await
}

async fn run_task(spec: HttpTask, task: &TaskRun) -> TaskEnd {
    let (_supervisor, control) = long_lease();
    in_time(executor(spec).run(task, control)).await
}

fn lines(end: &TaskEnd, stream: Stream) -> Vec<&str> {
    let lines = end.output.lines.iter().filter(|line| line.stream == stream);
    lines.map(|line| line.text.as_str()).collect()
}

/// Class, message and whether it is retried.
fn failure(end: &TaskEnd) -> (&str, &str, bool) {
    match &end.outcome {
        Outcome::Retry { class, message, .. } | Outcome::Failed { class, message } => {
            (class, message, true)
        }
        Outcome::Permanent { class, message } => (class, message, false),
        other => panic!("not a failure: {other:?}"),
    }
}
