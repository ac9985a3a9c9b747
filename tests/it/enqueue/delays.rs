//! Executions that are enqueued for later cost nothing until then, and start then.

use std::time::Duration;

use chrono::TimeDelta;
use sexton_client::{Client, Enqueue, State};
use sexton_model::job::Overlap;
use sexton_service::clock;
use sexton_store::{relay, status, waiters};
use sexton_tests::platform::Platform;

use super::{Fixture, charge};
use crate::process::{FINAL_TIMEOUT, by_hand};

const DAY: Duration = Duration::from_hours(24);

async fn enqueue_later(f: &Fixture, count: usize) {
    let all: Vec<Enqueue> = (0..count).map(|_| charge().delay(DAY)).collect();
    let mut connection = f.connect().await;
    Client::new().enqueue_many(&mut connection, &all).await.unwrap();
}

#[tokio::test]
async fn the_relay_sees_when_the_next_is_due_and_takes_it_then() {
    let f = Fixture::new().await;
    enqueue_later(&f, 3).await;
    let first = charge().delay(Duration::from_hours(1));
    let id = f.enqueue(&first).await.unwrap().execution_id;
    let found = relay::find_destinations(f.db.store(), None, 10, None).await.unwrap();
    assert_eq!((found.due.len(), found.not_due.len()), (0, 1));
    let next = found.next_due.unwrap();
    assert!(next > Duration::from_mins(59) && next <= Duration::from_hours(1), "{next:?}");
    let in_an_hour = Some(clock::now() + TimeDelta::minutes(61));
    let found = relay::find_destinations(f.db.store(), None, 10, in_an_hour).await.unwrap();
    assert_eq!(found.due.len(), 1);
    assert!(found.next_due.unwrap() > Duration::from_hours(22), "behind the due one: {found:?}");
    let quota = [(found.due[0].clone(), 10)];
    let batch = relay::take_batch(f.db.store(), &quota, in_an_hour).await.unwrap();
    let taken: Vec<_> = batch.tickets.iter().map(|one| one.ticket.execution_id.get()).collect();
    assert_eq!(taken, [id]);
}

#[tokio::test]
async fn what_is_enqueued_for_later_is_neither_waiting_nor_under_way() {
    let f = Fixture::new().await;
    for overlap in [Overlap::Allow, Overlap::Skip, Overlap::Queue] {
        let set = sqlx::query("UPDATE sexton.jobs SET overlap = $1").bind(overlap.as_str());
        set.execute(f.pool()).await.unwrap();
        enqueue_later(&f, 2).await;
    }
    let overview = status::overview(f.db.store(), None).await.unwrap();
    assert_eq!((overview.unpublished, overview.oldest_unpublished_ms), (0, None));
    let pools = status::pools(f.db.store(), None).await.unwrap();
    assert_eq!((pools[0].pending, pools[0].waiting), (0, 0));
    let waiting = waiters::find_waiting(f.db.store(), 10, None).await.unwrap();
    assert_eq!((waiting.jobs, waiting.free.len()), (0, 0));
    assert!(waiting.next.unwrap() > Duration::from_hours(23), "{waiting:?}");
    // The job is free for one that is due now, though others of it are enqueued.
    f.enqueue(&charge()).await.unwrap();
    let waiting = waiters::find_waiting(f.db.store(), 10, None).await.unwrap();
    assert_eq!((waiting.jobs, waiting.free.len()), (1, 1));
    let admission = waiters::admit(f.db.store(), &waiting.free, None).await.unwrap();
    assert_eq!(admission.admitted(), 1);
    admission.commit().await.unwrap();
    let waiting = waiters::find_waiting(f.db.store(), 10, None).await.unwrap();
    assert_eq!((waiting.jobs, waiting.free.len()), (0, 0), "one at a time");
    let mut connection = f.connect().await;
    let demand = Client::new().demand(&mut connection, "default").await.unwrap();
    assert_eq!((demand.waiting, demand.running), (1, 0), "{demand:?}");
}

#[tokio::test]
async fn an_execution_starts_when_it_is_due_whether_its_job_runs_one_at_a_time_or_not() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\nnoop = true\n");
    for (job, policy) in [("a.free", "overlap = \"allow\""), ("a.queued", "overlap = \"queue\"")] {
        platform.apply(&by_hand(job, "work", policy)).await.unwrap();
    }
    let mut scheduler = platform.start_scheduler("s", &[]).unwrap();
    let mut worker = platform.start_worker("w", &[]).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    let client = Client::new();
    let mut connection = platform.store().pool().acquire().await.unwrap();
    for job in ["a.free", "a.queued"] {
        let now = client.enqueue(&mut connection, &Enqueue::new(job)).await.unwrap();
        let delay = Duration::from_secs(3);
        let later = client.enqueue(&mut connection, &Enqueue::new(job).delay(delay)).await.unwrap();
        for id in [now.execution_id, later.execution_id] {
            let ended = client.wait_for(&mut connection, id, FINAL_TIMEOUT).await.unwrap();
            assert_eq!(ended.state(), State::Succeeded, "{job}: {ended:?}");
            let late = ended.started_at.unwrap() - ended.scheduled_for;
            assert!(late >= TimeDelta::zero(), "{job} began {late} early");
        }
    }
}
