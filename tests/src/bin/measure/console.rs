//! What the console costs among very many executions: how soon its pages and lists answer, and what open pages cost.
//!
//! The people, the server and PostgreSQL share the processors. Each latency counts from the instant at which a person asks, up to the
//! first byte of the answer.

mod addresses;
mod connection;
mod people;
mod tabs;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use sexton_tests::failed::{PlatformRows, Size, fill, fill_platform_rows};
use sexton_tests::platform::{Platform, Program};

use self::addresses::Addresses;
use self::connection::Connection;
use super::figures::Figures;
use super::resident_mb;

/// Anybody on this machine may do everything, as often as they like.
const SETTINGS: [(&str, &str); 2] =
    [("SERVE_LOCAL_ROLE", "admin"), ("SERVE_REQUESTS_PER_MINUTE", "0")];
const DEADLINE: Duration = Duration::from_mins(1);

/// Measures among so many executions, a tenth of them failed, on a database of its own. Returns the goals that were missed.
pub(super) async fn measure(
    database_server: &str,
    amqp_url: &str,
    executions: i64,
    figures: &mut Figures,
) -> Result<Vec<String>> {
    let platform = Platform::on(database_server, amqp_url).await?;
    let pool = platform.store().pool();
    let size = Size { executions };
    fill(platform.store(), size, |rows| eprintln!("{rows} executions")).await?;
    fill_platform_rows(platform.store(), PlatformRows::LARGE).await?;
    let mut server = platform.start_server("serve", &SETTINGS)?;
    server.ready().await;
    let address = address(&server)?;
    let memory = |what: &str, figures: &mut Figures| {
        figures.add(
            format!("`sexton serve`, {what}"),
            format!("{:.1} MB resident", resident_mb(&server)?),
        );
        anyhow::Ok(())
    };
    memory("before", figures)?;
    let mut missed = tabs::measure(&address, pool, &server, figures).await?;
    let addresses = Addresses::read(&address, pool).await?;
    missed.extend(people::measure(&address, &addresses.all, figures).await?);
    missed.extend(people::measure_largest_preview(&address, figures).await?);
    memory("after that", figures)?;
    missed.extend(pictures(&address, &addresses.pages, figures)?);
    let verdict = if missed.is_empty() { "none".to_owned() } else { missed.join("; ") };
    figures.add("goals that were missed", verdict);
    server.terminate();
    server.exit(DEADLINE).await;
    Ok(missed)
}

/// Takes pictures of the pages among all those rows, if the variable `PICTURES` names a folder for them, and has each checked in a browser.
/// Returns the goal that was missed.
fn pictures(address: &str, pages: &[String], figures: &mut Figures) -> Result<Option<String>> {
    if std::env::var_os("PICTURES").is_none() {
        return Ok(None);
    }
    let mut story = Command::new("sh");
    story.args(["tests/clients/browser/run.sh", "pages.js", &format!("http://{address}")]);
    story.args(pages);
    let passed = story.status()?.success();
    let outcome = if passed { "nothing found" } else { "faults found" };
    let what =
        "the pages in a browser, in light and dark, 360 and 1,440 pixels wide: faults and axe";
    figures.add(what, outcome);
    Ok((!passed).then(|| "a browser found faults of the pages".to_owned()))
}

/// Where the server listens, by its log.
fn address(server: &Program) -> Result<String> {
    let log = server.log();
    let (_, rest) = log.split_once("the console is at http://").context("no address is logged")?;
    Ok(rest.split('/').next().context("no address is logged")?.to_owned())
}
