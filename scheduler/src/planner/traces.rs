//! The spans of firings, one for each claim that became a row.

use chrono::{DateTime, Utc};

use sexton_engine::traces;
use sexton_model::id::ExecutionId;
use sexton_service::clock;
use sexton_service::traces::{KeyValue, Span, SpanKind, is_on, record};
use sexton_store::firing::{Claim, DueJob};

use super::claim_batch::ClaimBatch;

/// Gives each claim its place in a trace, if this program traces. The rows keep it, because another process may publish
/// their tickets. Returns when that was.
pub(super) fn place(claims: &mut [Claim]) -> DateTime<Utc> {
    if is_on() {
        for claim in claims {
            claim.traceparent = Some(traces::firing(claim.id).traceparent());
        }
    }
    clock::now()
}

/// Records the firings that became rows of `inserted`, after their transaction. One that is skipped has an end in its row
/// and nothing that follows, so it has no trace.
pub(super) fn record_firings(
    batch: &ClaimBatch,
    jobs: &[DueJob],
    inserted: &[ExecutionId],
    began: DateTime<Utc>,
) {
    if !is_on() {
        return;
    }
    let inserted: std::collections::HashSet<_> = inserted.iter().copied().collect();
    let ended = clock::now();
    for (claim, job) in batch.with_jobs(jobs) {
        if claim.skip_reason.is_some() || !inserted.contains(&claim.id) {
            continue;
        }
        record(Span {
            name: format!("fire {}", job.name),
            kind: SpanKind::Internal,
            context: traces::firing(claim.id),
            parent: None,
            links: Vec::new(),
            began,
            ended,
            attributes: vec![
                KeyValue::new("messaging.message.id", claim.id.to_string()),
                KeyValue::new("sexton.job", job.name.clone()),
                KeyValue::new("sexton.execution_key", claim.execution_key.clone()),
            ],
            error: None,
        });
    }
}
