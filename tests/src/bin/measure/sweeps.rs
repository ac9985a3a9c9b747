//! How long one pass of the sweep takes over a long failed queue, and what it occupies.
//!
//! So many failed executions are parked by a scheduler, which then ends. A hundred of the messages are taken by
//! hand, and one that no row knows is put behind all the others. The next scheduler sweeps at once: its pass begins
//! when that message's row says so, has come to the end of the queue when the row is written, and is over when
//! what is missing is published again.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, Utc};
use lapin::options::{BasicAckOptions, BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use sexton_broker::names::failed_queue;
use sexton_tests::platform::{Platform, Program};

use super::figures::Figures;
use super::requeues::failed;
use super::resident_mb;

/// Messages that are taken by hand.
const MISSING: i64 = 100;
/// How long the pass may take.
const DEADLINE: Duration = Duration::from_hours(1);
/// How often memory is read.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// Measures with so many failed executions, on a database of its own.
pub(super) async fn measure(
    database_server: &str,
    amqp_url: &str,
    count: i64,
    figures: &mut Figures,
) -> Result<()> {
    let platform = Platform::on(database_server, amqp_url).await?;
    let mut first = platform.start_scheduler("first", &[])?;
    first.ready().await;
    failed(&platform, "swept", count).await?;
    first.terminate();
    first.exit(DEADLINE).await;
    disturb(&platform).await?;

    let messages = count - MISSING + 1;
    let mut scheduler = platform.start_scheduler("scheduler", &[])?;
    scheduler.ready().await;
    let (pass, most_mb) = swept(&platform, &scheduler).await?;
    let seconds = |until: DateTime<Utc>| (until - pass.began).as_seconds_f64();
    let rate = messages as f64 / seconds(pass.at_end);
    figures.add(
        format!("the sweep goes through {messages} messages"),
        format!("{:.1} s, {rate:.0} a second", seconds(pass.at_end)),
    );
    figures.add(
        format!("from its beginning until the {MISSING} missing ones are published again"),
        format!("{:.1} s", seconds(pass.mended)),
    );
    figures.add("scheduler, at most meanwhile", format!("{most_mb:.1} MB resident"));
    scheduler.terminate();
    scheduler.exit(DEADLINE).await;
    Ok(())
}

/// Takes some messages, and puts one behind the others that is nobody's.
async fn disturb(platform: &Platform) -> Result<()> {
    let connection =
        Connection::connect(platform.amqp_url(), ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let queue = failed_queue(platform.namespace());
    for _ in 0..MISSING {
        let taken = channel.basic_get((*queue).into(), BasicGetOptions::default()).await?;
        let taken = taken.context("the failed queue is too short")?;
        taken.delivery.acker.ack(BasicAckOptions::default()).await?;
    }
    let properties = BasicProperties::default().with_delivery_mode(2);
    let options = BasicPublishOptions::default();
    let sent = channel.basic_publish("".into(), queue.into(), options, b"nobody's", properties);
    sent.await?.await?;
    Ok(())
}

/// When a pass began, came to the last message, and when what was missing was published.
struct Swept {
    began: DateTime<Utc>,
    at_end: DateTime<Utc>,
    mended: DateTime<Utc>,
}

/// Waits until the pass is over; with the scheduler's memory, at most.
async fn swept(platform: &Platform, scheduler: &Program) -> Result<(Swept, f64)> {
    let (looking, mut most_mb) = (Instant::now(), 0.0_f64);
    loop {
        most_mb = most_mb.max(resident_mb(scheduler)?);
        let at_end: Option<(DateTime<Utc>, DateTime<Utc>)> =
            sqlx::query_as("SELECT last_seen, first_seen FROM sexton.unknown_messages")
                .fetch_optional(platform.store().pool())
                .await?;
        // Asked no sooner, since it reads every row.
        if let Some((began, at_end)) = at_end {
            let again: (i64, Option<DateTime<Utc>>) = sqlx::query_as(
                "SELECT count(*), max(ticket_published_at) FROM sexton.executions
                 WHERE ticket_published_at > $1",
            )
            .bind(began)
            .fetch_one(platform.store().pool())
            .await?;
            if let (MISSING, Some(mended)) = again {
                return Ok((Swept { began, at_end, mended }, most_mb));
            }
        }
        ensure!(looking.elapsed() < DEADLINE, "the pass is not over within {DEADLINE:?}");
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
}
