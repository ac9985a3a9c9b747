//! Goal: with every behaviour of a server, the attempt ends in time, its outcome follows from the response, and
//! no connection stays behind.
//!
//! Method: a real server on a real socket for each test, which defines the server's behaviour.

mod answers;
mod encrypted;
mod ends;

use std::sync::Arc;

use serde_json::json;
use sexton_peers::http::{Act, Server};
use sexton_peers::in_time;

use super::*;
use crate::executor::test_support::{LONG_TIMEOUT, failure, lines, long_lease};
use sexton_outbound::secret::SecretRef;

/// Returns a request to the server, whose loopback address is allowed.
fn to(server: &Server) -> HttpTask {
    to_url(&format!("http://{}/charges?dry=1", server.address))
}

fn to_url(url: &str) -> HttpTask {
    HttpTask {
        url: Url::parse(url).unwrap(),
        method: Method::POST,
        headers: Vec::new(),
        timeout: LONG_TIMEOUT,
        max_response: 64 * 1024,
        allowed: true,
    }
}

fn executor(spec: HttpTask) -> HttpExecutor {
    executor_trusting(TlsClient::default(), spec)
}

fn executor_trusting(tls: TlsClient, spec: HttpTask) -> HttpExecutor {
    let variables = [("TOKEN", "Bearer hunter2"), ("LINES", "a\nb")];
    let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
    // The instant from which dates in the responses are counted.
    let clock = || "1994-11-06T08:49:00Z".parse().unwrap();
    let host = HttpHost::new(SecretSource::new(variables), Arc::new(clock), tls);
    HttpExecutor::new(Arc::new(host), spec)
}

fn task(attempt: u32) -> TaskRun {
    crate::executor::test_support::task(attempt, json!({"customer": 4891, "name": "Zoë"}))
}

async fn run(spec: HttpTask) -> TaskEnd {
    run_task(spec, &task(1)).await
}

async fn run_task(spec: HttpTask, task: &TaskRun) -> TaskEnd {
    let (_supervisor, control) = long_lease();
    in_time(executor(spec).run(task, control)).await
}
