//! How many pings a second `sexton serve` records, and how soon it answers them.
//!
//! Pings of several hundred checks are offered at a fixed rate over connections that stay open, and the latency of each counts from
//! the instant at which it was to be sent. The generator, the server and PostgreSQL share the processors. No scheduler
//! runs, so that every recorded ping is still there in the end and can be counted.

mod generator;

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sexton_tests::platform::{Platform, Program};

use super::figures::{Figures, Spread};
use super::meter::{Meter, machine};
use super::resident_mb;
use super::schedules::time_of;
use generator::{Load, offer};

/// Checks that are pinged in turn.
const CHECKS: usize = 500;
/// Connections that stay open; each has one request under way.
const CONNECTIONS: usize = 500;
/// The share of the pings that is offered first, for so long, and not measured.
const WARM_UP: (u32, Duration) = (5, Duration::from_secs(3));
/// How long a lower rate is looked at, if the first is too high.
const STEP_TIME: Duration = Duration::from_secs(10);
/// The p99 that is to be kept, in milliseconds.
const P99_MS: f64 = 50.0;
/// Documented limit of a check; 10,000 pings a second are 1,200 a minute for each.
const PINGS_PER_MINUTE: &str = "1000000";
const DEADLINE: Duration = Duration::from_mins(1);

/// Measures at this rate, on a database of its own; at lower ones too, if it is too much.
pub(super) async fn measure(
    database_server: &str,
    amqp_url: &str,
    (per_second, time): (u32, Duration),
    figures: &mut Figures,
) -> Result<()> {
    let platform = Platform::on(database_server, amqp_url).await?;
    let checks = checks(&platform).await?;
    let settings = [("PINGS_PER_MINUTE", PINGS_PER_MINUTE)];
    let mut server = platform.start_server("serve", &settings)?;
    server.ready().await;
    let address = address(&server)?;
    let load = |per_second, time| Load { per_second, time, connections: CONNECTIONS };
    let (part, warm_up) = WARM_UP;
    let _warm = offer(&address, &checks, load((per_second / part).max(1), warm_up)).await?;
    figures.add("`sexton serve`, before", format!("{:.1} MB resident", resident_mb(&server)?));

    let mut tried = per_second;
    let mut tried_time = time;
    loop {
        let bench =
            Bench { platform: &platform, server: &server, address: &address, checks: &checks };
        let is_kept = bench.run(load(tried, tried_time), figures).await?;
        let lower = tried.saturating_sub(per_second / 10);
        if is_kept || lower == 0 {
            break;
        }
        (tried, tried_time) = (lower, STEP_TIME.min(time));
    }
    figures.add("`sexton serve`, after", format!("{:.1} MB resident", resident_mb(&server)?));
    server.terminate();
    server.exit(DEADLINE).await;
    Ok(())
}

/// What is measured.
struct Bench<'a> {
    platform: &'a Platform,
    server: &'a Program,
    address: &'a str,
    checks: &'a [String],
}

impl Bench<'_> {
    /// Measures one rate. Returns whether the server kept up with it within the limit.
    async fn run(&self, load: Load, figures: &mut Figures) -> Result<bool> {
        let pool = self.platform.store().pool();
        let last = "SELECT coalesce(max(id), 0) FROM sexton.pings";
        let last: i64 = sqlx::query_scalar(last).fetch_one(pool).await?;
        let (used, busy, began) =
            (time_of(std::process::id())?, machine()?, std::time::Instant::now());
        let offering = offer(self.address, self.checks, load);
        let (answers, server, backends) =
            Meter::of_server(self.server, pool).until(offering).await?;
        let elapsed = began.elapsed().as_secs_f64();
        let share = |used: Duration| used.as_secs_f64() / elapsed * 100.0;
        let generator = share(time_of(std::process::id())?.saturating_sub(used));
        let all = share(machine()?.saturating_sub(busy));
        let answers = answers?;
        let written = "SELECT count(*), count(DISTINCT xmin::text) FROM sexton.pings WHERE id > $1";
        let (written, commits): (i64, i64) =
            sqlx::query_as(written).bind(last).fetch_one(pool).await?;

        let rate = answers.recorded.len() as f64 / answers.took.as_secs_f64();
        let offered = format!("{} pings/s for {} s", load.per_second, load.time.as_secs());
        let lags = Spread::new(answers.recorded);
        let [p50, p95, p99, max] = [0.5, 0.95, 0.99, 1.0].map(|part| lags.at(part));
        figures.add(
            format!("{offered}: answered with 200, from when each was to be sent"),
            format!("{rate:.0}/s; p50 {p50:.1} ms, p95 {p95:.1} ms, p99 {p99:.1} ms, slowest {max:.1} ms"),
        );
        let mut others = String::new();
        for (status, count) in &answers.others {
            // Writing to a String cannot fail.
            let _ = write!(others, "; {count} with {status}");
        }
        figures.add(
            "answers with 200, and rows in `pings`",
            format!(
                "{} and {written}{others}; {:.0} pings per commit",
                lags.len(),
                lags.len() as f64 / commits.max(1) as f64
            ),
        );
        figures.add(
            "processor: `sexton serve`, PostgreSQL, the generator, the whole machine",
            format!(
                "{:.0}, {:.0}, {generator:.0} and {all:.0} %",
                server * 100.0,
                backends * 100.0
            ),
        );
        // What was answered with 503 may have been written none the less.
        let unknown = answers.others.get(&503).copied().unwrap_or(0);
        let recorded = lags.len() as i64;
        ensure!(
            (recorded..=recorded + unknown as i64).contains(&written),
            "{recorded} pings were answered with 200, and {written} are in the table"
        );
        Ok(answers.others.is_empty() && p99 <= P99_MS)
    }
}

/// Defines the checks, and returns their ids.
async fn checks(platform: &Platform) -> Result<Vec<String>> {
    let file = (0..CHECKS).fold(String::new(), |mut text, number| {
        let _ =
            write!(text, "[[check]]\nname = \"pinged-{number}\"\nevery = \"1h\"\ngrace = \"1h\"\n");
        text
    });
    let path = platform.folder().join("checks.toml");
    std::fs::write(&path, file)?;
    let path = path.to_str().context("the folder's name")?;
    let applied = platform.try_sexton(&["checks", "apply", "-f", path]).await?;
    ensure!(applied.status.success(), "sexton checks apply failed: {applied}");
    let ids = "SELECT id::text FROM sexton.checks ORDER BY name";
    Ok(sqlx::query_scalar(ids).fetch_all(platform.store().pool()).await?)
}

/// Where pings are accepted, by the server's log.
fn address(server: &Program) -> Result<String> {
    let log = server.log();
    let (_, rest) =
        log.split_once("pings are accepted at http://").context("no address is logged")?;
    Ok(rest.split('/').next().context("no address is logged")?.to_owned())
}
