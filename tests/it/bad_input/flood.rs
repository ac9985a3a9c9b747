//! Very large and very many messages that nobody can read.

use std::time::Duration;

use super::probe::{assert_sound, lines, peak, processor_time, resident};
use super::wire::{Message, Wire};
use super::{one_slot, platform, succeeded};

const MIB: u64 = 1024 * 1024;

#[tokio::test]
async fn a_body_of_fifteen_mebibytes_is_parked_byte_for_byte() {
    let platform = platform().await;
    let worker = one_slot(&platform).await;
    let before = resident(&worker);
    let wire = Wire::connect(&platform).await;
    // Not one byte repeated: a frame that came twice or not at all would show.
    let large: Vec<u8> = (0..15 * MIB).map(|at| (at % 251) as u8).collect();
    let good = Message::new(r#"{"type":"report"}"#);
    wire.send(&[Message::new(large.clone()).id("large"), good.clone().id("behind")]).await;
    succeeded(&platform, "behind").await;
    let parked = wire.parked(&platform, 1).await;
    assert!(parked[0].body == large, "the body was changed");
    let reason = parked[0].reason.as_deref().unwrap();
    assert!(reason.contains("15728640 bytes, more than 1048576"), "{reason}");
    let most = peak(&worker).saturating_sub(before);
    assert!(most < 100 * MIB, "{} KiB: a few copies, but not many", most / 1024);
    let growth = resident(&worker).saturating_sub(before);
    assert!(growth < 20 * MIB, "{} KiB are kept for a message that is gone", growth / 1024);
    assert_sound(&worker);
}

#[tokio::test]
async fn two_thousand_unreadable_messages_are_all_parked_in_little_memory() {
    const MESSAGES: usize = 2_000;
    let platform = platform().await;
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[("WORKER_SLOTS", "8")]).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    let wire = Wire::connect(&platform).await;
    // One of each kind first: what a program allocates once is not what is measured.
    wire.send(&[
        Message::new("nonsense").id("first"),
        Message::new(r#"{"type":"report"}"#).id("ok"),
    ])
    .await;
    succeeded(&platform, "ok").await;
    wire.parked(&platform, 1).await;

    let before = [&worker, &scheduler].map(resident);
    let bodies = (0..MESSAGES).map(|number| format!("nonsense {number} {}", "x".repeat(1_000)));
    let messages: Vec<Message> =
        bodies.map(|body| Message::new(body.clone()).id(&body[..16])).collect();
    wire.send(&messages).await;
    wire.send(&[Message::new(r#"{"type":"report"}"#).id("behind")]).await;
    succeeded(&platform, "behind").await;
    let mut parked = wire.parked(&platform, MESSAGES).await;

    parked.sort_by(|a, b| a.body.cmp(&b.body));
    parked.dedup_by(|a, b| a.body == b.body);
    assert_eq!(parked.len(), MESSAGES, "each of them");
    assert!(parked.iter().all(|it| it.reason.as_deref().is_some_and(|r| r.contains("not JSON"))));
    for (program, before) in [&worker, &scheduler].into_iter().zip(before) {
        let grown = peak(program).saturating_sub(before);
        println!(
            "MEASURED {} grew {} KiB to {}",
            program.name(),
            grown / 1024,
            peak(program) / 1024
        );
        assert!(grown < 20 * MIB, "{} grew by {} KiB", program.name(), grown / 1024);
        assert_sound(program);
    }
    assert!(lines(&worker) < MESSAGES + 50, "a line for each, and no more");
    let spent = processor_time(&worker);
    assert!(spent < Duration::from_secs(30), "{spent:?} for {MESSAGES} messages");
}
