//! Pages that stay open, and follow what happens.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sexton_tests::platform::Program;
use sqlx::PgPool;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::Connection;
use crate::figures::{Figures, Spread};
use crate::meter::Meter;
use crate::resident_mb;

/// Numbers of open pages that are the same one.
const SHARED_TABS: [usize; 3] = [1, 100, 500];
/// Number of open pages that are different ones.
const DIFFERENT_TABS: usize = 500;
/// The goal for the resident memory of `sexton serve` with so many open pages.
const MEMORY_GOAL: (usize, f64) = (100, 30.0);
/// The goal for the 99th percentile of the time until a change is on all open pages, in milliseconds.
const CHANGE_GOAL_MS: f64 = 1_000.0;
/// So many times the transactions of one open page may many of the same cost: they cost what one costs, and the counts vary.
const SHARED_COST_GOAL: f64 = 2.0;
/// Changes that are followed.
const CHANGES: usize = 20;
/// From one to the next. It is no multiple of the server's interval, so that they come at all of its phases.
const PERIOD: Duration = Duration::from_millis(1_530);
const PATIENCE: Duration = Duration::from_mins(1);

/// An open page, and what it follows.
#[derive(Clone, Debug)]
struct Tab {
    page: String,
    stream: String,
}

/// Open pages that a change concerns, all of them at once.
#[derive(Debug)]
struct OpenPages {
    /// As the report calls them.
    name: String,
    tabs: Vec<Tab>,
    /// The executions that change; none: what people do.
    executions: Vec<Uuid>,
}

/// What open pages cost, and how soon they have a change.
#[derive(Debug)]
struct Followed {
    /// The resident memory of the server, in MB.
    memory_mb: f64,
    /// Transactions in the database in a second, those of this measurement included.
    per_second: f64,
    /// From each change until all pages have it.
    times: Spread,
}

/// A page that has been fetched: its place among the open ones, and when it was requested.
type Shown = (usize, Instant);

/// Measures what open pages cost, and how soon they show a change. Returns the goals that were missed.
pub(super) async fn measure(
    address: &str,
    pool: &PgPool,
    server: &Program,
    figures: &mut Figures,
) -> Result<Vec<String>> {
    let mut missed = Vec::new();
    let mut cost_of_one = None;
    for count in SHARED_TABS {
        let open = OpenPages::shared(count);
        let followed = follow_changes(address, pool, server, &open, figures).await?;
        missed.extend(followed.late(&open));
        let Followed { memory_mb, per_second, .. } = followed;
        let most = *cost_of_one.get_or_insert(per_second) * SHARED_COST_GOAL;
        if per_second > most {
            missed.push(format!("{per_second:.1} transactions/s with {}", open.name));
        }
        if count == MEMORY_GOAL.0 && memory_mb > MEMORY_GOAL.1 {
            missed.push(format!("{memory_mb:.1} MB resident with {}", open.name));
        }
    }
    let open = OpenPages::different(pool, DIFFERENT_TABS).await?;
    missed.extend(follow_changes(address, pool, server, &open, figures).await?.late(&open));
    Ok(missed)
}

impl Followed {
    /// The goal that was missed, if changes took too long.
    fn late(&self, open: &OpenPages) -> Option<String> {
        let p99 = self.times.at(0.99);
        let is_late = p99 > CHANGE_GOAL_MS;
        is_late.then(|| format!("a change on all of {}: p99 {p99:.1} ms", open.name))
    }
}

impl OpenPages {
    /// The list of failed executions, so many times.
    fn shared(count: usize) -> Self {
        let tab = Tab { page: "/failed".to_owned(), stream: "/events?topics=failures".to_owned() };
        let name = format!("{count} open pages");
        Self { name, tabs: vec![tab; count], executions: Vec::new() }
    }

    /// The pages of the newest executions.
    async fn different(pool: &PgPool, count: usize) -> Result<Self> {
        let newest =
            "SELECT id FROM sexton.executions WHERE state = 'succeeded' ORDER BY id DESC LIMIT $1";
        let executions: Vec<Uuid> =
            sqlx::query_scalar(newest).bind(count as i64).fetch_all(pool).await?;
        ensure!(executions.len() == count, "there are only {} executions", executions.len());
        let tab = |id: &Uuid| Tab {
            page: format!("/executions/{id}"),
            stream: format!("/events?topics=execution:{id}"),
        };
        let tabs = executions.iter().map(tab).collect();
        Ok(Self { name: format!("{count} open pages of different executions"), tabs, executions })
    }

    /// Changes what all of them show.
    async fn change(&self, pool: &PgPool) -> Result<()> {
        // Somebody edits a failure, as far as a list can see.
        let edit = "INSERT INTO sexton.operator_actions (at, actor, action) VALUES (now(), 'bench', 'edit')";
        let moves = "UPDATE sexton.executions SET rev = rev + 1 WHERE id = ANY($1)";
        if self.executions.is_empty() {
            sqlx::query(edit).execute(pool).await?;
        } else {
            sqlx::query(moves).bind(&self.executions).execute(pool).await?;
        }
        Ok(())
    }
}

/// Opens these pages, and measures while they follow changes.
async fn follow_changes(
    address: &str,
    pool: &PgPool,
    server: &Program,
    open: &OpenPages,
    figures: &mut Figures,
) -> Result<Followed> {
    let count = open.tabs.len();
    let (send, mut shown) = mpsc::channel(count * 4);
    let mut tabs = JoinSet::new();
    let opened = Instant::now();
    for (place, tab) in open.tabs.iter().enumerate() {
        tabs.spawn(follow(address.to_owned(), tab.clone(), place, send.clone()));
    }
    // Each is fetched once when its stream begins; that of an execution once more when the server has first read it.
    all_show(&mut shown, &mut tabs, (count, opened)).await?;
    sleep(PERIOD).await;
    let before = transactions(pool).await?;
    let begun = Instant::now();
    let following = async {
        let mut times = Vec::new();
        for _ in 0..CHANGES {
            let next = Instant::now() + PERIOD;
            open.change(pool).await?;
            let changed = Instant::now();
            all_show(&mut shown, &mut tabs, (count, changed)).await?;
            times.push(changed.elapsed().as_secs_f64() * 1000.0);
            sleep(next.saturating_duration_since(Instant::now())).await;
        }
        anyhow::Ok(times)
    };
    let (times, program, backends) = Meter::of_server(server, pool).until(following).await?;
    // What this measurement itself asks is the same for all numbers.
    let done = transactions(pool).await? - before;
    let per_second = done as f64 / begun.elapsed().as_secs_f64();
    let memory_mb = resident_mb(server)?;
    let (name, period) = (&open.name, PERIOD.as_millis());
    let figure = format!(
        "{memory_mb:.1} MB resident; {:.0} % of a processor, PostgreSQL for it {:.0} %, {per_second:.1} transactions/s",
        program * 100.0,
        backends * 100.0
    );
    figures.add(
        format!("`sexton serve` with {name}, and a change every {period} ms, or as soon as all have the last one"),
        figure,
    );
    let times = Spread::new(times?);
    figures.add(format!("from a change until all of {name} have it"), times.render());
    tabs.shutdown().await;
    Ok(Followed { memory_mb, per_second, times })
}

/// Keeps a page open, which fetches itself at each sign.
async fn follow(address: String, tab: Tab, place: usize, shown: mpsc::Sender<Shown>) -> Result<()> {
    let mut stream = Connection::open(&address).await?.follow(&tab.stream).await?;
    let mut connection = Connection::open(&address).await?;
    loop {
        stream.changed().await?;
        let requested = Instant::now();
        let answer = connection.refresh(&tab.page).await?;
        ensure!(answer.status == 200, "{} answered {}", tab.page, answer.status);
        shown.send((place, requested)).await?;
    }
}

/// Waits until each of so many open pages has fetched itself, requested since this instant.
async fn all_show(
    shown: &mut mpsc::Receiver<Shown>,
    tabs: &mut JoinSet<Result<()>>,
    (count, since): (usize, Instant),
) -> Result<()> {
    let all = async {
        let mut missing: HashSet<usize> = (0..count).collect();
        while !missing.is_empty() {
            tokio::select! {
                one = shown.recv() => {
                    let (place, requested) = one.context("an open page")?;
                    if requested >= since {
                        missing.remove(&place);
                    }
                }
                Some(ended) = tabs.join_next() => ended??,
            }
        }
        anyhow::Ok(())
    };
    timeout(PATIENCE, all).await.context("some open pages show no change")?
}

async fn transactions(pool: &PgPool) -> Result<i64> {
    // The sessions report what they did at most once a second.
    sleep(Duration::from_millis(1_100)).await;
    let count = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    Ok(sqlx::query_scalar(count).fetch_one(pool).await?)
}
