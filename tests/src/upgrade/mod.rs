//! How late claims become while a large database is migrated.
//!
//! A database is brought to an earlier schema and filled by statements; then something that claims, as the
//! schedulers of that schema did, goes on while `sexton migrate` does its work, and notes how late each claim is.

mod claims;
mod data;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use sexton_store::schema::MigrationSession;
use sexton_store::{Store, StoreOptions};
use sqlx::migrate::Migrator;
use sqlx::postgres::PgPool;
use tokio::sync::oneshot;

use claims::Claimer;

/// What is migrated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// The number of the schema's last migration before.
    pub from: i64,
    /// Jobs, some of which are due all the time.
    pub jobs: i64,
    /// Executions that are over.
    pub executions: i64,
}

/// How it went.
#[derive(Clone, PartialEq, Debug)]
pub struct Upgraded {
    /// Migrations that were applied.
    pub applied: usize,
    /// From the first to the last of them.
    pub took: Duration,
    /// Each migration and how long it took, in their order.
    pub each: Vec<(i64, Duration)>,
    /// How late each claim was that was made meanwhile, ascending.
    pub late: Vec<Duration>,
    /// The same of those before, on the same rows.
    pub late_before: Vec<Duration>,
}

impl Upgraded {
    /// The latest claim.
    pub fn latest(&self) -> Duration {
        self.late.last().copied().unwrap_or_default()
    }
}

/// How long claims are watched before anything is migrated.
const WARM_UP: Duration = Duration::from_secs(5);

/// The files.
///
/// # Errors
///
/// They cannot be read.
pub async fn migrations() -> Result<Migrator> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    Ok(Migrator::new(folder).await?)
}

/// Fills the empty database at `url`, at the earlier schema; or takes one that was filled before back to it.
///
/// # Errors
///
/// Those of the database.
pub async fn prepare(url: &str, size: Size, say: impl Fn(&str) + Sync) -> Result<()> {
    let pool = PgPool::connect(url).await?;
    let migrator = migrations().await?;
    let filled: bool =
        sqlx::query_scalar("SELECT to_regclass('jobs') IS NOT NULL").fetch_one(&pool).await?;
    if filled {
        migrator.undo(&pool, size.from).await?;
    } else {
        migrator.run_to(size.from, &pool).await?;
        data::fill(&pool, size, &say).await?;
    }
    data::due(&pool).await?;
    pool.close().await;
    Ok(())
}

/// Migrates what was prepared while something claims.
///
/// # Errors
///
/// Those of the database, and a job of which nothing is remembered afterwards.
pub async fn upgrade(url: &str, size: Size, say: impl Fn(&str) + Sync) -> Result<Upgraded> {
    let claimer = Claimer::new(url);
    let (stop, stopped) = oneshot::channel();
    let claiming = tokio::spawn(claimer.run(stopped));
    tokio::time::sleep(WARM_UP).await;
    say("migrates");
    let began = Instant::now();
    let store = Store::open(&StoreOptions::new(url, "sexton bench"))?;
    let migrated = MigrationSession::begin(&store).await?.run(&say).await;
    let took = began.elapsed();
    let _ = stop.send(());
    let claims = claiming.await.context("the claimer panicked")??;
    let applied = migrated?;
    let (mut late, mut late_before) = (Vec::new(), Vec::new());
    for (at, by) in claims {
        if at < began { late_before.push(by) } else { late.push(by) }
    }
    late.sort_unstable();
    late_before.sort_unstable();
    let each: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT version, execution_time FROM _sqlx_migrations WHERE version > $1 ORDER BY version",
    )
    .bind(size.from)
    .fetch_all(store.pool())
    .await?;
    let each =
        each.into_iter().map(|(v, ns)| (v, Duration::from_nanos(ns.unsigned_abs()))).collect();
    let forgotten: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM jobs j WHERE NOT EXISTS (SELECT FROM job_revisions r
            WHERE r.job_id = j.id AND r.revision = j.revision)",
    )
    .fetch_one(store.pool())
    .await?;
    ensure!(forgotten == 0, "{forgotten} jobs are not remembered");
    Ok(Upgraded { applied, took, each, late, late_before })
}
