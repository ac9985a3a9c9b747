//! The body of a message in a main queue, with no properties and with some.

use chrono::DateTime;
use sexton_model::id::{AttemptNumber, ExecutionId, JobId};
use sexton_model::job::MAX_PARAMS_BYTES;
use sexton_model::jobs_file::limits::MAX_TARGET_BYTES;
use sexton_model::key;
use sexton_model::ticket::{
    Envelope, ForeignTask, IncomingMessage, MAX_REASON_BYTES, ParkedDetails, SCHEMA_VERSION,
    Ticket, is_task_type, read_message,
};

use crate::{error_text, shape};

/// More than any reason needs.
const MAX_ERROR_BYTES: usize = 600;

pub(crate) fn run(body: &[u8]) {
    let bare = Envelope { message_id: None, attempt: None, schema: None, flaw: None, body };
    judge(&bare, None);
    // The bytes as a message id: text of whatever length, of whatever characters.
    let text = String::from_utf8_lossy(body);
    judge(&Envelope { message_id: Some(&text), ..bare }, Some(&text));
    judge(&Envelope { message_id: Some("m-1"), schema: Some(SCHEMA_VERSION), ..bare }, Some("m-1"));
    let ticket = Envelope { message_id: Some(&text), attempt: Some(1), ..bare };
    let is_foreign = matches!(read_message(ticket), IncomingMessage::Foreign(_));
    assert!(!is_foreign, "a message with the header of a ticket was taken for a foreign one");
    judge(&ticket, Some(&text));
}

fn judge(envelope: &Envelope<'_>, id: Option<&str>) {
    match read_message(*envelope) {
        IncomingMessage::Ticket { attempt, .. } => assert!(attempt.get() >= 1),
        IncomingMessage::Unreadable { reason } => error_text::check(&reason, MAX_ERROR_BYTES),
        IncomingMessage::Foreign(foreign) => {
            check_limits(&foreign, id);
            the_same_message_again(&foreign);
            as_a_ticket(&foreign);
        }
    }
}

fn check_limits(foreign: &ForeignTask, id: Option<&str>) {
    assert!(is_task_type(&foreign.task_type));
    assert_eq!(foreign.key.as_deref(), id.filter(|id| !id.is_empty()));
    if let Some(key) = &foreign.key {
        assert_eq!(key::check(key), Ok(()));
    }
    // It becomes an environment variable of the task.
    if let Some(target) = &foreign.target {
        assert!(target.len() <= MAX_TARGET_BYTES, "a target of {} bytes", target.len());
        assert!(!target.contains('\0'));
    }
    assert!(foreign.params.is_object());
    assert!(foreign.params.to_string().len() <= MAX_PARAMS_BYTES);
    shape::storable(&foreign.params);
}

/// Published again with what was understood, it is understood as the same.
fn the_same_message_again(foreign: &ForeignTask) {
    let body = serde_json::json!({"type": foreign.task_type, "params_scheduler": foreign.params});
    let text = body.to_string();
    let envelope = Envelope {
        message_id: None,
        attempt: None,
        schema: None,
        flaw: None,
        body: text.as_bytes(),
    };
    let IncomingMessage::Foreign(again) = read_message(envelope) else {
        panic!("what was understood is not when it is written again: {text:.400}")
    };
    assert_eq!(again.task_type, foreign.task_type);
    assert_eq!(again.params, foreign.params, "the params change when they are written again");
}

/// The execution that it becomes has a ticket that can be read without its headers, also when it is
/// parked.
fn as_a_ticket(foreign: &ForeignTask) {
    let id = 0x019a_cb10_52c0_7d31_9a6f_0b2e_64d1_c7a5_u128;
    let ticket = Ticket {
        execution_id: ExecutionId::new(uuid(id)),
        attempt: AttemptNumber::new(3).expect("a positive number"),
        job_id: JobId::new(uuid(id + 1)),
        job: format!("foreign.{}", foreign.task_type),
        task_type: foreign.task_type.clone(),
        target: foreign.target.clone(),
        params: foreign.params.clone(),
        execution_key: foreign.key.clone().unwrap_or_else(|| "k".to_owned()),
        scheduled_for: DateTime::UNIX_EPOCH,
        idempotency_key: "i".to_owned(),
    };
    let parked = ParkedDetails {
        failed_at: DateTime::UNIX_EPOCH,
        failed_reason: foreign.params.to_string(),
        retry_count: 3,
    };
    for parked in [None, Some(&parked)] {
        let body = ticket.body(parked);
        let envelope =
            Envelope { message_id: None, attempt: None, schema: None, flaw: None, body: &body };
        match read_message(envelope) {
            IncomingMessage::Ticket { execution_id, attempt } => {
                assert_eq!((execution_id, attempt), (ticket.execution_id, ticket.attempt));
            }
            other => panic!("its own ticket is not read as one: {other:?}"),
        }
        let body: serde_json::Value = serde_json::from_slice(&body).expect("a ticket is JSON");
        assert_eq!(body["params_scheduler"], foreign.params);
        if let Some(reason) = body["failed_reason"].as_str() {
            assert!(reason.len() <= MAX_REASON_BYTES);
        }
    }
}

fn uuid(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}
