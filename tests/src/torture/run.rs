//! A run: arenas on their sites, faults from the plan, and what came of them.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use sexton_service::clock;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::arena::{Arena, Patience, now};
use super::close;
use super::fault::Fault;
use super::oracle::Violation;
use super::plan::{self, Amount};
use super::progress::{Line, Progress, check_lines, struck};
use super::site::Site;
use super::strike::{Outcome, strike};
use super::versions::versions;

/// So often a fault is tried before it is given up for this session.
const TRIES: u32 = 8;

/// How often an arena writes down what it has counted.
const COUNT_EVERY: Duration = Duration::from_secs(20);

/// What is asked of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decides which faults come in which order.
    pub seed: u64,
    /// How many.
    pub amount: Amount,
    /// Of these kinds.
    pub kinds: Vec<Fault>,
    /// These come before the others.
    pub first: Vec<Fault>,
    /// For all of it.
    pub limit: Duration,
    /// Where the progress is kept.
    pub folder: PathBuf,
    /// Arenas that share a site whose servers are left alone.
    pub calm: usize,
    /// Arenas with a site of their own, whose servers are struck.
    pub stormy: usize,
    /// Of the platform and with it.
    pub patience: Patience,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// All that was written down, by earlier sessions as well.
    pub lines: Vec<Line>,
    /// The promises that were broken in this session.
    pub broken: Vec<Violation>,
    /// Kinds that were struck less often than asked, with how often they were.
    pub short_of: Vec<(Fault, usize)>,
    /// Faults of the plan that were not struck.
    pub left: usize,
}

/// Where the arenas stand.
pub struct Sites {
    /// Of the calm arenas.
    pub calm: Arc<Site>,
    /// One for each stormy arena.
    pub stormy: Vec<Arc<Site>>,
}

impl Sites {
    /// Ends the servers that are the sites' own.
    pub async fn end(self) -> Result<()> {
        for site in std::iter::once(self.calm).chain(self.stormy) {
            // Whoever else held it has ended with the run.
            if let Some(site) = Arc::into_inner(site) {
                site.end().await?;
            }
        }
        Ok(())
    }
}

/// A fault to strike, and how often it was tried.
type Turn = (Fault, u32);

/// What arenas share.
struct Shared {
    calm: Mutex<VecDeque<Turn>>,
    stormy: Mutex<VecDeque<Turn>>,
    broken: Mutex<Vec<Violation>>,
    progress: Progress,
    done: Mutex<usize>,
    wanted: usize,
    stop: CancellationToken,
    began: Instant,
    session: u64,
    options: Options,
}

/// Strikes what is left of the plan, until all of it is struck, a promise is broken, the limit is
/// reached or `stop` is cancelled.
///
/// # Errors
///
/// The arenas cannot be set up, or the progress cannot be written.
pub async fn run(options: Options, sites: &Sites, stop: CancellationToken) -> Result<Ended> {
    let began = Instant::now();
    let (progress, lines) = Progress::open(&options.folder)?;
    let versions = versions(&sites.calm).await?;
    check_lines(&lines, &options.folder, &versions)?;
    progress.append(&Line::Begun { seed: options.seed, versions })?;

    let whole = plan::plan(options.seed, &options.kinds, options.amount);
    let done: Vec<Fault> = struck(&lines).into_iter().map(|(fault, _)| fault).collect();
    let mut left = plan::left(&whole, &done);
    left.sort_by_key(|fault| !options.first.contains(fault));
    let wanted = left.len();
    let (stormy, calm): (VecDeque<Turn>, VecDeque<Turn>) =
        left.into_iter().map(|fault| (fault, 0)).partition(|(fault, _)| fault.is_of_server());
    let shared = Arc::new(Shared {
        calm: Mutex::new(calm),
        stormy: Mutex::new(stormy),
        broken: Mutex::default(),
        progress,
        done: Mutex::new(0),
        wanted,
        stop: stop.child_token(),
        began,
        session: clock::now().timestamp().unsigned_abs(),
        options: options.clone(),
    });
    tell(&format!("{} of {} faults are left to strike", wanted, whole.len()));
    let outcome = if wanted == 0 { Ok(()) } else { all_arenas(&shared, sites).await };
    let (_, lines) = Progress::open(&options.folder)?;
    outcome?;
    let done: Vec<Fault> = struck(&lines).into_iter().map(|(fault, _)| fault).collect();
    Ok(Ended {
        short_of: plan::short_of(&options.kinds, &done, options.amount.each),
        left: plan::left(&whole, &done).len(),
        broken: lock(&shared.broken).clone(),
        lines,
    })
}

async fn all_arenas(shared: &Arc<Shared>, sites: &Sites) -> Result<()> {
    // They wait most of the time, so one task has room for all of them.
    let mut arenas = FuturesUnordered::new();
    let calm = (0..shared.options.calm).map(|_| (Arc::clone(&sites.calm), false));
    let stormy = sites.stormy.iter().map(|site| (Arc::clone(site), true));
    for (number, (site, is_stormy)) in stormy.chain(calm).enumerate() {
        arenas.push(serve(Arc::clone(shared), site, number, is_stormy));
    }
    let watch = async {
        sleep_until(shared.began + shared.options.limit).await;
        tell("the time is over");
        shared.stop.cancel();
        std::future::pending::<()>().await;
    };
    let all = async {
        while let Some(ended) = arenas.next().await {
            // One arena that cannot go on ends the run: its faults would be missing.
            ended?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        outcome = all => outcome,
        () = watch => Ok(()),
    }
}

async fn serve(shared: Arc<Shared>, site: Arc<Site>, number: usize, is_stormy: bool) -> Result<()> {
    let options = &shared.options;
    let arena = Arena::begin(number, &site, options.patience, options.seed).await;
    let mut arena = arena.with_context(|| format!("set up arena {number}"))?;
    let mut looked = now();
    let mut counted = Instant::now();
    while let Some(turn) = shared.next(is_stormy) {
        tokio::select! {
            // Dropped in the middle, an arena ends all that it has started.
            () = shared.stop.cancelled() => return Ok(()),
            tried = shared.turn(&mut arena, turn, looked) => looked = tried?,
        }
        if counted.elapsed() > COUNT_EVERY {
            counted = Instant::now();
            shared.count(&arena, &[]).await;
        }
    }
    if shared.stop.is_cancelled() {
        return Ok(());
    }
    tell(&format!("arena {number} comes to rest"));
    let violations = tokio::select! {
        () = shared.stop.cancelled() => return Ok(()),
        violations = close::close(&mut arena) => violations?,
    };
    tell(&format!("arena {number} is at rest"));
    shared.count(&arena, &violations).await;
    shared.broken(&arena, violations)
}

impl Shared {
    /// The next fault; a stormy arena helps the calm ones when its own are struck.
    fn next(&self, is_stormy: bool) -> Option<Turn> {
        if self.stop.is_cancelled() {
            return None;
        }
        let own = is_stormy.then(|| lock(&self.stormy).pop_front()).flatten();
        own.or_else(|| lock(&self.calm).pop_front())
    }

    /// Tries a fault once and writes down what came of it.
    async fn turn(
        &self,
        arena: &mut Arena,
        (fault, tries): Turn,
        looked: DateTime<Utc>,
    ) -> Result<DateTime<Utc>> {
        let name = fault.to_string();
        let why = match strike(arena, fault).await {
            Ok(Outcome::Struck { executions, recovery }) => {
                let executions = executions.iter().map(ToString::to_string).collect();
                let recovery_ms = recovery.as_millis() as u64;
                self.progress.append(&Line::Struck { fault: name, executions, recovery_ms })?;
                self.tell_struck(arena, fault, recovery);
                None
            }
            Ok(Outcome::Broken(violation)) => {
                self.broken(arena, vec![violation])?;
                None
            }
            Ok(Outcome::Missed(why)) => Some(why),
            Err(error) => Some(format!("{error:#}")),
        };
        if let Some(why) = why {
            tell(&format!("arena {}: {fault} missed: {why}", arena.number));
            self.progress.append(&Line::Missed { fault: fault.to_string(), why })?;
            if tries + 1 < TRIES {
                let queue = if fault.is_of_server() { &self.stormy } else { &self.calm };
                lock(queue).push_back((fault, tries + 1));
            }
        }
        let (violations, looked) = close::look(arena, looked).await.unwrap_or((vec![], looked));
        self.broken(arena, violations)?;
        Ok(looked)
    }

    fn broken(&self, arena: &Arena, violations: Vec<Violation>) -> Result<()> {
        for violation in violations {
            if lock(&self.broken).contains(&violation) {
                continue;
            }
            tell(&format!("arena {}: BROKEN: {violation}", arena.number));
            self.progress.append(&Line::Broken { what: violation.to_string() })?;
            let log = self.options.folder.join(format!("arena-{}.log", arena.number));
            let _ = std::fs::write(log, arena.platform.logs());
            lock(&self.broken).push(violation);
            // One is enough; the others may follow from it.
            self.stop.cancel();
        }
        Ok(())
    }

    async fn count(&self, arena: &Arena, violations: &[Violation]) {
        let Ok(counts) = close::counts(arena, violations).await else { return };
        let seconds = self.began.elapsed().as_secs();
        let (session, arena) = (self.session, arena.number);
        let _ = self.progress.append(&Line::Done { session, arena, counts, seconds });
    }

    fn tell_struck(&self, arena: &Arena, fault: Fault, recovery: Duration) {
        let mut done = lock(&self.done);
        *done += 1;
        tell(&format!(
            "{:5.0} s  {:4} of {}  arena {:2}  {fault}: recovered in {:.1} s",
            self.began.elapsed().as_secs_f64(),
            *done,
            self.wanted,
            arena.number,
            recovery.as_secs_f64()
        ));
    }
}

fn tell(text: &str) {
    println!("torture: {text}");
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
