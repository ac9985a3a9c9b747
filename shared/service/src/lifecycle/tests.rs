//! Whole shutdowns without signals, in paused time. Real signals meet real programs in `tests/`.

use tokio::time::Instant;

use super::*;

const GRACE: Duration = Duration::from_secs(30);

async fn until(token: CancellationToken) -> Result<(), String> {
    token.cancelled().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_the_tasks_end_and_is_clean() {
    let life = Lifecycle::new(GRACE);
    life.spawn("planner", until(life.soft()));
    life.spawn("relay", until(life.soft()));
    assert!(!life.soft().is_cancelled());
    life.stop("test");
    assert_eq!(life.wait_until_ended().await, ExitOutcome::Cleanly);
    assert!(!life.hard().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_second_stop_hurries() {
    let life = Lifecycle::new(GRACE);
    life.spawn("long task", until(life.hard()));
    life.stop("test");
    assert!(!life.hard().is_cancelled());
    life.stop("test");
    let begin = Instant::now();
    assert_eq!(life.wait_until_ended().await, ExitOutcome::Cleanly);
    assert!(begin.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn work_that_outlasts_the_grace_is_ended_then_and_not_before() {
    let life = Lifecycle::new(GRACE);
    life.spawn("long task", until(life.hard()));
    let begin = Instant::now();
    life.stop("test");
    assert_eq!(life.wait_until_ended().await, ExitOutcome::Cleanly);
    assert!(begin.elapsed() >= GRACE && begin.elapsed() < GRACE + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_never_ends_is_left_behind_and_told() {
    let life = Lifecycle::new(GRACE);
    life.spawn("stuck", std::future::pending::<Result<(), String>>());
    let begin = Instant::now();
    life.stop("test");
    assert_eq!(life.wait_until_ended().await, ExitOutcome::Broken);
    let limit = GRACE + HARD_STOP_TIMEOUT;
    assert!(begin.elapsed() >= limit && begin.elapsed() < limit + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ends_by_itself_stops_the_program_and_is_a_fault() {
    let life = Lifecycle::new(GRACE);
    life.spawn("planner", until(life.soft()));
    life.spawn("relay", async { Ok::<(), String>(()) });
    assert_eq!(life.wait_until_ended().await, ExitOutcome::Broken);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_stops_the_program_and_is_a_fault() {
    let life = Lifecycle::new(GRACE);
    life.spawn("planner", until(life.soft()));
    life.spawn("relay", async { Err("no more") });
    assert_eq!(life.wait_until_ended().await, ExitOutcome::Broken);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_stops_the_program_and_is_a_fault() {
    let life = Lifecycle::new(GRACE);
    life.spawn("planner", until(life.soft()));
    let relay = life.soft();
    life.spawn("relay", async move {
        assert!(relay.is_cancelled(), "on purpose");
        Ok::<(), String>(())
    });
    assert_eq!(life.wait_until_ended().await, ExitOutcome::Broken);
}

#[tokio::test(start_paused = true)]
async fn a_failure_during_the_shutdown_is_a_fault_too() {
    let life = Lifecycle::new(GRACE);
    let soft = life.soft();
    life.spawn("relay", async move {
        soft.cancelled().await;
        Err("cannot give back what is not opened")
    });
    life.stop("test");
    assert_eq!(life.wait_until_ended().await, ExitOutcome::Broken);
}

#[tokio::test(start_paused = true)]
async fn the_hard_token_is_never_cancelled_without_the_soft_one() {
    let life = Lifecycle::new(Duration::ZERO);
    let (soft, hard) = (life.soft(), life.hard());
    life.spawn("watcher", async move {
        hard.cancelled().await;
        if soft.is_cancelled() { Ok(()) } else { Err("hard before soft") }
    });
    life.stop("test");
    assert_eq!(life.wait_until_ended().await, ExitOutcome::Cleanly);
}
