use sexton_service::clock;
use sexton_service::health::Readiness;
use tokio::time::timeout;

use super::*;

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
    let pauses: Vec<_> = (0..8).map(|rounds| pause(rounds, longest).as_millis()).collect();
    assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    assert_eq!(pause(u32::MAX, longest), longest);
}

#[tokio::test]
async fn in_a_trial_one_slot_of_each_pool_consumes_until_an_open_is_written() {
    let gate = gate();
    let (a, b) = (pool("a"), pool("b"));
    assert!(matches!(gate.admission(&a), Some(Admission::All)));
    gate.failed(&refused());
    gate.open_failed();
    assert!(gate.admission(&a).is_none());
    gate.state.send_replace(State::Trial);
    let first = gate.admission(&a);
    assert!(matches!(first, Some(Admission::Trial(_))));
    assert!(gate.admission(&a).is_none(), "one slot of a pool");
    assert!(matches!(gate.admission(&b), Some(Admission::Trial(_))));
    let waiting = gate.clone();
    let second = tokio::spawn(async move { waiting.admitted(&pool("a")).await });
    drop(first);
    let second = timeout(Duration::from_secs(5), second).await.unwrap().unwrap();
    assert!(matches!(second, Admission::Trial(_)), "the next slot takes the permit");
    gate.open_written();
    assert!(gate.is_open());
    timeout(Duration::from_secs(5), gate.ends(&second)).await.unwrap();
    assert!(matches!(gate.admission(&a), Some(Admission::All)));
}

#[tokio::test]
async fn an_open_that_was_written_before_the_gate_closed_does_not_open_it() {
    let gate = gate();
    gate.failed(&refused());
    gate.open_written();
    assert!(!gate.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_trial_without_a_ticket_ends_and_one_with_a_ticket_does_not() {
    let gate = gate();
    gate.state.send_replace(State::Trial);
    let permit = gate.permit(&pool("a")).unwrap();
    permit.has_ticket();
    assert!(timeout(IDLE_TRIAL * 10, gate.end_idle_trial()).await.is_err());
    drop(permit);
    gate.end_idle_trial().await;
    assert!(gate.is_open());
}
