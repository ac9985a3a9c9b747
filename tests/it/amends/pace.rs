//! How fast a bulk goes.

use serde_json::json;
use sexton_model::bulk::Kind;
use sexton_model::graveyard::Filter;
use sexton_scheduler::step::Step as _;
use sexton_store::bulk::{self, NewBulk};

use super::{BY, Fixture, now};

#[tokio::test]
async fn a_rate_is_kept_by_the_database_s_clock_whichever_scheduler_goes_on() {
    let f = Fixture::new().await;
    f.many(1_000).await;
    let filter = json!(Filter::default());
    let rate = Some("50/s".parse().unwrap());
    let asked = NewBulk { rate, ..Fixture::asked(Kind::Requeue, &filter) };
    let id = bulk::create(f.store(), &asked, BY).await.unwrap();
    f.scheduler().run_once(now(2_000)).await.unwrap();
    // Each instant a scheduler of its own, which remembers nothing, and asks more than once.
    for (second, done) in [(0, 1), (1, 51), (2, 101), (5, 251)] {
        for _ in 0..3 {
            let scheduler = f.scheduler();
            let round = scheduler.run_once(now(2_000 + second)).await.unwrap();
            assert!(round.rest > std::time::Duration::ZERO, "{round:?}");
        }
        assert_eq!(f.bulk(id).await.done, done, "after {second} s");
    }
    // Nobody was at work for an hour: no flood.
    let scheduler = f.scheduler();
    scheduler.run_once(now(6_000)).await.unwrap();
    scheduler.run_once(now(6_000)).await.unwrap();
    assert_eq!(f.bulk(id).await.done, 751);
    scheduler.run_once(now(6_001)).await.unwrap();
    assert_eq!(f.bulk(id).await.done, 801);
}
