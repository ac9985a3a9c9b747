//! The end of an attempt: the decision, its fingerprint, and the failed queue.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::hint::black_box;

use serde_json::json;
use sexton_model::fingerprint::fingerprint;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::result;
use sexton_model::retry::{AttemptEnd, RetryPolicy, Usage, decide};
use sexton_model::state::State;
use sexton_model::sweep::{KnownRow, MessageAttempt, ParkedRow, judge_batch};
use uuid::Uuid;

use super::{Call, Case, call};

pub(super) const CASES: &[Case] = &[
    Case { name: "check a result", prepare: handed_back },
    Case { name: "decide about a success", prepare: success },
    Case { name: "decide about a failure", prepare: failure },
    Case { name: "fingerprint of a short error", prepare: short },
    Case { name: "fingerprint of a long error", prepare: long },
    Case { name: "judge 100 parked messages", prepare: sweep },
];

const CLASS: &str = "connection_refused";

fn handed_back() -> Call {
    let result = json!({"records": 1_200, "file": "/var/lib/out/184203.pdf", "took_ms": 8_431});
    call(move || result::check(black_box(&result)))
}

fn success() -> Call {
    let policy = RetryPolicy::default();
    call(move || {
        decide(black_box(AttemptEnd::Success), "", Usage::default(), black_box(&policy), 0.5)
    })
}

fn failure() -> Call {
    let permanent = ["invalid_params", "not_found"].map(str::to_owned).to_vec();
    let policy = RetryPolicy { permanent, ..RetryPolicy::default() };
    let used = Usage { retries: 2, ..Usage::default() };
    let ending = AttemptEnd::Retryable { after: None };
    call(move || decide(black_box(ending), black_box(CLASS), used, black_box(&policy), 0.25))
}

fn short() -> Call {
    call(|| fingerprint(black_box(CLASS), black_box("connect to 10.1.4.27:5432: refused (111)")))
}

/// A message of the maximum length, much of it ids, paths and numbers, which cost the most.
fn long() -> Call {
    let part = "row 18423 of /srv/in/2026-03-20/batch-77.csv: id 0195b2f4-6c1e-7d3a-9f52-3b8e4c1d7a60, \
                amount '12.50' is not a number; ";
    let message = part.repeat(2_000 / part.len());
    call(move || fingerprint(black_box("invalid_row"), black_box(&message)))
}

/// Most messages belong there; every tenth execution was requeued since. The map's seed is fixed, so that two runs
/// measure the same.
fn sweep() -> Call {
    let number = AttemptNumber::new(4).expect("a number from 1");
    let mut rows = HashMap::<_, _, BuildHasherDefault<DefaultHasher>>::default();
    let mut messages = Vec::new();
    for index in 0..100_u128 {
        let id = ExecutionId::new(Uuid::from_u128((0x0195_b2f4 << 96) + index));
        let state = if index % 10 == 0 { State::Pending } else { State::Failed };
        rows.insert(id, KnownRow { row: ParkedRow { state, attempt: number }, kept: false });
        messages.push(Some(MessageAttempt { id, attempt: number, last_death: None }));
    }
    call(move || judge_batch(black_box(&messages), black_box(&rows)))
}
