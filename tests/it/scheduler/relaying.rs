//! The relay: every unpublished ticket, to the right place, in nominal order, not more often than needed.

use std::time::Duration;

use chrono::TimeDelta;
use lapin::options::{QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use sexton_broker::{Endpoint, Link, LinkSettings, PoolName, Timeouts};
use sexton_model::state::State;
use sexton_scheduler::background_loop::{BackgroundLoop, Pause};
use sexton_scheduler::publish::relay::MAX_BATCH_TICKETS;
use sexton_store::relay::mark_published;
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::namespace::TestNamespace;
use sexton_tests::proxy::Proxy;
use sexton_tests::relaying::take_due;
use tokio::time::Instant;

use super::{Fixture, at, now, ticket_of};

#[tokio::test]
async fn the_relay_publishes_tickets_in_nominal_order() {
    let f = Fixture::new().await;
    let job = f.any_job().await;
    let mut expected = Vec::new();
    for second in [40, 10, 30, 20, 0] {
        let mut execution = NewExecution::new(job, State::Pending, at(0));
        execution.scheduled_for = at(second);
        expected.push((second, f.insert(execution).await));
    }
    expected.sort_by_key(|(second, _)| *second);
    let relayed = f.relay().run_once(now(100)).await.unwrap();
    assert_eq!((relayed.taken, relayed.marked), (5, 5));
    let expected: Vec<_> = expected.into_iter().map(|(_, id)| ticket_of(id, 1)).collect();
    assert_eq!(f.tickets().await, expected);
}

#[tokio::test]
async fn each_state_has_its_queue_and_the_ticket_bears_the_rows_number() {
    let f = Fixture::new().await;
    let job = f.any_job().await;
    let waiting = f.insert(NewExecution::new(job, State::Retrying, at(30)).attempt(2)).await;
    let due = f.insert(NewExecution::new(job, State::Retrying, at(0)).attempt(3)).await;
    let failed = f.insert(NewExecution::new(job, State::Failed, at(0)).attempt(5)).await;
    f.execution(State::Succeeded, 0).await;
    f.execution(State::Running, 0).await;
    sqlx::query("UPDATE sexton.executions SET relay_after = to_timestamp(1800000000)")
        .execute(f.db.pool())
        .await
        .unwrap();
    assert_eq!(f.relay().run_once(now(0)).await.unwrap().published, 3);
    assert_eq!(f.tickets().await, [ticket_of(due, 3)]);
    assert_eq!(f.take_all(&f.namespace.retry(30_000)).await, [ticket_of(waiting, 2)]);
    assert_eq!(f.take_all(&f.namespace.failed()).await, [ticket_of(failed, 5)]);
}

#[tokio::test]
async fn a_mark_changes_nothing_in_a_row_that_has_moved_on() {
    let f = Fixture::new().await;
    let id = f.execution(State::Pending, 0).await;
    sqlx::query("UPDATE sexton.executions SET rev = rev + 1").execute(f.db.pool()).await.unwrap();
    assert_eq!(mark_published(&f.store(), &[(id, 1)], now(1)).await.unwrap(), 0);
    assert_eq!(f.state(id).await, "pending/1, unpublished");
    assert_eq!(mark_published(&f.store(), &[(id, 2)], now(1)).await.unwrap(), 1);
    assert_eq!(mark_published(&f.store(), &[(id, 2)], now(2)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_ticket_taken_by_another_relay_is_left_to_it_for_half_a_minute() {
    let f = Fixture::new().await;
    f.execution(State::Pending, 0).await;
    // It died after the taking.
    let taken = take_due(&f.store(), 10, now(0)).await.unwrap();
    assert_eq!(taken.tickets.len(), 1);
    assert_eq!(f.relay().run_once(now(29)).await.unwrap().taken, 0);
    assert_eq!(f.relay().run_once(now(30)).await.unwrap().marked, 1);
}

#[tokio::test]
async fn the_relay_drains_a_backlog_at_a_bounded_rate() {
    let f = Fixture::new().await;
    let job = f.any_job().await;
    sqlx::query(
        "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
             params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
         SELECT gen_random_uuid(), $1, n::text, $2, 'pending', 'work', 'default', '{}', n::text,
             'test:1', $2, $2, $2 FROM generate_series(1, 700) n",
    )
    .bind(job.get())
    .bind(at(0))
    .execute(f.db.pool())
    .await
    .unwrap();
    let relay = f.relay();
    let first = relay.run_once(now(0)).await.unwrap();
    assert_eq!(first.marked, MAX_BATCH_TICKETS as u64);
    assert!(matches!(relay.pause(&first), Pause::Exactly(rest) if rest.as_millis() == 50));
    let second = relay.run_once(now(0)).await.unwrap();
    assert_eq!(second.marked, 200);
    assert!(matches!(relay.pause(&second), Pause::AtMost(_)));
}

/// What is enqueued for later is published when it is due, and not at the next poll.
#[tokio::test]
async fn the_relay_pauses_no_longer_than_until_the_next_ticket_is_due() {
    let f = Fixture::new().await;
    f.execution(State::Pending, 0).await;
    let relay = f.relay();
    for (due_in, pause) in [
        (400, Pause::Due(Duration::from_millis(400))),
        // However many there are, each due at another instant.
        (1, Pause::Due(Duration::from_millis(5))),
        (5_000, Pause::AtMost(Duration::from_secs(1))),
    ] {
        let due = at(0) + TimeDelta::milliseconds(due_in);
        sqlx::query("UPDATE sexton.executions SET relay_after = $1")
            .bind(due)
            .execute(f.db.pool())
            .await
            .unwrap();
        let relayed = relay.run_once(now(0)).await.unwrap();
        assert_eq!((relayed.taken, relay.pause(&relayed)), (0, pause), "{due_in} ms");
    }
}

#[tokio::test]
async fn a_refused_ticket_backs_off_and_delays_no_other() {
    let f = Fixture::new().await;
    let mut full = NewJob::new("a.full");
    full.pool = "full".to_owned();
    let full = f.job(full).await;
    let refused = f.insert(NewExecution::new(full, State::Pending, at(0)).published()).await;
    sqlx::query("UPDATE sexton.executions SET ticket_published_at = NULL")
        .execute(f.db.pool())
        .await
        .unwrap();
    let good = f.execution(State::Pending, 0).await;
    // A queue of that name that takes nothing, as one whose length an operator has limited.
    f.link.ensure_pools(&["full".parse().unwrap()]).await.unwrap();
    let queue = format!("{}.full", f.namespace.main());
    f.raw.channel.queue_delete((*queue).into(), QueueDeleteOptions::default()).await.unwrap();
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongLongInt(0));
    arguments.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
    let options = QueueDeclareOptions::durable();
    f.raw.channel.queue_declare((*queue).into(), options, arguments).await.unwrap();

    let relay = f.relay();
    let relayed = relay.run_once(now(0)).await.unwrap();
    assert_eq!((relayed.marked, relayed.postponed), (1, 1));
    assert_eq!(f.state(good).await, "pending/1");
    assert_eq!(f.state(refused).await, "pending/1, unpublished");
    assert_eq!(relay.run_once(now(4)).await.unwrap().taken, 0);
    assert_eq!(relay.run_once(now(5)).await.unwrap().postponed, 1);
    assert_eq!(relay.run_once(now(14)).await.unwrap().taken, 0, "twice as long now");
    f.raw.channel.queue_delete((*queue).into(), QueueDeleteOptions::default()).await.unwrap();
}

#[tokio::test]
async fn an_unconfirmed_ticket_is_distinguished_from_an_unreachable_broker() {
    let broker = sexton_tests::servers::shared().await.unwrap().amqp_url.clone();
    let proxy = Proxy::before(&broker).await.unwrap();
    let namespace = TestNamespace::new();
    let link = Link::start(LinkSettings {
        endpoint: Endpoint::parse(&proxy.url(&broker)).unwrap(),
        name: "test".to_owned(),
        namespace: namespace.namespace().clone(),
        pools: vec![PoolName::default_pool()],
        timeouts: Timeouts { confirm: Duration::from_millis(500), ..Timeouts::default() },
    });
    let f = Fixture::with(namespace, link).await;
    assert!(f.link.up().await.is_some());
    let id = f.insert(NewExecution::new(f.any_job().await, State::Pending, at(0))).await;
    let relay = f.relay();
    let swallowed = proxy.swallow_answers_matching(id.to_string().as_bytes(), 1);
    let relayed = relay.run_once(now(0)).await.unwrap();
    assert!(swallowed.is_over());
    assert_eq!((relayed.taken, relayed.published, relayed.postponed), (1, 0, 1));
    // It waits for as long as a refused one, not for the half minute of one that is not known.
    assert_eq!(relay.run_once(now(4)).await.unwrap().taken, 0);
    // Nothing is held against the queue on the next connection.
    proxy.cut();
    let until = Instant::now() + Duration::from_mins(1);
    let mut hour = 3_600;
    let mut was_down = false;
    while relay.run_once(now(hour)).await.map_or(0, |relayed| relayed.marked) == 0 {
        assert!(Instant::now() < until, "it is not published");
        if !was_down && !f.link.is_up() {
            was_down = true;
            proxy.pass();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        hour += 3_600;
    }
}

#[tokio::test]
async fn tickets_of_a_pool_that_nobody_has_declared_find_a_queue() {
    let f = Fixture::new().await;
    let mut job = NewJob::new("the.job");
    job.pool = "batch".to_owned();
    let job = f.job(job).await;
    let id = f.insert(NewExecution::new(job, State::Pending, at(0))).await;
    assert_eq!(f.relay().run_once(now(0)).await.unwrap().marked, 1);
    let queue = format!("{}.batch", f.namespace.main());
    assert_eq!(f.take_all(&queue).await, [ticket_of(id, 1)]);
}

#[tokio::test]
async fn an_unreadable_row_delays_no_other() {
    let f = Fixture::new().await;
    let mut bad = NewJob::new("a.bad");
    bad.pool = "Not A Pool".to_owned();
    let bad = f.job(bad).await;
    f.insert(NewExecution::new(bad, State::Pending, at(0))).await;
    let good = f.execution(State::Pending, 1).await;
    let relayed = f.relay().run_once(now(1)).await.unwrap();
    assert_eq!((relayed.taken, relayed.marked, relayed.unreadable), (2, 1, 1));
    assert_eq!(f.tickets().await, [ticket_of(good, 1)]);
}
