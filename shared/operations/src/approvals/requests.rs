//! Requests that wait, and what became of others.

use serde_json::Value;
use sexton_store::Store;
use sexton_store::approvals::{self, ApprovalRequest, WaitingRequests};

use crate::error::{NotFound, OperationError};
use crate::paging::{Cursor, Page, PagedList};
use crate::secrets::mask_request;
use crate::text::line;

/// Longest list of places in a sentence.
const MAX_NAMED: usize = 5;

/// Returns a page of at most `limit` requests, without their params and ids, behind `cursor`, the newest first: those that wait, or all.
///
/// # Errors
///
/// [`crate::error::InvalidRequest`] for a cursor of another list, and those of the database.
pub async fn list(
    store: &Store,
    with_ended: bool,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Page<ApprovalRequest>, OperationError> {
    let before = Cursor::read(PagedList::Approvals, cursor)?;
    let mut rows = approvals::list(store, with_ended, before, limit + 1, None).await?;
    rows.iter_mut().for_each(mask_request);
    Ok(Page::from_rows(rows, limit, PagedList::Approvals, |request| request.id))
}

/// Returns a request, with secrets masked.
///
/// # Errors
///
/// [`NotFound::Other`].
pub async fn find(store: &Store, id: i64) -> Result<ApprovalRequest, OperationError> {
    let found = approvals::find(store, id, None).await?;
    let mut request =
        found.ok_or_else(|| NotFound::Other(format!("there is no request {id} for approval")))?;
    mask_request(&mut request);
    Ok(request)
}

/// Counts the requests that have neither ended nor expired, and reads the database's clock.
///
/// # Errors
///
/// Those of the database.
pub async fn count_waiting(store: &Store) -> Result<WaitingRequests, OperationError> {
    Ok(approvals::count_waiting(store).await?)
}

/// Describes what a request would do, on one line: `discard 019… of shop.mail`.
pub fn describe(request: &ApprovalRequest) -> String {
    let proposal = &request.proposal;
    let text = |name: &str| proposal[name].as_str().unwrap_or_default();
    let count = proposal["count"].as_u64().unwrap_or_default();
    let executions = |state: &str| {
        let more = if proposal["has_more"] == true { "more than " } else { "" };
        let noun = if count == 1 { "execution" } else { "executions" };
        format!("{more}{count} {state}{noun}")
    };
    let sentence = match request.kind.as_str() {
        "edit" => {
            let then = if proposal["requeue"] == true { "edit and requeue" } else { "edit" };
            format!("{then} {} of {}: {}", text("execution"), text("job"), changes(proposal))
        }
        "discard" => format!("discard {} of {}", text("execution"), text("job")),
        "bulk_requeue" => format!("requeue {}{}", executions("failed "), to_pool(proposal)),
        "bulk_discard" => format!("discard {}", executions("failed ")),
        "bulk_cancel" => format!("cancel {}", executions("")),
        "backfill" => {
            let (job, since, until) = (text("job"), text("since"), text("until"));
            format!("backfill {count} firings of {job} from {since} to {until}")
        }
        other => other.to_owned(),
    };
    line(&sentence, 500)
}

fn changes(proposal: &Value) -> String {
    let changes = proposal["changes"].as_array().map_or(&[][..], Vec::as_slice);
    let mut parts: Vec<String> =
        changes.iter().take(MAX_NAMED).filter_map(Value::as_str).map(str::to_owned).collect();
    let count = proposal["change_count"].as_u64().unwrap_or_default();
    let left_out = count.saturating_sub(parts.len() as u64);
    if left_out > 0 {
        parts.push(format!("and {left_out} more"));
    }
    parts.join(", ") + &to_pool(proposal)
}

fn to_pool(proposal: &Value) -> String {
    proposal["pool"].as_str().map(|pool| format!(" to pool {pool}")).unwrap_or_default()
}

/// Describes whom a request waits for, or what became of it.
pub fn describe_state(request: &ApprovalRequest) -> String {
    let missing = i64::from(request.people) - 1 - request.approvals.len() as i64;
    let outcome = request.outcome.as_deref().unwrap_or_default();
    let by = request.ended_by.as_deref().unwrap_or_default();
    let sentence = match request.state.as_str() {
        "waiting" if missing == 1 => "waits for one more person".to_owned(),
        "waiting" => format!("waits for {missing} more people"),
        "approved" => {
            "is approved, and not carried out yet; approve it once more to do so".to_owned()
        }
        "carried_out" => format!("is carried out: {outcome}"),
        "rejected" if outcome.is_empty() => format!("was rejected by {by}"),
        "rejected" => format!("was rejected by {by}: {outcome}"),
        "failed" => format!("could not be carried out: {outcome}"),
        "expired" => "has expired, and was not carried out as a whole".to_owned(),
        other => other.to_owned(),
    };
    line(&sentence, 1_000)
}
