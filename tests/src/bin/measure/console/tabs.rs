//! Pages that stay open, and follow what happens.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sexton_tests::platform::Program;
use sqlx::PgPool;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::Connection;
use crate::figures::{Figures, Spread};
use crate::meter::Meter;
use crate::resident_mb;

/// The page, and what it follows.
const PAGE: &str = "/failed";
const STREAM: &str = "/events?topics=failures";
/// Numbers of open pages.
const TABS: [usize; 3] = [1, 100, 500];
/// Changes that are followed.
const CHANGES: usize = 20;
/// From one to the next. It is no multiple of the server's interval, so that they come at all of its phases.
const PERIOD: Duration = Duration::from_millis(1_530);
const PATIENCE: Duration = Duration::from_mins(1);

/// Measures what open pages cost, and how soon they show a change.
pub(super) async fn measure(
    address: &str,
    pool: &PgPool,
    server: &Program,
    figures: &mut Figures,
) -> Result<()> {
    for count in TABS {
        let (send, mut shown) = mpsc::channel(count * 2);
        let mut tabs = JoinSet::new();
        for _ in 0..count {
            tabs.spawn(follow(address.to_owned(), send.clone()));
        }
        // Each is fetched once when its stream begins.
        all_show(&mut shown, &mut tabs, count).await?;
        let before = transactions(pool).await?;
        let begun = Instant::now();
        let following = async {
            let mut times = Vec::new();
            for _ in 0..CHANGES {
                let next = Instant::now() + PERIOD;
                change(pool).await?;
                let changed = Instant::now();
                all_show(&mut shown, &mut tabs, count).await?;
                times.push(changed.elapsed().as_secs_f64() * 1000.0);
                sleep(next.saturating_duration_since(Instant::now())).await;
            }
            anyhow::Ok(times)
        };
        let (times, program, backends) = Meter::of_server(server, pool).until(following).await?;
        // What this measurement itself asks is the same for all numbers.
        let done = transactions(pool).await? - before;
        let per_second = done as f64 / begun.elapsed().as_secs_f64();
        let figure = format!(
            "{:.1} MB resident; {:.0} % of a processor, PostgreSQL for it {:.0} %, {per_second:.1} transactions/s",
            resident_mb(server)?,
            program * 100.0,
            backends * 100.0
        );
        figures.add(
            format!(
                "`sexton serve` with {count} open pages, and a change every {} ms",
                PERIOD.as_millis()
            ),
            figure,
        );
        figures.add(
            format!("from a change until all of {count} open pages have it"),
            Spread::new(times?).render(),
        );
        tabs.shutdown().await;
    }
    Ok(())
}

/// An open page: fetches itself at each sign.
async fn follow(address: String, shown: mpsc::Sender<()>) -> Result<()> {
    let mut stream = Connection::open(&address).await?.follow(STREAM).await?;
    let mut page = Connection::open(&address).await?;
    loop {
        stream.changed().await?;
        let answer = page.refresh(PAGE).await?;
        ensure!(answer.status == 200, "{PAGE} answered {}", answer.status);
        shown.send(()).await?;
    }
}

/// Waits until every open page has fetched itself once more.
async fn all_show(
    shown: &mut mpsc::Receiver<()>,
    tabs: &mut JoinSet<Result<()>>,
    count: usize,
) -> Result<()> {
    let all = async {
        for _ in 0..count {
            tokio::select! {
                one = shown.recv() => one.context("an open page")?,
                Some(ended) = tabs.join_next() => ended??,
            }
        }
        anyhow::Ok(())
    };
    timeout(PATIENCE, all).await.context("some open pages show no change")?
}

/// Somebody edits a failure, as far as a list can see.
async fn change(pool: &PgPool) -> Result<()> {
    let edit =
        "INSERT INTO sexton.operator_actions (at, actor, action) VALUES (now(), 'bench', 'edit')";
    sqlx::query(edit).execute(pool).await?;
    Ok(())
}

async fn transactions(pool: &PgPool) -> Result<i64> {
    // The sessions report what they did at most once a second.
    sleep(Duration::from_millis(1_100)).await;
    let count = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    Ok(sqlx::query_scalar(count).fetch_one(pool).await?)
}
