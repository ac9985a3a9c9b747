//! A run: arenas on their sites, faults from the plan, and what came of them.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use sexton_service::clock;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::arena::{Arena, Timeouts, now};
use super::fault::Fault;
use super::final_check;
use super::oracle::Violation;
use super::plan::{self, Amount};
use super::progress::{Line, Progress, broken, check_versions, list_strikes};
use super::strike::{Outcome, strike};
use super::test_servers::TestServers;
use super::verdict::Verdict;
use super::versions::versions;

/// So often a fault is tried before it is given up for this session.
const MAX_TRIES: u32 = 8;

/// How much of the time, at most, is left for the arenas to recover and to be judged.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(15);

/// The options of a run.
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
    pub timeouts: Timeouts,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// All that was written down, by earlier sessions as well.
    pub lines: Vec<Line>,
    /// What that comes to.
    pub verdict: Verdict,
}

/// Where the arenas stand.
pub struct ServerSets {
    /// Of the calm arenas.
    pub calm: Arc<TestServers>,
    /// One for each stormy arena.
    pub stormy: Vec<Arc<TestServers>>,
}

impl ServerSets {
    /// Ends the servers that are the sites' own.
    pub async fn end(self) -> Result<()> {
        for site in std::iter::once(self.calm).chain(self.stormy) {
            // Its other holders have ended with the run.
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
    /// Nothing more is struck; the arenas come to rest and are judged.
    rest: CancellationToken,
    /// All is dropped as it stands: a promise is broken, or nobody wants to wait.
    stop: CancellationToken,
    began: Instant,
    session: u64,
    /// How many there have been: each has a number of its own.
    arenas: AtomicUsize,
    options: Options,
}

/// Ends a run before all is struck.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// What is being struck recovers, and the arenas come to rest and are judged: what was struck
    /// counts.
    pub rest: CancellationToken,
    /// At once: what was struck in this session does not count.
    pub stop: CancellationToken,
}

/// Strikes what is left of the plan, until all of it is struck, a promise is broken, the limit is
/// reached or `ending` says so. A run that has broken a promise is not gone on with.
///
/// # Errors
///
/// The arenas cannot be set up, or the progress cannot be written.
pub async fn run(options: Options, sites: &ServerSets, ending: Ending) -> Result<Ended> {
    let began = Instant::now();
    let (progress, lines) = Progress::open(&options.folder)?;
    let judged = |lines: Vec<Line>| Ended {
        verdict: Verdict::of(&lines, options.seed, &options.kinds, options.amount),
        lines,
    };
    if !broken(&lines).is_empty() {
        return Ok(judged(lines));
    }
    let versions = versions(&sites.calm).await?;
    check_versions(&lines, &options.folder, &versions)?;
    progress.append(&Line::Begun { seed: options.seed, versions })?;

    let whole = plan::plan(options.seed, &options.kinds, options.amount);
    let done: Vec<Fault> = list_strikes(&lines).into_iter().map(|(fault, _)| fault).collect();
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
        rest: ending.rest.child_token(),
        stop: ending.stop.child_token(),
        began,
        session: clock::now().timestamp().unsigned_abs(),
        arenas: AtomicUsize::new(sites.stormy.len() + options.calm),
        options: options.clone(),
    });
    log(&format!("{} of {} faults are left to strike", wanted, whole.len()));
    let outcome = if wanted == 0 { Ok(()) } else { all_arenas(&shared, sites).await };
    let (_, lines) = Progress::open(&options.folder)?;
    let ended = judged(lines);
    // What broke stands in the progress, whatever else went wrong.
    if !matches!(ended.verdict, Verdict::Broken(_)) {
        outcome?;
    }
    Ok(ended)
}

async fn all_arenas(shared: &Arc<Shared>, sites: &ServerSets) -> Result<()> {
    // They wait most of the time, so one task has room for all of them.
    let mut arenas = FuturesUnordered::new();
    let calm = (0..shared.options.calm).map(|_| (Arc::clone(&sites.calm), false));
    let stormy = sites.stormy.iter().map(|site| (Arc::clone(site), true));
    for (number, (site, is_stormy)) in stormy.chain(calm).enumerate() {
        arenas.push(serve(Arc::clone(shared), site, number, is_stormy));
    }
    let watch = async {
        let limit = shared.options.limit;
        sleep_until(shared.began + limit.saturating_sub(SETTLE_TIMEOUT.min(limit / 4))).await;
        log("the time is over: what is struck recovers, and the arenas come to rest");
        shared.rest.cancel();
        sleep_until(shared.began + limit).await;
        log("the arenas do not come to rest in time");
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

/// Strikes in an arena, and in a fresh one on fresh servers if those of a site do not come back.
async fn serve(
    shared: Arc<Shared>,
    site: Arc<TestServers>,
    number: usize,
    is_stormy: bool,
) -> Result<()> {
    let (mut site, mut number) = (site, number);
    let mut spare = false;
    while !strike_in(&shared, &site, number, is_stormy).await? {
        // What was struck in it was not judged and does not count.
        log(&format!("arena {number}: a server does not come back; another arena takes its place"));
        let wedged = std::mem::replace(&mut site, Arc::new(TestServers::private().await?));
        if spare && let Some(wedged) = Arc::into_inner(wedged) {
            let _ = wedged.end().await;
        }
        spare = true;
        number = shared.arenas.fetch_add(1, Ordering::Relaxed);
    }
    if spare && let Some(site) = Arc::into_inner(site) {
        site.end().await?;
    }
    Ok(())
}

/// Strikes in one arena until nothing is left, then judges it; `false`: its site is wedged.
async fn strike_in(
    shared: &Shared,
    site: &Arc<TestServers>,
    number: usize,
    is_stormy: bool,
) -> Result<bool> {
    let options = &shared.options;
    let arena = Arena::begin(number, site, options.timeouts, options.seed).await;
    let mut arena = arena.with_context(|| format!("set up arena {number}"))?;
    let mut looked = now();
    while let Some(turn) = shared.next(is_stormy) {
        tokio::select! {
            // Dropped in the middle, an arena ends all that it has started.
            () = shared.stop.cancelled() => return Ok(true),
            tried = shared.turn(&mut arena, turn, looked) => looked = tried?,
        }
        if site.is_wedged() {
            return Ok(false);
        }
    }
    if shared.stop.is_cancelled() {
        return Ok(true);
    }
    log(&format!("arena {number} comes to rest"));
    let violations = tokio::select! {
        () = shared.stop.cancelled() => return Ok(true),
        violations = final_check::close(&mut arena) => violations?,
    };
    let counts = final_check::counts(&arena).await?;
    shared.broken(&arena, violations)?;
    log(&format!("arena {number} is at rest"));
    let (session, seconds) = (shared.session, shared.began.elapsed().as_secs());
    shared.progress.append(&Line::Closed { session, arena: number, counts, seconds })?;
    Ok(true)
}

impl Shared {
    /// The next fault; a stormy arena helps the calm ones when its own are struck.
    fn next(&self, is_stormy: bool) -> Option<Turn> {
        if self.stop.is_cancelled() || self.rest.is_cancelled() {
            return None;
        }
        let stormy = is_stormy.then(|| lock(&self.stormy).pop_front()).flatten();
        stormy.or_else(|| lock(&self.calm).pop_front())
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
                let recovery_ms = recovery.map(|time| time.as_millis() as u64);
                let (session, arena_number) = (self.session, arena.number);
                self.progress.append(&Line::Struck {
                    session,
                    arena: arena_number,
                    fault: name,
                    executions,
                    recovery_ms,
                })?;
                self.report_strike(arena, fault, recovery);
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
            log(&format!("arena {}: {fault} missed: {why}", arena.number));
            self.progress.append(&Line::Missed { fault: fault.to_string(), why })?;
            if tries + 1 < MAX_TRIES {
                let queue = if fault.is_of_server() { &self.stormy } else { &self.calm };
                lock(queue).push_back((fault, tries + 1));
            }
        }
        let (violations, looked) =
            final_check::look(arena, looked).await.unwrap_or((vec![], looked));
        self.broken(arena, violations)?;
        Ok(looked)
    }

    fn broken(&self, arena: &Arena, violations: Vec<Violation>) -> Result<()> {
        for violation in violations {
            if lock(&self.broken).contains(&violation) {
                continue;
            }
            log(&format!("arena {}: BROKEN: {violation}", arena.number));
            let (kind, what) = (violation.kind().to_owned(), violation.to_string());
            self.progress.append(&Line::Broken { kind, what })?;
            self.keep(arena);
            lock(&self.broken).push(violation);
            // One is enough; the others may follow from it.
            self.stop.cancel();
        }
        Ok(())
    }

    /// Keeps what shows how a promise was broken, for the person who looks into it.
    fn keep(&self, arena: &Arena) {
        let file = |what: &str| self.options.folder.join(format!("arena-{}.{what}", arena.number));
        let _ = std::fs::write(file("log"), arena.platform.logs());
        let _ = std::fs::copy(arena.ledger.file(), file("ledger"));
    }

    fn report_strike(&self, arena: &Arena, fault: Fault, recovery: Option<Duration>) {
        let recovery = recovery.unwrap_or_default();
        let mut done = lock(&self.done);
        *done += 1;
        log(&format!(
            "{:5.0} s  {:4} of {}  arena {:2}  {fault}: recovered in {:.1} s",
            self.began.elapsed().as_secs_f64(),
            *done,
            self.wanted,
            arena.number,
            recovery.as_secs_f64()
        ));
    }
}

fn log(text: &str) {
    println!("torture: {text}");
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
