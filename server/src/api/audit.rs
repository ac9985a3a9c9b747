//! The audit as evidence: verified, and exported.

use axum::Json;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use serde::Deserialize;
use sexton_operations::audit::AuditRequest;
use sexton_operations::audit::chain::{self, AuditVerification};
use sexton_operations::audit::export::export_part;
use sexton_operations::instants::TimeRangeRequest;
use sexton_store::status;
use tokio::sync::Semaphore;
use utoipa::IntoParams;

use super::PageSize;
use super::extract::Query;
use crate::access::{Allowed, Viewer};
use crate::problem::Problem;

/// Verifications at the same time: each reads the whole audit.
static VERIFICATIONS: Semaphore = Semaphore::const_new(1);

/// Which earlier head must still be in the chain.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct VerifyAudit {
    /// An earlier `head`, as `POSITION:HASH`.
    head: Option<String>,
}

/// Verifies that nobody has changed, removed or inserted actions: computes the hash of each again.
///
/// It reads the whole audit, one verification at a time. Where that takes longer than a request may, `sexton audit verify` does it.
#[utoipa::path(get, path = "/audit/verify", tag = "platform", operation_id = "verify_audit", extensions(("x-role" = json!("viewer"))),
    params(VerifyAudit),
    responses((status = 200, description = "What was verified, and the first problem.", body = AuditVerification)))]
pub async fn verify(
    allowed: Allowed<Viewer>,
    Query(VerifyAudit { head }): Query<VerifyAudit>,
) -> Result<Json<AuditVerification>, Problem> {
    let Ok(_turn) = VERIFICATIONS.try_acquire() else {
        return Err(Problem::unavailable("somebody else verifies the audit"));
    };
    Ok(Json(chain::verify(allowed.reads(), head.as_deref()).await?))
}

/// Which actions to export.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ExportActions {
    /// Only by this operator: the whole name, or the part before the @.
    actor: Option<String>,
    /// Only of this kind, such as `requeue`.
    action: Option<String>,
    /// Only on this job or its executions.
    job: Option<String>,
    /// Only on this execution.
    execution: Option<String>,
    /// Only by this bulk, or on it.
    bulk: Option<i64>,
    /// Only at or after this: an instant in RFC 3339, or an age such as `36h`.
    since: Option<String>,
    /// Only before this.
    until: Option<String>,
    /// Only behind the action with this number: `through` of the part before.
    after: i64,
    /// Actions of a part.
    #[param(inline)]
    limit: PageSize,
}

/// Exports operators' actions, the oldest first, one on each line, with values that look like secrets masked.
///
/// The last line has the number of `actions`, the `sha256` of the lines before it, each with its line feed, `through`, the `after` of the next
/// part, and the head of the audit's chain. A part that is `complete` is the last one for now; others may have fewer actions than `limit`, or
/// none, since each looks through 50,000 numbers at most. An action that is being recorded is waited for up to 10 seconds, and otherwise left to
/// a later part with all behind it, so that none is missed; if `through` does not grow then, send the request again later.
#[utoipa::path(get, path = "/audit/export", tag = "platform", operation_id = "export_audit", extensions(("x-role" = json!("viewer"))),
    params(ExportActions),
    responses((status = 200, description = "The lines, each a document of JSON.", body = String, content_type = "application/x-ndjson")))]
pub async fn export(
    allowed: Allowed<Viewer>,
    Query(query): Query<ExportActions>,
) -> Result<([(HeaderName, &'static str); 1], String), Problem> {
    let store = allowed.reads();
    let request = AuditRequest {
        actor: query.actor.as_deref(),
        action: query.action.as_deref(),
        job: query.job.as_deref(),
        execution: query.execution.as_deref(),
        bulk: query.bulk,
        range: TimeRangeRequest { since: query.since.as_deref(), until: query.until.as_deref() },
    };
    let filter = request.read(store, status::clock(store).await?).await?;
    let lines = export_part(store, &filter, query.after, query.limit.get()).await?;
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], lines))
}
