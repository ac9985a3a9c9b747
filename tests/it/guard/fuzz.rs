//! Many processes, of which some are killed, frozen and cut off: no two works of a lock overlap by the database's clock.

use std::time::Duration;

use sexton_guard::CREATE_SHEDLOCK;
use sexton_tests::platform::{Platform, Program};
use sexton_tests::proxy::Proxy;
use sqlx::AssertSqlSafe;
use tokio::time::{Instant, sleep};

use super::{OVERLAPS, PATIENCE, RUNS};

/// Each lock has as many processes.
const HOLDERS: usize = 3;
const LOCKS: [&str; 2] = ["session:5101", "row:cleanup:1500"];
/// Between two faults; the works go on meanwhile.
const PAUSE: Duration = Duration::from_millis(150);

/// Numbers that a seed decides (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// A process whose locks go through a network of its own.
struct Holder {
    name: String,
    lock: &'static str,
    proxy: Proxy,
    url: String,
    program: Program,
}

impl Holder {
    async fn start(platform: &Platform, name: String, lock: &'static str) -> Self {
        let proxy = Proxy::before(platform.database_url()).await.unwrap();
        let url = proxy.url(platform.database_url());
        let program = start(platform, &name, lock, &url);
        Self { name, lock, proxy, url, program }
    }

    /// Something bad, which is over when this returns but for its consequences.
    async fn suffer(&mut self, platform: &Platform, numbers: &mut Numbers) -> &'static str {
        match numbers.below(5) {
            0 => {
                self.program.kill();
                self.program = start(platform, &self.name, self.lock, &self.url);
                "killed"
            }
            1 => {
                self.program.pause();
                sleep(Duration::from_millis(numbers.below(2_500) as u64)).await;
                self.program.resume();
                "frozen"
            }
            // A session that is reset is free at the same moment at which the client learns it; the tests of losses have that.
            2 if self.lock.starts_with("row") => {
                self.proxy.cut();
                sleep(Duration::from_millis(numbers.below(300) as u64)).await;
                self.proxy.pass();
                "cut"
            }
            3 => {
                self.proxy.black_hole();
                sleep(Duration::from_millis(numbers.below(2_500) as u64)).await;
                self.proxy.pass();
                "silenced"
            }
            _ => {
                self.proxy.delay(Duration::from_millis(numbers.below(200) as u64));
                sleep(Duration::from_millis(numbers.below(500) as u64)).await;
                self.proxy.pass();
                "slowed"
            }
        }
    }
}

fn start(platform: &Platform, name: &str, lock: &str, url: &str) -> Program {
    let env = [("LOCK", lock), ("LOCK_URL", url), ("STEPS", "20")];
    platform.start_lock_holder(name, &env).unwrap()
}

/// For `GUARD_FUZZ_S` seconds, 25 unless it is set, from `GUARD_SEED` on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_two_works_of_a_lock_overlap_whatever_happens_to_their_processes_and_networks() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
    };
    let (seed, seconds) = (number("GUARD_SEED", 1), number("GUARD_FUZZ_S", 25));
    println!("GUARD_SEED={seed} GUARD_FUZZ_S={seconds}");
    let platform = Platform::new().await.unwrap();
    let pool = platform.store().pool();
    sqlx::raw_sql(RUNS).execute(pool).await.unwrap();
    sqlx::raw_sql(CREATE_SHEDLOCK).execute(pool).await.unwrap();
    let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut holders = Vec::new();
    for lock in LOCKS {
        for index in 0..HOLDERS {
            let name = format!("{}-{index}", &lock[..3]);
            holders.push(Holder::start(&platform, name, lock).await);
        }
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut faults = 0;
    while Instant::now() < end {
        let victim = numbers.below(holders.len());
        holders[victim].suffer(&platform, &mut numbers).await;
        faults += 1;
        sleep(PAUSE).await;
    }
    // What was in the middle goes on to an end, and works still begin.
    for lock in LOCKS {
        let runs = "SELECT count(*) FROM runs WHERE lock = $1";
        let runs =
            async || -> i64 { sqlx::query_scalar(runs).bind(lock).fetch_one(pool).await.unwrap() };
        let before = runs().await;
        let goes_on = async || (runs().await > before + 1).then_some(());
        platform.eventually(&format!("{lock} goes on"), PATIENCE, goes_on).await;
    }
    for holder in &mut holders {
        holder.program.kill();
    }
    let counts: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT lock, count(*), count(DISTINCT pid) FROM runs GROUP BY lock ORDER BY lock",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    println!("MEASURED {faults} faults; works and processes: {counts:?}");
    for (lock, works, processes) in &counts {
        assert!(*works > 20 && *processes > 1, "{lock}: {works} works of {processes} processes");
    }
    let both = "concat_ws(' ', a.lock, a.pid, a.began, a.confirmed, a.ended, '|', b.pid, b.began, b.confirmed, b.ended)";
    let overlaps = sqlx::query_scalar(AssertSqlSafe(OVERLAPS.replace("count(*)", both)));
    let overlaps: Vec<String> = overlaps.fetch_all(pool).await.unwrap();
    assert!(overlaps.is_empty(), "{overlaps:#?}\nGUARD_SEED={seed}\n{}", platform.log_tails());
}
