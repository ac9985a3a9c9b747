//! Properties of a message that a client library cannot read: any publisher can send them, and brokers
//! pass them on. Each used to end the process or its connection, and went on to the next.

use super::probe::{assert_sound, lines_with};
use super::wire::{Message, Wire};
use super::{one_slot, platform, raw, succeeded};

const BODY: &[u8] = br#"{"type":"report"}"#;
pub(crate) const HEADERS: u16 = 1 << 13;
const MESSAGE_ID: u16 = 1 << 7;

/// A header of so many lists, one inside the other.
fn nested(depth: u32) -> Vec<u8> {
    let lists = (0..depth).flat_map(|level| {
        let size = ((depth - level - 1) * 5).to_be_bytes();
        [b'A', size[0], size[1], size[2], size[3]]
    });
    let entry: Vec<u8> = [1, b'a'].into_iter().chain(lists).collect();
    [&(entry.len() as u32).to_be_bytes()[..], &entry].concat()
}

/// Publishes the message with these properties and a good one behind it: the first must be parked with
/// these words, the good one must run, and the worker must keep its connection.
async fn is_parked(flags: u16, properties: Vec<u8>, words: &[&str]) {
    let platform = platform().await;
    let worker = one_slot(&platform).await;
    let wire = Wire::connect(&platform).await;
    let (url, queue) = (platform.amqp_url().to_owned(), wire.main().to_owned());
    let publishing = move || raw::publish(&url, &queue, flags, &properties, BODY);
    tokio::task::spawn_blocking(publishing).await.unwrap();
    wire.send(&[Message::new(BODY).id("behind")]).await;
    succeeded(&platform, "behind").await;
    let parked = wire.parked(&platform, 1).await;
    assert!(parked[0].body == BODY, "the body was changed");
    let reason = parked[0].reason.as_deref().unwrap();
    for word in [&["the message's properties cannot be read"], words].concat() {
        assert!(reason.contains(word), "{word:?} is missing: {reason}");
    }
    assert_eq!(wire.depth(wire.main()).await, 0, "it must not be in its queue, too");
    assert_eq!(lines_with(&worker, "parked a message"), 1, "{}", worker.log());
    assert_sound(&worker);
}

#[tokio::test]
async fn headers_nested_deeper_than_a_stack_are_parked_and_the_next_task_runs() {
    // As many as a frame has room for; two thirds of them overflow a stack of 2 MiB.
    is_parked(HEADERS, nested(3_200), &["nested too deeply", "publish it again"]).await;
}

/// A header of so many bytes, all in one text.
pub(crate) fn flat(bytes: usize) -> Vec<u8> {
    let entry = [b"\x01aS".as_slice(), &(bytes as u32).to_be_bytes(), &vec![b'x'; bytes]].concat();
    [&(entry.len() as u32).to_be_bytes()[..], &entry].concat()
}

/// Each fits the frame that a publisher may agree on with the broker, and not ours.
pub(crate) const TOO_LARGE: [usize; 3] = [17 * 1024, 60 * 1024, 127 * 1024];

#[tokio::test]
async fn headers_larger_than_a_frame_are_parked_and_the_next_task_runs() {
    let platform = platform().await;
    let worker = one_slot(&platform).await;
    let wire = Wire::connect(&platform).await;
    let (url, queue) = (platform.amqp_url().to_owned(), wire.main().to_owned());
    let publishing = move || {
        for bytes in TOO_LARGE {
            raw::publish(&url, &queue, HEADERS, &flat(bytes), BODY);
        }
    };
    tokio::task::spawn_blocking(publishing).await.unwrap();
    wire.send(&[Message::new(BODY).id("behind")]).await;
    succeeded(&platform, "behind").await;
    for found in wire.parked(&platform, TOO_LARGE.len()).await {
        assert!(found.body == BODY, "the body was changed");
        let reason = found.reason.as_deref().unwrap();
        assert!(reason.contains("too large") && reason.contains("publish it again"), "{reason}");
    }
    assert_eq!(wire.depth(wire.main()).await, 0, "they must not be in their queue, too");
    assert_eq!(lines_with(&worker, "parked a message"), TOO_LARGE.len(), "{}", worker.log());
    assert_eq!(lines_with(&worker, "FRAME-ERROR"), 0, "it lost its connection: {}", worker.log());
    assert_sound(&worker);
}

#[tokio::test]
async fn a_message_id_that_is_no_text_is_parked_and_the_next_task_runs() {
    is_parked(MESSAGE_ID, b"\x02\xff\xfe".to_vec(), &["not UTF-8", "publish it again"]).await;
}
