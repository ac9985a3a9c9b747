//! Incidents: listed, shown with their timelines, acknowledged, silenced and resolved.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use sexton_store::incidents::{
    self, ActError, Incident, IncidentAction, IncidentEvent, IncidentFilter,
};
use sexton_store::{Now, Store, status};
use uuid::Uuid;

use crate::actor::Actor;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};
use crate::paging::{Cursor, Page, PagedList};

/// Fewer digits of an id match too many incidents.
pub const MIN_DIGITS: usize = 8;
/// The longest silence.
pub const MAX_SILENCE: Duration = Duration::from_hours(366 * 24);

/// An incident with its timeline.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IncidentDetails {
    /// The incident.
    #[serde(flatten)]
    pub incident: Incident,
    /// What happened, the oldest first.
    pub timeline: Vec<IncidentEvent>,
}

/// Returns a page of at most `limit` incidents that match a filter, the newest first, behind `cursor`.
///
/// # Errors
///
/// [`InvalidRequest`] for a cursor of another list, and those of the database.
pub async fn list(
    store: &Store,
    mut filter: IncidentFilter,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Page<Incident>, OperationError> {
    filter.before = Cursor::read::<Uuid>(PagedList::Incidents, cursor)?;
    let rows = incidents::list(store, &filter, limit + 1).await?;
    Ok(Page::from_rows(rows, limit, PagedList::Incidents, |incident| incident.id))
}

/// Finds an incident by its id, by the beginning of its id, or by the name of what it is about, if an incident of that is
/// open.
///
/// # Errors
///
/// [`NotFound`]; [`InvalidRequest`] for digits of several incidents; those of the database.
pub async fn find(store: &Store, reference: &str) -> Result<Incident, OperationError> {
    if let Ok(id) = Uuid::parse_str(reference) {
        let found = incidents::read(store, id).await?;
        return found.ok_or_else(|| missing(reference).into());
    }
    let mut found = incidents::find(store, reference, MIN_DIGITS as i32).await?;
    match found.len() {
        0 => Err(missing(reference).into()),
        1 => Ok(found.remove(0)),
        _ => {
            let several: Vec<String> =
                found.iter().map(|one| format!("{} ({})", one.id, one.name)).collect();
            let problem = format!("{reference:?} fits several incidents: {}", several.join(", "));
            Err(InvalidRequest::field("incident", problem).into())
        }
    }
}

fn missing(reference: &str) -> NotFound {
    NotFound::Other(format!("there is no incident {reference:?}"))
}

/// Reads an incident's timeline.
///
/// # Errors
///
/// Those of the database.
pub async fn details(store: &Store, incident: Incident) -> Result<IncidentDetails, OperationError> {
    let timeline = incidents::read_timeline(store, incident.id).await?;
    Ok(IncidentDetails { incident, timeline })
}

/// What somebody does with an incident.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IncidentRequest {
    /// Takes it on.
    Acknowledge,
    /// Sends nothing about it, nor about a further incident of its subject, for this long.
    Silence(Duration),
    /// Ends a silence.
    Unsilence,
    /// Ends it.
    Resolve,
}

/// Does something with an incident, and returns the incident as it is then. One transaction, with its record in the audit.
///
/// # Errors
///
/// [`InvalidRequest`] for a silence that is too long, or without a reason; [`Conflict`] when the incident's state does not allow
/// it; those of the database.
pub async fn act(
    store: &Store,
    id: Uuid,
    request: IncidentRequest,
    actor: &Actor,
    reason: Option<&str>,
    now: Now,
) -> Result<Incident, OperationError> {
    let action = match request {
        IncidentRequest::Acknowledge => IncidentAction::Acknowledge,
        IncidentRequest::Resolve => IncidentAction::Resolve,
        IncidentRequest::Unsilence => IncidentAction::Unsilence,
        IncidentRequest::Silence(duration) => {
            IncidentAction::Silence(silence_end(store, duration, reason, now).await?)
        }
    };
    incidents::act(store, id, action, actor.because(reason), now).await.map_err(conflict)?;
    let after = incidents::read(store, id).await?;
    after.ok_or_else(|| missing(&id.to_string()).into())
}

async fn silence_end(
    store: &Store,
    duration: Duration,
    reason: Option<&str>,
    now: Now,
) -> Result<DateTime<Utc>, OperationError> {
    if reason.is_none_or(|reason| reason.trim().is_empty()) {
        let problem = "is missing: those who find the silence must know why nothing is sent";
        return Err(InvalidRequest::field("reason", problem).into());
    }
    if duration.is_zero() || duration > MAX_SILENCE {
        let problem = "must be longer than nothing, and at most 366 days";
        return Err(InvalidRequest::field("for", problem).into());
    }
    let now = match now {
        Some(now) => now,
        None => status::clock(store).await?,
    };
    Ok(now + TimeDelta::from_std(duration).unwrap_or_default())
}

fn conflict(error: ActError) -> OperationError {
    match error {
        ActError::Missing(id) => missing(&id.to_string()).into(),
        ActError::Store(error) => error.into(),
        ActError::Past(_) => InvalidRequest::field("for", error.to_string()).into(),
        ActError::Resolved { .. } | ActError::Already { .. } => {
            Conflict::Other(error.to_string()).into()
        }
    }
}
