//! A PostgreSQL that answers and does not take the writes that tickets need.
//!
//! The broker counts each delivery that is returned, and parks a ticket after a hundred. So what is asserted is the
//! broker's own count of each message: it must not grow with the length of the outage. The two that last an hour are
//! run by hand: `--ignored servers::unwritable`.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use sexton_tests::platform::{Platform, Program};
use sexton_tests::servers::{PostgresOptions, PostgresServer, shared};

use tokio::time::Instant;

use super::{FINAL_TIMEOUT, private};
use crate::bad_input::probe::assert_sound;
use crate::bad_input::wire::{Message, Wire};
use crate::process::{count, until};

const CATALOGUE: &str = "[tasks.work]\ncommand = [\"/bin/true\"]\n";
const JOBS: &str = "[[job]]\nname = \"unwritable.work\"\ntask = \"work\"\noverlap = \"allow\"\n";
const TICKETS: u32 = 2;
const SLOTS: i64 = 2;
/// Once by each slot, before it has noticed that another's open was refused, and once when the worker ends.
const MAX_RETURNED: i64 = SLOTS + 1;
/// Refused opens, of which each would have cost a delivery or more.
const REFUSALS: i64 = 25;
/// Between two looks at whether a slot consumes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A server on which opens can be refused, with the class that PostgreSQL has for a full disk. A sequence counts
/// them, since what a refused transaction does to it stays.
const REFUSE_OPENS: &str = "
    CREATE SEQUENCE refused_opens;
    CREATE FUNCTION refuse_open() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM nextval('refused_opens');
        RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
    END $$;
    CREATE TRIGGER refuse_open BEFORE UPDATE OF state ON sexton.executions FOR EACH ROW
        WHEN (NEW.state = 'running') EXECUTE FUNCTION refuse_open()";

fn an_hour() -> Duration {
    let minutes = std::env::var("OUTAGE_MINUTES").ok().map(|text| text.parse().unwrap());
    Duration::from_mins(minutes.unwrap_or(60))
}

async fn execute(platform: &Platform, statements: &'static str) {
    sqlx::raw_sql(statements).execute(platform.store().pool()).await.unwrap();
}

/// A platform with tickets in its main queue, a scheduler, and no worker.
async fn with_tickets(database: &str) -> (Platform, Program, Wire) {
    let rabbit = shared().await.unwrap().amqp_url.clone();
    let mut platform = Platform::on(database, &rabbit).await.unwrap();
    platform.catalogue(CATALOGUE);
    platform.apply(JOBS).await.unwrap();
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    scheduler.ready().await;
    for _ in 0..TICKETS {
        platform.sexton_json(&["jobs", "trigger", "unwritable.work"]).await;
    }
    let wire = Wire::connect(&platform).await;
    waiting(&platform, &wire).await;
    (platform, scheduler, wire)
}

/// How many messages the tickets may be: one each, and a copy for each time that the reconciler published one again,
/// because it had been in no main queue for five minutes.
async fn allowed_messages(platform: &Platform) -> RangeInclusive<usize> {
    let counting =
        sqlx::query_scalar("SELECT coalesce(sum(reconcile_count), 0) FROM sexton.executions");
    let copies: i64 = counting.fetch_one(platform.store().pool()).await.unwrap();
    TICKETS as usize..=TICKETS as usize + usize::try_from(copies).unwrap()
}

/// Waits until every ticket is in the main queue and in nobody's hands.
async fn waiting(platform: &Platform, wire: &Wire) {
    let all = async || {
        let depth = wire.depth(wire.main()).await as usize;
        allowed_messages(platform).await.contains(&depth).then_some(())
    };
    platform.eventually("all tickets wait in their queue", FINAL_TIMEOUT, all).await;
}

/// The largest of the broker's counts; looking adds one to each.
async fn returned_at_most(platform: &Platform, wire: &Wire) -> i64 {
    let found = wire.look(wire.main()).await;
    assert!(allowed_messages(platform).await.contains(&found.len()), "{found:?}");
    let tickets: HashSet<_> = found.iter().map(|message| &message.id).collect();
    assert_eq!(tickets.len(), TICKETS as usize, "{found:?}");
    found.iter().map(|message| message.returned).max().unwrap()
}

async fn all_run(platform: &Platform, wire: &Wire, programs: &[&Program]) {
    until(platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", TICKETS.into())
        .await;
    assert_eq!(count(platform, "sexton.executions").await, i64::from(TICKETS));
    assert_eq!(wire.depth(wire.failed()).await, 0);
    for program in programs {
        assert_sound(program);
    }
}

async fn set_read_only(platform: &Platform, value: &'static str) {
    let set = format!("ALTER SYSTEM SET default_transaction_read_only = {value}");
    let pool = platform.store().pool();
    sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(pool).await.unwrap();
    execute(platform, "SELECT pg_reload_conf()").await;
    let shown = async || {
        let asking = sqlx::query_scalar("SELECT current_setting('default_transaction_read_only')");
        let now: String = asking.fetch_one(pool).await.unwrap();
        (now == value).then_some(())
    };
    platform.eventually("the server has read its settings", FINAL_TIMEOUT, shown).await;
}

/// `lasts` begins when the worker holds no ticket any more.
async fn read_only(lasts: Duration, env: &[(&str, &str)]) {
    let env = &[env, &[("WORKER_SLOTS", "2")]].concat();
    let _permit = private().await;
    let database = PostgresServer::start_private(PostgresOptions::default()).await.unwrap();
    let (platform, scheduler, wire) = with_tickets(database.url()).await;
    // Kept from the worker until the server refuses its opens.
    let mut tickets = Vec::new();
    while let Some(found) = wire.take(wire.main()).await {
        let (id, attempt) = (found.id.unwrap(), found.attempt.unwrap());
        let ticket = Message::new(found.body).id(id).header("sexton-attempt", attempt);
        tickets.push(ticket.header("sexton-schema", 1));
    }
    let mut worker = platform.start_worker("w1", env).unwrap();
    worker.ready().await;
    set_read_only(&platform, "on").await;
    wire.send(&tickets).await;
    let suspended = async || (wire.consumers(wire.main()).await == 0).then_some(());
    platform.eventually("no slot consumes", FINAL_TIMEOUT, suspended).await;
    waiting(&platform, &wire).await;
    let end = Instant::now() + lasts;
    while Instant::now() < end {
        tokio::time::sleep(POLL_INTERVAL.min(lasts)).await;
        assert_eq!(wire.consumers(wire.main()).await, 0);
    }
    let returned = returned_at_most(&platform, &wire).await;
    println!("MEASURED read-only for {lasts:?}: no ticket was returned more than {returned} times");
    assert!(returned < MAX_RETURNED, "{returned}");
    set_read_only(&platform, "off").await;
    all_run(&platform, &wire, &[&scheduler, &worker]).await;
    drop((scheduler, worker));
    database.end().await.unwrap();
}

/// Ends when so many opens were refused and that much time has passed.
async fn refused_opens(refusals: i64, lasts: Duration, env: &[(&str, &str)]) {
    let env = &[env, &[("WORKER_SLOTS", "2")]].concat();
    let database = shared().await.unwrap().database_url.clone();
    let (platform, scheduler, wire) = with_tickets(&database).await;
    execute(&platform, REFUSE_OPENS).await;
    let mut worker = platform.start_worker("w1", env).unwrap();
    let end = Instant::now() + lasts;
    let refused = async || {
        let counting = sqlx::query_scalar("SELECT last_value FROM refused_opens");
        let refused: i64 = counting.fetch_one(platform.store().pool()).await.unwrap();
        (refused >= refusals).then_some(refused)
    };
    platform.eventually("so many opens are refused", FINAL_TIMEOUT, refused).await;
    tokio::time::sleep_until(end).await;
    let refused = refused().await.unwrap();
    worker.terminate();
    assert!(worker.exit(FINAL_TIMEOUT).await.success());
    waiting(&platform, &wire).await;
    let returned = returned_at_most(&platform, &wire).await;
    println!("MEASURED {refused} refused opens: no ticket was returned more than {returned} times");
    assert!(returned <= MAX_RETURNED, "{returned}");
    execute(&platform, "DROP TRIGGER refuse_open ON sexton.executions").await;
    let mut worker = platform.start_worker("w2", env).unwrap();
    worker.ready().await;
    all_run(&platform, &wire, &[&scheduler, &worker]).await;
}

#[tokio::test]
async fn a_read_only_database_costs_a_ticket_one_delivery_and_parks_none() {
    read_only(Duration::from_secs(5), &[("LEASE_MS", "2000"), ("WORKER_PREFETCH", "4")]).await;
}

#[tokio::test]
async fn a_database_that_refuses_opens_costs_a_ticket_no_more_deliveries_the_longer_it_does() {
    let env = [
        ("LEASE_MS", "2000"),
        ("WORKER_PREFETCH", "4"),
        ("GATE_PAUSE_MS", "500"),
        ("ACK_DEADLINE_MS", "3000"),
        ("SET_ASIDE_MS", "1000"),
    ];
    refused_opens(REFUSALS, Duration::ZERO, &env).await;
}

/// Refuses opens of the oldest execution alone, with the class of an error that `raise` gives it.
fn refuse_the_oldest(raise: &str) -> String {
    format!(
        "CREATE SEQUENCE refused_opens;
         CREATE TABLE culprit AS SELECT id FROM sexton.executions ORDER BY id LIMIT 1;
         CREATE FUNCTION refuse_open() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF NEW.id = (SELECT id FROM culprit) THEN
                 PERFORM nextval('refused_opens');
                 RAISE EXCEPTION 'this one is refused' USING ERRCODE = '{raise}';
             END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER refuse_open BEFORE UPDATE OF state ON sexton.executions FOR EACH ROW
        WHEN (NEW.state = 'running') EXECUTE FUNCTION refuse_open()"
    )
}

/// Two slots, a queue of tickets, and the first of them is refused for a reason of its own.
async fn one_is_refused(class: &str) -> (Platform, Program, Program, Wire) {
    let database = shared().await.unwrap().database_url.clone();
    let (platform, scheduler, wire) = with_tickets(&database).await;
    let refusing = sqlx::AssertSqlSafe(refuse_the_oldest(class));
    sqlx::raw_sql(refusing).execute(platform.store().pool()).await.unwrap();
    let mut worker = platform.start_worker("w1", &[("WORKER_SLOTS", "2")]).unwrap();
    worker.ready().await;
    (platform, scheduler, worker, wire)
}

/// Triggers some executions one after the other, each when the one before has run.
async fn others_run(platform: &Platform, from: i64, to: i64) {
    for count in from..=to {
        until(platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", count).await;
        platform.sexton_json(&["jobs", "trigger", "unwritable.work"]).await;
    }
    until(platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", to + 1).await;
}

#[tokio::test]
async fn a_permanently_refused_ticket_fails_and_occupies_no_slot() {
    let (platform, scheduler, worker, wire) = one_is_refused("P0001").await;
    others_run(&platform, 1, 10).await;
    let failed = "sexton.executions WHERE state = 'failed' AND error_class = 'unopenable'
                  AND error_message LIKE '%this one is refused%'";
    until(&platform, failed, 1).await;
    let parked = async || (wire.depth(wire.failed()).await == 1).then_some(());
    platform.eventually("it is parked", FINAL_TIMEOUT, parked).await;
    assert_eq!(wire.depth(wire.main()).await, 0);
    assert_sound(&scheduler);
    assert_sound(&worker);
}

#[tokio::test]
async fn a_temporarily_refused_ticket_waits_and_occupies_no_slot() {
    let (platform, scheduler, worker, wire) = one_is_refused("53100").await;
    others_run(&platform, 1, 20).await;
    execute(&platform, "DROP TRIGGER refuse_open ON sexton.executions").await;
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", 22).await;
    assert_eq!((wire.depth(wire.failed()).await, wire.depth(wire.main()).await), (0, 0));
    assert_sound(&scheduler);
    assert_sound(&worker);
}

#[tokio::test]
#[ignore = "an hour, or OUTAGE_MINUTES"]
async fn an_hour_of_a_read_only_database_parks_nothing() {
    read_only(an_hour(), &[]).await;
}

#[tokio::test]
#[ignore = "an hour, or OUTAGE_MINUTES"]
async fn an_hour_of_refused_opens_parks_nothing() {
    refused_opens(1, an_hour(), &[]).await;
}
