use proptest::prelude::*;
use serde_json::json;

use super::*;

fn bare(body: &[u8]) -> Envelope<'_> {
    Envelope { message_id: None, attempt: None, schema: None, flaw: None, body }
}

fn reason(envelope: Envelope<'_>) -> String {
    match read_message(envelope) {
        IncomingMessage::Unreadable { reason } => reason,
        other => panic!("readable: {other:?}"),
    }
}

fn ticket() -> Ticket {
    Ticket {
        execution_id: ExecutionId::new(Uuid::from_u128(7)),
        attempt: AttemptNumber::new(3).unwrap(),
        job_id: JobId::new(Uuid::from_u128(8)),
        job: "billing.monthly".into(),
        task_type: "report".into(),
        target: Some("25".into()),
        params: json!({"a": 1}),
        execution_key: "cron-2025-12-12T08:00:00Z".into(),
        scheduled_for: "2025-12-12T08:00:00Z".parse().unwrap(),
        idempotency_key: "billing.monthly:cron-2025-12-12T08:00:00Z".into(),
    }
}

#[test]
fn a_ticket_is_known_by_its_properties_whatever_its_body() {
    let id = Uuid::from_u128(7).to_string();
    let seen = read_message(Envelope {
        message_id: Some(&id),
        attempt: Some(3),
        schema: Some(1),
        flaw: None,
        body: b"\xff not JSON",
    });
    assert_eq!(
        seen,
        IncomingMessage::Ticket {
            execution_id: ExecutionId::new(Uuid::from_u128(7)),
            attempt: AttemptNumber::new(3).unwrap()
        }
    );
}

#[test]
fn a_ticket_whose_headers_a_tool_dropped_is_still_that_ticket() {
    let parked = ParkedDetails {
        failed_at: "2025-12-12T09:00:00.5Z".parse().unwrap(),
        failed_reason: "x".repeat(5_000),
        retry_count: 3,
    };
    let body = ticket().body(Some(&parked));
    let seen = read_message(bare(&body));
    assert!(
        matches!(seen, IncomingMessage::Ticket { attempt, .. } if attempt.get() == 3),
        "{seen:?}"
    );
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["id"], 25);
    assert_eq!(body["failed_at"], "2025-12-12T09:00:00.500Z");
    assert_eq!(body["failed_reason"].as_str().unwrap().len(), MAX_REASON_BYTES);
}

#[test]
fn the_bytes_of_a_body_are_those_that_other_systems_were_promised() {
    let plain = r#"{"attempt":3,"execution_id":"00000000-0000-0000-0000-000000000007","execution_key":"cron-2025-12-12T08:00:00Z","id":25,"idempotency_key":"billing.monthly:cron-2025-12-12T08:00:00Z","job":"billing.monthly","params_scheduler":{"a":1},"scheduled_for":"2025-12-12T08:00:00Z","scheduler_id":"00000000-0000-0000-0000-000000000008","type":"report","v":1}"#;
    assert_eq!(String::from_utf8(ticket().body(None)).unwrap(), plain);
    let parked = ParkedDetails {
        failed_at: "2025-12-12T09:00:00.5Z".parse().unwrap(),
        failed_reason: "it said \"no\"".to_owned(),
        retry_count: 3,
    };
    let untargeted = Ticket { target: None, ..ticket() };
    let failed = r#"{"attempt":3,"execution_id":"00000000-0000-0000-0000-000000000007","execution_key":"cron-2025-12-12T08:00:00Z","failed_at":"2025-12-12T09:00:00.500Z","failed_reason":"it said \"no\"","id":null,"idempotency_key":"billing.monthly:cron-2025-12-12T08:00:00Z","job":"billing.monthly","params_scheduler":{"a":1},"retry_count":3,"scheduled_for":"2025-12-12T08:00:00Z","scheduler_id":"00000000-0000-0000-0000-000000000008","type":"report","v":1}"#;
    assert_eq!(String::from_utf8(untargeted.body(Some(&parked))).unwrap(), failed);
    let named = Ticket { target: Some("eu".into()), ..ticket() };
    assert!(String::from_utf8(named.body(None)).unwrap().contains(r#""id":"eu""#));
}

#[test]
fn the_documented_foreign_payloads_are_read() {
    let long =
        br#"{"type":"report","id":25,"scheduler_id":16,"params_scheduler":"{\"year\":2025}"}"#;
    let IncomingMessage::Foreign(seen) =
        read_message(Envelope { message_id: Some("m-1"), ..bare(long) })
    else {
        panic!("not foreign")
    };
    assert_eq!(seen.task_type, "report");
    assert_eq!(seen.key.as_deref(), Some("m-1"));
    assert_eq!(seen.target.as_deref(), Some("25"));
    assert_eq!(seen.params, json!({"year": 2025, "id": 25, "scheduler_id": 16}));

    let IncomingMessage::Foreign(seen) = read_message(bare(br#"{"type":"report"}"#)) else {
        panic!("not foreign")
    };
    assert_eq!((seen.key, seen.target, seen.params), (None, None, json!({})));
}

#[test]
fn what_cannot_be_read_says_why() {
    assert!(reason(bare(b"nonsense")).contains("not JSON"));
    assert!(reason(bare(b"[1]")).contains("not a JSON object"));
    assert!(reason(bare(b"{}")).contains("no type"));
    assert!(reason(bare(br#"{"type":"a b"}"#)).contains("not a task type"));
    assert!(reason(bare(br#"{"type":"a","v":2}"#)).contains("unknown version 2"));
    assert!(reason(bare(br#"{"type":"a","params_scheduler":3}"#)).contains("neither"));
    for rounded in [
        &br#"{"type":"a","params_scheduler":{"a":123456789012345678901}}"#[..],
        br#"{"type":"a","params_scheduler":"{\"a\":123456789012345678901}"}"#,
        br#"{"type":"a","id":123456789012345678901}"#,
        br#"{"type":"a","scheduler_id":123456789012345678901}"#,
        br#"{"type":"a","id":"b","\u0069d":123456789012345678901}"#,
    ] {
        assert!(reason(bare(rounded)).starts_with("the integer 123456789012345678901 does"));
    }
    for reserved in [
        &br#"{"$serde_json::private::RawValue":"{\"type\":\"a\",\"id\":123456789012345678901}"}"#[..],
        br#"{"type":"a","params_scheduler":{"a":{"$serde_json::private::RawValue":"1"}}}"#,
    ] {
        assert!(reason(bare(reserved)).contains("could not be read again"));
    }
    let ignored = br#"{"type":"a","trace":123456789012345678901,"params_scheduler":{"a":1}}"#;
    assert!(matches!(read_message(bare(ignored)), IncomingMessage::Foreign(_)));
    assert!(
        reason(bare(br#"{"type":"a","params_scheduler":"3"}"#)).contains("not of a JSON object")
    );
    assert!(reason(bare(br#"{"type":"a","params_scheduler":{"x":"\u0000"}}"#)).contains("U+0000"));
    assert!(reason(bare(&vec![b' '; MAX_BODY_BYTES + 1])).contains("more than"));
    let schema = Envelope { schema: Some(9), ..bare(b"{}") };
    assert!(reason(schema).contains("unknown version 9"));
    let flawed = Envelope { flaw: Some("nested too deeply"), ..bare(br#"{"type":"a"}"#) };
    assert!(reason(flawed).contains("properties cannot be read: nested too deeply; publish"));
    let nameless = Envelope { attempt: Some(1), message_id: Some("x"), ..bare(b"{}") };
    assert!(reason(nameless).contains("not an execution's id"));
}

#[test]
fn a_backslash_before_u0000_is_a_text_and_kept() {
    let body = br#"{"type":"a","params_scheduler":{"x":"\\u0000"}}"#;
    assert!(matches!(read_message(bare(body)), IncomingMessage::Foreign(_)));
}

proptest! {
    #[test]
    fn no_bytes_and_no_properties_make_it_panic(
        id in proptest::option::of(".{0,80}"),
        attempt in proptest::option::of(any::<i64>()),
        schema in proptest::option::of(any::<i64>()),
        body in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let _ = read_message(Envelope { message_id: id.as_deref(), attempt, schema, flaw: None, body: &body });
    }

    #[test]
    fn shortening_keeps_whole_characters(text in ".{0,60}", bytes in 0_usize..80) {
        let short = truncate(&text, bytes);
        prop_assert!(short.len() <= bytes && text.starts_with(short));
    }
}
