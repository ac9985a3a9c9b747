//! What the console costs among very many executions: how soon its pages and lists answer, and what open pages cost.
//!
//! The people, the server and PostgreSQL share the processors. Each latency counts from the instant at which a person asks, up to the
//! first byte of the answer.

mod connection;
mod people;
mod tabs;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use sexton_tests::failed::{Size, fill};
use sexton_tests::platform::{Platform, Program};
use sqlx::PgPool;

use self::connection::Connection;
use super::figures::Figures;
use super::resident_mb;

/// Anybody on this machine may do everything, as often as they like.
const SETTINGS: [(&str, &str); 2] =
    [("SERVE_LOCAL_ROLE", "admin"), ("SERVE_REQUESTS_PER_MINUTE", "0")];
/// Parameters that make a list of the API show something else.
const VARIANTS: [&str; 4] = [
    "/api/v1/failures?error_class=exit_3",
    "/api/v1/failures?text=declined",
    "/api/v1/failures?text=zanzibar",
    "/api/v1/executions?state=succeeded",
];
const DEADLINE: Duration = Duration::from_mins(1);

/// Measures among so many executions, a tenth of them failed, on a database of its own.
pub(super) async fn measure(
    database_server: &str,
    amqp_url: &str,
    executions: i64,
    figures: &mut Figures,
) -> Result<()> {
    let platform = Platform::on(database_server, amqp_url).await?;
    let pool = platform.store().pool();
    let size = Size { executions };
    fill(platform.store(), size, |rows| eprintln!("{rows} executions")).await?;
    let mut server = platform.start_server("serve", &SETTINGS)?;
    server.ready().await;
    let address = address(&server)?;
    let pages = pages(pool).await?;
    let addresses = [pages.clone(), lists(&address).await?].concat();
    let memory = |what: &str, figures: &mut Figures| {
        figures.add(
            format!("`sexton serve`, {what}"),
            format!("{:.1} MB resident", resident_mb(&server)?),
        );
        anyhow::Ok(())
    };
    memory("before", figures)?;
    tabs::measure(&address, pool, &server, figures).await?;
    people::measure(&address, &addresses, figures).await?;
    memory("after that", figures)?;
    pictures(&address, &pages, figures)?;
    server.terminate();
    server.exit(DEADLINE).await;
    Ok(())
}

/// Takes pictures of the pages among all those rows, if the variable `PICTURES` names a folder for them, and has each checked in a browser.
fn pictures(address: &str, pages: &[String], figures: &mut Figures) -> Result<()> {
    if std::env::var_os("PICTURES").is_none() {
        return Ok(());
    }
    let mut story = Command::new("sh");
    story.args(["tests/clients/browser/run.sh", "pages.js", &format!("http://{address}")]);
    story.args(pages);
    let outcome = if story.status()?.success() { "nothing found" } else { "faults found" };
    let what =
        "the pages in a browser, in light and dark, 360 and 1,440 pixels wide: faults and axe";
    figures.add(what, outcome);
    Ok(())
}

/// The pages, of rows that there are.
async fn pages(pool: &PgPool) -> Result<Vec<String>> {
    let one = async |query: &'static str| -> Result<String> {
        sqlx::query_scalar(query).fetch_one(pool).await.context(query)
    };
    let failed =
        one("SELECT execution_id::text FROM sexton.failures ORDER BY execution_id DESC LIMIT 1")
            .await?;
    let succeeded = one(
        "SELECT id::text FROM sexton.executions WHERE state = 'succeeded' ORDER BY id DESC LIMIT 1",
    )
    .await?;
    let group =
        one("SELECT fingerprint FROM sexton.failures ORDER BY execution_id DESC LIMIT 1").await?;
    let fixed = "/ /upcoming /jobs /jobs?contains=job1 /jobs?label=team%3Drare /jobs/team.job0 /jobs/team.job0/trigger /jobs/team.job0/backfill
        /executions/bulk?kind=cancel&job=team.job0 /failed?discarded=true /approvals /firings /executions /executions?state=succeeded
        /executions?job=team.job0 /executions?param=customer%3D77 /failed /failed?sort=oldest /failed?job=team.job0 /failed?error_class=exit_3
        /failed?text=declined /failed?text=zanzibar /failed?label=team%3Drare /failed?param=order.id%3D7 /failed?since=36h
        /failed/groups /failed/bulk?kind=requeue&job=team.job0 /bulks /incidents /monitors /checks /channels /workers /locks /flows
        /audit /me /settings /settings/accounts /settings/tokens /search?q=job1 /search?q=declined";
    let mut pages: Vec<String> = fixed.split_whitespace().map(str::to_owned).collect();
    pages.extend([
        format!("/failed/{failed}"),
        format!("/failed/{failed}/edit"),
        format!("/failed/groups/{group}"),
        format!("/executions/{succeeded}"),
    ]);
    Ok(pages)
}

/// The lists of the API, by its description.
async fn lists(address: &str) -> Result<Vec<String>> {
    let answer = Connection::open(address).await?.get("/api/v1/openapi.json").await?;
    let description: serde_json::Value = serde_json::from_slice(&answer.body)?;
    let paths = description["paths"].as_object().context("the description has paths")?;
    let is_list = |path: &str, operation: &serde_json::Value| {
        let parameters = operation["get"]["parameters"].as_array();
        let has_size =
            parameters.into_iter().flatten().any(|parameter| parameter["name"] == "limit");
        has_size && !path.contains('{')
    };
    let lists = paths.iter().filter(|(path, operation)| is_list(path, operation));
    let variants = VARIANTS.iter().map(|&path| path.to_owned());
    Ok(lists.map(|(path, _)| path.clone()).chain(variants).collect())
}

/// Where the server listens, by its log.
fn address(server: &Program) -> Result<String> {
    let log = server.log();
    let (_, rest) = log.split_once("the console is at http://").context("no address is logged")?;
    Ok(rest.split('/').next().context("no address is logged")?.to_owned())
}
