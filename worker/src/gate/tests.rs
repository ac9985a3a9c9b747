use super::*;
use sexton_service::clock;
use sexton_service::health::Readiness;

fn gate() -> Gate {
    let condition = Readiness::new().condition("database", clock::now());
    Gate::new(Reachability::new(condition))
}

fn pool(name: &str) -> PoolName {
    name.parse().unwrap()
}

fn refused() -> StoreError {
    StoreError::Schema("refused".to_owned())
}

#[test]
fn pauses_double_with_each_failed_trial_up_to_the_longest() {
    let longest = Duration::from_secs(30);
    let pauses: Vec<_> =
        (0..8).map(|failed_trials| pause(failed_trials, longest).as_millis()).collect();
    assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    assert_eq!(pause(u32::MAX, longest), longest);
}

#[tokio::test]
async fn in_a_trial_one_slot_of_each_pool_consumes_until_an_open_is_written() {
    let gate = gate();
    let (a, b) = (pool("a"), pool("b"));
    assert!(matches!(gate.admission(&a), Some(Admission::All)));
    gate.record_failure(&refused());
    gate.record_open_failed();
    assert!(gate.admission(&a).is_none());
    gate.state.send_replace(State::Trial);
    let first = gate.admission(&a);
    assert!(matches!(first, Some(Admission::Trial(_))));
    assert!(gate.admission(&a).is_none(), "one slot of a pool");
    assert!(matches!(gate.admission(&b), Some(Admission::Trial(_))));
    let waiting = gate.clone();
    let second = tokio::spawn(async move { waiting.wait_for_admission(&pool("a")).await });
    drop(first);
    let second = timeout(Duration::from_secs(5), second).await.unwrap().unwrap();
    assert!(matches!(second, Admission::Trial(_)), "the next slot takes the permit");
    gate.record_open_written();
    assert!(gate.is_open());
    timeout(Duration::from_secs(5), gate.wait_for_change(&second)).await.unwrap();
    assert!(matches!(gate.admission(&a), Some(Admission::All)));
}

#[tokio::test]
async fn an_open_that_was_written_before_the_gate_closed_does_not_open_it() {
    let gate = gate();
    gate.record_failure(&refused());
    gate.record_open_written();
    assert!(!gate.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_trial_in_which_nothing_fails_ends_and_forgets_the_failures_before() {
    let gate = gate();
    gate.record_open_failed();
    gate.failed_trials.store(6, Ordering::Relaxed);
    gate.state.send_replace(State::Trial);
    gate.end_idle_trial().await;
    assert!(gate.is_open());
    assert_eq!(gate.failed_trials.load(Ordering::Relaxed), 0);
    assert!(!gate.open_was_refused.load(Ordering::Relaxed));
}

/// Returns a gate at the end of a long outage of opens, whose probes are committed.
fn after_many_trials() -> (Gate, tokio::task::JoinHandle<()>) {
    let gate = gate();
    gate.record_open_failed();
    gate.failed_trials.store(u32::MAX / 2, Ordering::Relaxed);
    let probing = gate.clone();
    let probes = async move { probing.run(|| async { Ok(true) }).await };
    (gate, tokio::spawn(probes))
}

#[tokio::test(start_paused = true)]
async fn settlements_wait_for_a_probe_and_consumption_alone_for_the_doubled_pause() {
    let (gate, probes) = after_many_trials();
    gate.record_failure(&refused());
    let closed = Instant::now();
    timeout(Duration::from_secs(2), gate.wait_for_writes()).await.unwrap();
    assert!(gate.admission(&pool("a")).is_none(), "no trial yet");
    // Another statement that fails meanwhile, such as a settlement, does not postpone the trial.
    sleep(Duration::from_secs(20)).await;
    gate.record_failure(&refused());
    gate.wait_for_admission(&pool("a")).await;
    assert_eq!(closed.elapsed().as_secs(), MAX_TRIAL_PAUSE.as_secs());
    probes.abort();
}

#[tokio::test(start_paused = true)]
async fn an_open_that_is_written_before_the_trial_opens_the_gate() {
    let (gate, probes) = after_many_trials();
    gate.record_failure(&refused());
    gate.wait_for_writes().await;
    gate.record_open_written();
    assert!(gate.is_open());
    probes.abort();
}
