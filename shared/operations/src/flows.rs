//! Flows: listed, drawn and cancelled.

use chrono::{DateTime, Utc};
use sexton_store::Store;
use sexton_store::flows::{self, Flow, FlowFilter, FlowMember};
use uuid::Uuid;

use crate::actor::Actor;
use crate::error::{InvalidRequest, NotFound, OperationError};
use crate::execution_ids;
use crate::paging::{Cursor, Page, PagedList};

/// A flow with its members.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FlowDetails {
    /// The flow.
    #[serde(flatten)]
    pub flow: Flow,
    /// Its members, those first that others wait for, at most
    /// [`MAX_LISTED_MEMBERS`](flows::MAX_LISTED_MEMBERS).
    pub all: Vec<FlowMember>,
}

/// Returns a page of at most `limit` flows, the newest first.
///
/// # Errors
///
/// [`InvalidRequest`] of the field `cursor`; those of the database.
pub async fn list(
    store: &Store,
    name: Option<String>,
    open: bool,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Page<Flow>, OperationError> {
    let after: Option<(DateTime<Utc>, Uuid)> = Cursor::read(PagedList::Flows, cursor)?;
    let mut items = flows::list(store, &FlowFilter { name, open, after }, limit + 1).await?;
    let full = items.len() as i64 > limit;
    items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let last = items.last().filter(|_| full);
    let next_cursor =
        last.map(|last| Cursor::behind(PagedList::Flows, &(last.created_at, last.id)));
    Ok(Page { items, next_cursor })
}

/// Returns a flow, by its id, by that of a member, or by a unique beginning of a member's.
///
/// # Errors
///
/// [`NotFound::Flow`]; those of the database.
pub async fn find(store: &Store, id: &str) -> Result<FlowDetails, OperationError> {
    let flow = resolve(store, id).await?;
    let all = flows::list_members(store, flow.id).await?;
    Ok(FlowDetails { flow, all })
}

/// Says what a member waits for; `None`: its flow does not hold it up.
pub fn describe_wait(member: &FlowMember) -> Option<String> {
    if member.decided || member.state != "pending" {
        return None;
    }
    if let Some(parked) = &member.parked {
        return Some(format!(
            "blocked: {} is parked; requeue or discard it ({})",
            parked.name, parked.execution_id
        ));
    }
    let when = match member.runs_when.as_str() {
        "any_failed" => "runs if one fails of",
        "all_done" => "waits for the ends of",
        _ => "waits for",
    };
    let more = i64::from(member.waits_for) - member.waiting_on.len() as i64;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{when} {}{more}", member.waiting_on.join(", ")))
}

/// Returns the flow that an execution is a member of.
///
/// # Errors
///
/// Those of the database.
pub async fn of_member(store: &Store, id: Uuid) -> Result<Option<FlowDetails>, OperationError> {
    let Some(flow) = flows::find(store, id).await? else { return Ok(None) };
    let all = flows::list_members(store, flow.id).await?;
    Ok(Some(FlowDetails { flow, all }))
}

/// Cancels what waits of a flow, and requests it of the workers of what runs; failed members stay, for an operator.
/// Returns the flow as it was before, and how many members were cancelled at once.
///
/// # Errors
///
/// [`NotFound::Flow`]; [`InvalidRequest`] for one that has ended.
pub async fn cancel(
    store: &Store,
    id: &str,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<(Flow, u64), OperationError> {
    let flow = resolve(store, id).await?;
    if flow.ended_at.is_some() {
        return Err(InvalidRequest::Other(format!("flow {} has ended", flow.id)).into());
    }
    let cancelled = flows::cancel(store, flow.id, actor.because(reason), None).await?;
    match cancelled {
        Some(cancelled) => Ok((flow, cancelled)),
        None => Err(NotFound::Flow(id.to_owned()).into()),
    }
}

async fn resolve(store: &Store, id: &str) -> Result<Flow, OperationError> {
    if let Ok(whole) = id.parse::<Uuid>()
        && let Some(flow) = flows::find(store, whole).await?
    {
        return Ok(flow);
    }
    let missing = || NotFound::Flow(id.to_owned());
    let member = execution_ids::resolve(store, id).await.map_err(|error| match error {
        OperationError::NotFound(_) => missing().into(),
        other => other,
    })?;
    Ok(flows::find(store, member).await?.ok_or_else(missing)?)
}
