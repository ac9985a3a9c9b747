//! `make demo-clients`: services in other languages enqueue, and a worker runs what they enqueued.
//!
//! Each language has its service of `examples/`, which writes an order and enqueues its charge in one transaction. What a
//! line says of an execution is the answer of the SQL functions.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use sexton_client::{Client, State};
use sexton_servers::Servers;
use uuid::Uuid;

use super::cluster::{Cluster, example};
use super::output::{self, Output, Tone};
use crate::example_service::{ExampleService, LANGUAGES, ORDERS_TABLE, Start};
use crate::platform::Platform;

/// From the commit of an order to the end of its charge; a slow machine is allowed for.
const CHARGE_DEADLINE: Duration = Duration::from_mins(1);

/// Starts a platform and places an order with the service of each language. Whether all charges succeeded, and at least
/// one of the languages is installed.
pub(super) async fn perform(servers: &Servers, output: &Output) -> Result<bool> {
    let mut cluster = Cluster::build(servers, "clients").await?;
    cluster.start(Some(&example("orders/tasks.toml"))).await?;
    let platform = &cluster.platform;
    platform.apply_file(&example("orders/jobs.toml").canonicalize()?).await?;
    sqlx::raw_sql(ORDERS_TABLE).execute(platform.store().pool()).await?;
    output.say("started", Tone::Plain, "schedulers and workers, with the job billing.charge");
    let (mut orders, mut succeeded) = (0, 0);
    for language in LANGUAGES {
        output.head(language);
        output.say("starting", Tone::Plain, "its service; the first time this installs packages …");
        match ExampleService::start(platform, language).await? {
            Start::Missing(what) => {
                output.say("not shown", Tone::Warning, &format!("{language}: {what}"));
            }
            Start::Running(service) => {
                orders += 1;
                succeeded += i32::from(place_order(platform, output, language, &service).await?);
            }
        }
    }
    output::write("");
    let is_complete = orders > 0 && succeeded == orders;
    let (verb, tone) = if is_complete { ("complete", Tone::Good) } else { ("FAILED", Tone::Bad) };
    output.say(verb, tone, &format!("{succeeded} of {orders} orders were charged"));
    Ok(is_complete)
}

/// Places an order and waits for its charge; whether that succeeded.
async fn place_order(
    platform: &Platform,
    output: &Output,
    language: &str,
    service: &ExampleService,
) -> Result<bool> {
    let answer = service.post("/orders", &json!({"cents": 4200})).await?;
    ensure!(answer.status == 201, "status {}, {}\n{}", answer.status, answer.body, service.log());
    let id = answer.body["execution"].as_str().context("the answer names no execution")?;
    let id: Uuid = id.parse()?;
    let order = answer.body["order"].to_string();
    let text = format!("billing.charge, with order {} in one transaction", order.trim_matches('"'));
    output.print_event(output.elapsed(), "enqueued", Tone::Busy, (language, id), &text);
    let mut connection = platform.store().pool().acquire().await?;
    let charge = Client::new().wait_for(&mut connection, id, CHARGE_DEADLINE).await?;
    let has_succeeded = charge.state() == State::Succeeded;
    let tone = if has_succeeded { Tone::Good } else { Tone::Bad };
    let text = match (&charge.result, &charge.error_message) {
        (Some(result), _) => format!("attempt {}, with the result {result}", charge.attempt),
        (None, error) => {
            format!("attempt {}: {}", charge.attempt, error.as_deref().unwrap_or("no result"))
        }
    };
    output.print_event(output.elapsed(), &charge.state_name, tone, (language, id), &text);
    Ok(has_succeeded)
}
