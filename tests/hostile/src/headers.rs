//! The properties of a message, as they come from the broker: its content header frame.
//!
//! The first byte of the input says into which pieces the network cuts it; the rest are the property
//! flags and the properties, as they stand in the frame.

use amq_protocol::frame::parsing::parse_frame;
use amq_protocol::frame::{AMQPContentHeader, AMQPFrame, WriteContext, gen_frame};
use lapin::BasicProperties;
use sexton_broker::Properties;
use sexton_broker::frame_filter::{FrameFilter, PropertiesFlaw};
use sexton_broker::properties::MAX_HEADER_BYTES;
use sexton_model::ticket::{Envelope, IncomingMessage, read_message};

use crate::error_text;

/// What the connection has agreed on.
const FRAME_MAX: u32 = 16 * 1024;
const MAX_ERROR_BYTES: usize = 600;
const CHANNEL: u16 = 5;
const BODY_BYTES: u64 = 9;

pub(crate) fn run(input: &[u8]) {
    let Some((piece, properties)) = input.split_first() else { return };
    let frame = frame(properties);
    let mut passed = Vec::new();
    let mut screen = FrameFilter::new(FRAME_MAX);
    for part in frame.chunks(usize::from(*piece) + 1) {
        screen.take(part, &mut passed);
    }
    assert!(passed.len() <= FRAME_MAX as usize, "larger than the client library takes");
    let read = parsed(&passed);
    // What the client library can read by itself is not touched.
    if passed == frame {
        assert!(Properties::read(&read).flaw.is_none() || says_so(&passed));
    } else {
        assert!(Properties::read(&read).flaw.is_some(), "changed, and no flaw is reported");
    }
    judge(&Properties::read(&read));
}

/// A content header frame with these flags and properties.
fn frame(properties: &[u8]) -> Vec<u8> {
    let mut frame = vec![2];
    frame.extend_from_slice(&CHANNEL.to_be_bytes());
    frame.extend_from_slice(&(properties.len() as u32 + 12).to_be_bytes());
    frame.extend_from_slice(&[0, 60, 0, 0]);
    frame.extend_from_slice(&BODY_BYTES.to_be_bytes());
    frame.extend_from_slice(properties);
    frame.push(0xce);
    frame
}

/// What the client library reads: whatever came, it can.
fn parsed(bytes: &[u8]) -> BasicProperties {
    match parse_frame(bytes) {
        Ok((rest, AMQPFrame::Header(CHANNEL, header))) => {
            assert!(rest.is_empty());
            assert_eq!((header.class_id, header.body_size), (60, BODY_BYTES));
            header.properties
        }
        other => panic!("the client library reads {other:?}"),
    }
}

/// Whether a publisher has written the header that tells of a flaw.
fn says_so(bytes: &[u8]) -> bool {
    let name = sexton_broker::frame_filter::UNREADABLE_HEADER.as_bytes();
    bytes.windows(name.len()).any(|window| window == name)
}

fn judge(properties: &Properties) {
    for body in [&b"{\"type\":\"report\"}"[..], b"\xff"] {
        let incoming = read_message(Envelope {
            message_id: properties.message_id.as_deref(),
            attempt: properties.attempt,
            schema: properties.schema,
            flaw: properties.flaw.map(PropertiesFlaw::as_str),
            body,
        });
        match incoming {
            IncomingMessage::Unreadable { reason } => error_text::check(&reason, MAX_ERROR_BYTES),
            IncomingMessage::Ticket { attempt, .. } => {
                assert_eq!(Some(i64::from(attempt.get())), properties.attempt);
            }
            IncomingMessage::Foreign(foreign) => {
                let id = properties.message_id.as_ref().filter(|id| !id.is_empty());
                assert_eq!(foreign.key.as_ref(), id);
            }
        }
    }
    published_again(properties);
}

/// A copy of the message bears the same, cut where a limit says so, and nothing else: also that it could not be read.
fn published_again(properties: &Properties) {
    let written = properties.write().expect("what came over the wire fits the wire");
    let again = Properties::read(&written);
    let cut = |text: &Option<String>| {
        text.as_ref().map(|text| text[..text.floor_char_boundary(MAX_HEADER_BYTES)].to_owned())
    };
    let expected = Properties {
        traceparent: cut(&properties.traceparent),
        tracestate: cut(&properties.tracestate),
        failed_reason: cut(&properties.failed_reason),
        failed_at: cut(&properties.failed_at),
        ..properties.clone()
    };
    assert_eq!(again, expected);
    on_the_wire(&written);
}

/// The copy passes the screen, and is read as it was written.
fn on_the_wire(properties: &BasicProperties) {
    let frame = AMQPFrame::Header(
        CHANNEL,
        AMQPContentHeader { class_id: 60, body_size: BODY_BYTES, properties: properties.clone() },
    );
    let written = gen_frame(&frame)(WriteContext::from(Vec::new()))
        .expect("a buffer can be written")
        .into_inner()
        .0;
    let (mut screen, mut passed) = (FrameFilter::new(FRAME_MAX), Vec::new());
    screen.take(&written, &mut passed);
    assert_eq!(passed, written);
    assert_eq!(&parsed(&passed), properties);
}
