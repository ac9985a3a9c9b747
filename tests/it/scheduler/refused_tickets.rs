//! Queues that refuse, and queues that do not confirm: they hold up no other.

use std::sync::Arc;
use std::time::Duration;

use lapin::options::{QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use sexton_broker::{Link, LinkSettings, Timeouts};
use sexton_model::delay_queues::DELAY_QUEUES_MS;
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::state::State;
use sexton_scheduler::background_loop::{BackgroundLoop, Pause};
use sexton_scheduler::publish::dispatch::dispatch;
use sexton_scheduler::publish::relay::{MAX_BATCH_TICKETS, Relay};
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::namespace::TestNamespace;
use sexton_tests::relaying::take_due;
use sexton_tests::virtual_host::VirtualHost;
use tokio::time::Instant;

use super::{Fixture, at, now};

/// Refused tickets, older than all others.
const REFUSED: i64 = 5_000;
/// Of the delay queues.
const LONGEST_DELAY_MS: u64 = DELAY_QUEUES_MS[DELAY_QUEUES_MS.len() - 1];

/// A platform with a pool whose queue takes nothing, as one whose length an operator has limited, and
/// another pool.
struct Scene {
    f: Fixture,
    full: JobId,
    queue: String,
}

impl Fixture {
    /// A queue anew, which takes so many messages and no more, or any number.
    async fn declare(&self, queue: &str, most: Option<i64>) {
        let options = QueueDeleteOptions::default();
        self.raw.channel.queue_delete(queue.into(), options).await.unwrap();
        let mut arguments = FieldTable::default();
        if let Some(most) = most {
            arguments.insert("x-max-length".into(), AMQPValue::LongLongInt(most));
            let refuse = AMQPValue::LongString("reject-publish".into());
            arguments.insert("x-overflow".into(), refuse);
        }
        let options = QueueDeclareOptions::durable();
        self.raw.channel.queue_declare(queue.into(), options, arguments).await.unwrap();
    }
}

impl Scene {
    async fn new() -> Self {
        let f = Fixture::new().await;
        f.link.ensure_pools(&["full".parse().unwrap()]).await.unwrap();
        let mut job = NewJob::new("a.full");
        "full".clone_into(&mut job.pool);
        let full = f.job(job).await;
        let queue = format!("{}.full", f.namespace.main());
        let scene = Self { f, full, queue };
        scene.f.declare(&scene.queue, Some(0)).await;
        scene
    }

    /// So many unpublished tickets for the queue, a year older than any other.
    async fn refused(&self, count: i64) {
        sqlx::query(
            "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
                 params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
             SELECT gen_random_uuid(), $1, n::text, $2 - interval '1 year', 'pending', 'work', 'full', '{}',
                 n::text, 'test:1', $2, $2 - interval '1 year', $2 FROM generate_series(1, $3) n",
        )
        .bind(self.full.get())
        .bind(at(0))
        .bind(count)
        .execute(self.f.db.pool())
        .await
        .unwrap();
    }

    async fn end(self) {
        let channel = &self.f.raw.channel;
        let name = self.queue.as_str().into();
        channel.queue_delete(name, QueueDeleteOptions::default()).await.unwrap();
    }
}

#[tokio::test]
async fn thousands_of_refused_tickets_delay_no_other_queue_by_a_round() {
    let scene = Scene::new().await;
    let f = &scene.f;
    scene.refused(REFUSED).await;
    let relay = f.relay();
    let (mut refused, mut tried) = (0, 0);
    // Ten minutes; from its first round on the process has not met the queue before.
    for second in 0..600 {
        let healthy = f.execution(State::Pending, second).await;
        let relayed = relay.run_once(now(second)).await.unwrap();
        assert_eq!(f.state(healthy).await, "pending/1", "in round {second}");
        assert_eq!((relayed.published, relayed.marked), (1, 1));
        refused += relayed.postponed;
        tried += usize::from(relayed.postponed > 0);
        if second > 0 {
            assert!(relayed.taken <= 2, "a probe at most: {relayed:?}");
            assert_eq!(relay.pause(&relayed), Pause::AtMost(Duration::from_secs(1)));
        }
    }
    // After the first round a probe each half minute.
    assert!(
        (MAX_BATCH_TICKETS - 1..MAX_BATCH_TICKETS + 60).contains(&refused),
        "{refused} were refused"
    );
    assert!((15..40).contains(&tried), "{tried} rounds tried the queue");
    scene.end().await;
}

#[tokio::test]
async fn a_queue_that_has_room_again_gets_all_its_tickets_within_seconds() {
    let scene = Scene::new().await;
    scene.refused(2_000).await;
    let relay = scene.f.relay();
    for second in 0..120 {
        assert_eq!(relay.run_once(now(second)).await.unwrap().published, 0);
    }
    scene.f.declare(&scene.queue, None).await;
    let mut published = Vec::new();
    // The probe comes within half a minute, and what was refused five minutes later at the latest.
    for second in 120..460 {
        let relayed = relay.run_once(now(second)).await.unwrap();
        if relayed.published > 0 {
            published.push(relayed.published);
        }
        if relayed.more {
            assert_eq!(relay.pause(&relayed), Pause::Exactly(Duration::from_millis(250)));
        }
    }
    assert_eq!(published.iter().sum::<usize>(), 2_000, "{published:?}");
    assert_eq!(published[..9], [1, 2, 4, 8, 16, 32, 64, 128, 256], "slowly at first");
    scene.end().await;
}

#[tokio::test]
async fn a_ticket_that_is_always_refused_delays_its_destination_by_half_a_minute_at_most() {
    let f = Fixture::new().await;
    let job = f.any_job().await;
    // The tickets of retries go to several queues. The longest delay queue refuses, the others do not.
    let longest = f.namespace.retry(LONGEST_DELAY_MS);
    f.declare(&longest, Some(0)).await;
    let far = f.insert(NewExecution::new(job, State::Retrying, at(86_400)).attempt(2)).await;
    let unpublished = async |id: ExecutionId| f.state(id).await.ends_with("unpublished");
    let relay = f.relay();
    let (mut waited, mut one, mut alone) = (Vec::new(), None, 0);
    for second in 0..900 {
        if second == 0 {
            let due = "UPDATE sexton.executions SET relay_after = to_timestamp(1800000000)";
            sqlx::query(due).execute(f.db.pool()).await.unwrap();
        }
        // Not in each round, so that the other one is tried alone, too.
        if second % 7 == 3 && one.is_none() {
            let retry = NewExecution::new(job, State::Retrying, at(second)).attempt(2);
            one = Some((f.insert(retry).await, second));
        }
        let relayed = relay.run_once(now(second)).await.unwrap();
        alone += usize::from(relayed.postponed > 0 && relayed.published == 0);
        if let Some((id, begun)) = one
            && !unpublished(id).await
        {
            waited.push(second - begun);
            one = None;
        }
    }
    let most = waited.iter().max().unwrap();
    println!(
        "MEASURED {} tickets beside one that is always refused, {most} s at most",
        waited.len()
    );
    assert!(*most <= 30 && waited.len() > 30 && alone > 3, "{alone} times alone: {waited:?}");
    assert!(unpublished(far).await);
    f.raw.channel.queue_delete((*longest).into(), QueueDeleteOptions::default()).await.unwrap();
}

#[tokio::test]
async fn fresh_tickets_for_a_queue_that_refuses_are_left_to_the_relay() {
    let scene = Scene::new().await;
    let f = &scene.f;
    let (dispatch, mut dispatcher) = dispatch(Arc::clone(&f.outbox));
    scene.refused(3).await;
    let taken = take_due(&f.store(), 1, now(0)).await.unwrap().tickets;
    assert!(dispatch.offer(taken));
    let (sent, _) = dispatcher.publish_next(now(0)).await.unwrap().unwrap();
    assert_eq!((sent.refused.len(), sent.left_to_relay), (1, 0));
    let healthy = f.execution(State::Pending, 0).await;
    let taken = take_due(&f.store(), 10, now(0)).await.unwrap().tickets;
    assert_eq!(taken.len(), 3);
    assert!(dispatch.offer(taken));
    let (sent, marked) = dispatcher.publish_next(now(0)).await.unwrap().unwrap();
    assert_eq!((sent.refused.len(), sent.left_to_relay, marked), (0, 2, 1));
    assert_eq!(f.state(healthy).await, "pending/1");
    // The queue has room again; the relay finds out with one of them, and publishes all.
    scene.f.declare(&scene.queue, None).await;
    let relay = f.relay();
    let rounds = [1, 2].map(|_| relay.run_once(now(60)));
    let mut published = Vec::new();
    for round in rounds {
        published.push(round.await.unwrap().published);
    }
    assert_eq!(published, [1, 2]);
    // With no ticket left it is like any other: a fresh one need not wait for the relay.
    assert_eq!(relay.run_once(now(60)).await.unwrap().taken, 0);
    f.insert(NewExecution::new(scene.full, State::Pending, at(60))).await;
    let taken = take_due(&f.store(), 10, now(60)).await.unwrap().tickets;
    assert!(dispatch.offer(taken));
    let (sent, _) = dispatcher.publish_next(now(60)).await.unwrap().unwrap();
    assert_eq!((sent.published.len(), sent.left_to_relay), (1, 0));
    scene.end().await;
}

#[tokio::test]
async fn a_send_that_hangs_holds_up_its_own_destination_only() {
    const CONFIRM: Duration = Duration::from_secs(2);
    let host = VirtualHost::create().await.unwrap();
    let namespace = TestNamespace::on(host.url()).with_pool("silent".parse().unwrap());
    let link = Link::start(LinkSettings {
        timeouts: Timeouts { confirm: CONFIRM, probe: 4 * CONFIRM, ..Timeouts::default() },
        ..namespace.settings()
    });
    assert!(link.up().await.is_some());
    let f = Fixture::with(namespace, link).await;
    let mut job = NewJob::new("a.silent");
    "silent".clone_into(&mut job.pool);
    let job = f.job(job).await;
    let hung = f.insert(NewExecution::new(job, State::Pending, at(0))).await;
    host.suspend_queue(&format!("{}.silent", f.namespace.main())).await.unwrap();
    let relay = Relay::new(f.store(), Arc::clone(&f.outbox)).mark_delay(Duration::ZERO);
    let (end, mut second, mut beside) = (Instant::now() + Duration::from_mins(1), 0, 0);
    // Twenty tickets of the other pool, each published while a ticket for the silent queue is under way.
    while beside < 20 {
        assert!(Instant::now() < end, "only {beside} tickets");
        let healthy = f.execution(State::Pending, second).await;
        let began = Instant::now();
        let mut relayed = relay.run_once(now(second)).await.unwrap();
        while f.state(healthy).await != "pending/1" {
            assert!(began.elapsed() < 2 * CONFIRM, "it waits for the silent queue: {relayed:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
            relayed = relay.run_once(now(second)).await.unwrap();
        }
        beside = if relayed.under_way > 0 { beside + 1 } else { 0 };
        // Longer than a destination rests.
        second += 40;
    }
    assert_eq!(f.state(hung).await, "pending/1, unpublished");
}
