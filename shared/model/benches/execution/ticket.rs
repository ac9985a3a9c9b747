//! The ticket: written by the scheduler, read by a worker, and the decision for one that opens nothing.

use std::hint::black_box;
use std::time::Duration;

use serde_json::{Value, json};
use sexton_model::delay_queues;
use sexton_model::id::{AttemptNumber, ExecutionId, JobId};
use sexton_model::open::{self, ExecutionRow};
use sexton_model::params;
use sexton_model::params_schema::SchemaValidator;
use sexton_model::state::State;
use sexton_model::ticket::{self, Envelope, Ticket};
use uuid::Uuid;

use super::{Call, Case, at, call};

pub(super) const CASES: &[Case] = &[
    Case { name: "check params", prepare: checked },
    Case { name: "params by their schema", prepare: by_schema },
    Case { name: "write a ticket", prepare: write },
    Case { name: "read a ticket", prepare: read },
    Case { name: "read a foreign task", prepare: foreign },
    Case { name: "answer an unopened ticket", prepare: unopened },
    Case { name: "choose a delay queue", prepare: next_queue },
];

const VALIDATORS: usize = 16;
const EXECUTION: &str = "0195b2f4-6c1e-7d3a-9f52-3b8e4c1d7a60";

fn sample() -> Value {
    json!({
        "customer": 184_203,
        "period": {"from": "2026-02-01", "to": "2026-02-28"},
        "currency": "EUR",
        "recipients": ["accounts@example.com", "archive@example.com"],
        "dry_run": false,
    })
}

fn number(number: i32) -> AttemptNumber {
    AttemptNumber::new(number).expect("a number from 1")
}

fn execution() -> ExecutionId {
    ExecutionId::new(Uuid::parse_str(EXECUTION).expect("an id"))
}

fn written() -> Ticket {
    Ticket {
        execution_id: execution(),
        attempt: number(1),
        job_id: JobId::new(Uuid::from_u128(0x0195_b2f4_6c1e_7d3a_9f52_3b8e_4c1d_7a61)),
        job: "billing.run".to_owned(),
        task_type: "billing.invoice".to_owned(),
        target: Some("184203".to_owned()),
        params: sample(),
        execution_key: "cron-2026-03-20T07:00:00Z".to_owned(),
        scheduled_for: at("2026-03-20T07:00:00Z"),
        idempotency_key: "billing.run:cron-2026-03-20T07:00:00Z".to_owned(),
    }
}

fn checked() -> Call {
    let sample = sample();
    call(move || params::check(black_box(&sample).as_object().expect("an object")))
}

/// The random seed of a validator's maps makes one some percent slower than another, so the calls alternate between
/// several.
fn by_schema() -> Call {
    let schema = json!({
        "type": "object",
        "required": ["customer", "period"],
        "properties": {
            "customer": {"type": "integer", "minimum": 1},
            "period": {
                "type": "object",
                "properties": {"from": {"type": "string"}, "to": {"type": "string"}},
            },
            "currency": {"enum": ["EUR", "USD", "GBP"]},
            "recipients": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
            "dry_run": {"type": "boolean"},
        },
        "additionalProperties": false,
    });
    let validators: Vec<_> =
        (0..VALIDATORS).map(|_| SchemaValidator::new(&schema).expect("a sound schema")).collect();
    let (mut next, sample) = (0, sample());
    call(move || {
        next = (next + 1) % validators.len();
        validators[next].violations(black_box(&sample))
    })
}

fn write() -> Call {
    let ticket = written();
    call(move || black_box(&ticket).body(None))
}

fn read() -> Call {
    let body = written().body(None);
    call(move || {
        ticket::read_message(black_box(Envelope {
            message_id: Some(EXECUTION),
            attempt: Some(1),
            schema: Some(ticket::SCHEMA_VERSION),
            flaw: None,
            body: &body,
        }))
    })
}

fn foreign() -> Call {
    let body = json!({"type": "billing.invoice", "id": 184_203, "params_scheduler": sample()});
    let body = body.to_string().into_bytes();
    call(move || {
        ticket::read_message(black_box(Envelope {
            message_id: Some("invoice-184203"),
            attempt: None,
            schema: None,
            flaw: None,
            body: &body,
        }))
    })
}

fn unopened() -> Call {
    let row = ExecutionRow {
        state: State::Running,
        attempt: number(1),
        mine: false,
        due_in: Duration::ZERO,
        overdue: Duration::from_secs(2),
        offered: true,
        waits: false,
    };
    call(move || open::decide_unopened(black_box(number(1)), Some(black_box(&row))))
}

fn next_queue() -> Call {
    call(|| {
        delay_queues::next_queue(
            black_box(Duration::from_secs(70)),
            black_box(Duration::from_secs(118)),
        )
    })
}
