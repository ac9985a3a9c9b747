//! What people do with an incident.
//!
//! One transaction: the incident, its timeline, what is sent about it, and the audit. A crash before the commit leaves nothing;
//! after it, the repeated command says that nothing changes.

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_model::incident::{NotificationKind, SubjectKind};
use uuid::Uuid;

use super::list::{Incident, read_for_update};
use super::notify::{Event, delay_escalations, drop_later, notify_followers, record_events};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::operator::AuditContext;
use crate::{Now, Store, StoreError};

/// What somebody does with an incident.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IncidentAction {
    /// Takes it on: no reminders and no escalation any more.
    Acknowledge,
    /// Sends nothing about it, nor about a further incident of its subject, until this instant.
    Silence(DateTime<Utc>),
    /// Ends a silence.
    Unsilence,
    /// Ends the incident. The next violation opens a new one.
    Resolve,
}

impl IncidentAction {
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Acknowledge => ("acknowledge_incident", "acknowledged"),
            Self::Silence(_) => ("silence_incident", "silenced"),
            Self::Unsilence => ("unsilence_incident", "unsilenced"),
            Self::Resolve => ("resolve_incident", "resolved"),
        }
    }
}

/// Why an action was refused.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// No incident has this id.
    #[error("there is no incident {0}; see `sexton incidents list --all`")]
    Missing(Uuid),
    /// It is over.
    #[error("incident {id} was resolved at {at} by {by}, so there is nothing to {what}")]
    Resolved {
        /// The incident.
        id: Uuid,
        /// When.
        at: String,
        /// Who.
        by: String,
        /// What somebody wanted to do.
        what: &'static str,
    },
    /// It is in that state already.
    #[error("incident {id} is {what} already{}", by.as_deref().map(|by| format!(", by {by}")).unwrap_or_default())]
    Already {
        /// The incident.
        id: Uuid,
        /// The state.
        what: &'static str,
        /// Who did it.
        by: Option<String>,
    },
    /// A silence must end in the future.
    #[error("a silence ends after now, and {0} is past")]
    Past(DateTime<Utc>),
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for ActError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Does something with an incident.
///
/// # Errors
///
/// [`ActError`]; nothing was changed.
pub async fn act(
    store: &Store,
    id: Uuid,
    action: IncidentAction,
    audit: AuditContext<'_>,
    now: Now,
) -> Result<(), ActError> {
    let mut tx = store.begin().await?;
    let (before, now) = read_for_update(&mut tx, id, now).await?.ok_or(ActError::Missing(id))?;
    refuse(&before, action, now)?;
    let (audited, event) = action.names();
    let until = match action {
        IncidentAction::Silence(until) => Some(until),
        IncidentAction::Unsilence => None,
        IncidentAction::Acknowledge | IncidentAction::Resolve => before.silenced_until,
    };
    sqlx::query!(
        "-- act_on_incident
        UPDATE sexton.incidents SET changed_at = $2::timestamptz,
            state = CASE $3::text WHEN 'acknowledged' THEN 'acknowledged' WHEN 'resolved' THEN 'resolved' ELSE state END,
            acknowledged_at = CASE WHEN $3 = 'acknowledged' THEN $2::timestamptz ELSE acknowledged_at END,
            acknowledged_by = CASE WHEN $3 = 'acknowledged' THEN $4 ELSE acknowledged_by END,
            resolved_at = CASE WHEN $3 = 'resolved' THEN $2::timestamptz END,
            resolved_by = CASE WHEN $3 = 'resolved' THEN $4 END,
            silenced_until = $5,
            silenced_by = CASE $3 WHEN 'silenced' THEN $4 WHEN 'unsilenced' THEN NULL ELSE silenced_by END,
            silence_reason = CASE $3 WHEN 'silenced' THEN $6 WHEN 'unsilenced' THEN NULL ELSE silence_reason END
        WHERE id = $1",
        id,
        now,
        event,
        audit.actor,
        until,
        audit.reason
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    let entry = Event { incident: id, kind: event, detail: audit.reason };
    record_events(&mut tx, &[entry], Some(audit.actor), now).await?;
    match action {
        IncidentAction::Resolve => drop_later(&mut tx, &[id], now).await?,
        IncidentAction::Silence(until) => delay_escalations(&mut tx, id, until, now).await?,
        IncidentAction::Unsilence => delay_escalations(&mut tx, id, now, now).await?,
        IncidentAction::Acknowledge => {}
    }
    let detail = describe(action, audit);
    let (kind, due_at) = match action {
        IncidentAction::Acknowledge => (NotificationKind::Acknowledged, now),
        IncidentAction::Resolve => (NotificationKind::Resolved, now),
        IncidentAction::Silence(until) => (NotificationKind::Reminder, until),
        IncidentAction::Unsilence => (NotificationKind::Reminder, now),
    };
    notify_followers(&mut tx, &[(id, &detail)], kind, (now, due_at)).await?;
    let after = json!({"incident": id, "state": event, "silenced_until": until});
    sqlx::query!(
        "-- record_incident_action
        INSERT INTO sexton.operator_actions (at, actor, action, reason, job_id, before, after) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        now,
        audit.actor,
        audited,
        audit.reason,
        // That of a failure group names the job whose execution failed last, among others.
        before.job_id.filter(|_| before.subject_kind == SubjectKind::Job.as_str()),
        json!({"incident": id, "state": before.state, "silenced_until": before.silenced_until}),
        after
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    commit(tx).await?;
    Ok(())
}

fn refuse(before: &Incident, action: IncidentAction, now: DateTime<Utc>) -> Result<(), ActError> {
    let id = before.id;
    let what = match action {
        IncidentAction::Acknowledge => "acknowledge",
        IncidentAction::Silence(_) => "silence",
        IncidentAction::Unsilence => "unsilence",
        IncidentAction::Resolve => "resolve",
    };
    if let Some(at) = before.resolved_at {
        let by = before.resolved_by.clone().unwrap_or_default();
        return Err(ActError::Resolved { id, at: at.to_rfc3339(), by, what });
    }
    match action {
        IncidentAction::Acknowledge if before.acknowledged_at.is_some() => {
            let by = before.acknowledged_by.clone();
            Err(ActError::Already { id, what: "acknowledged", by })
        }
        IncidentAction::Silence(until) if until <= now => Err(ActError::Past(until)),
        IncidentAction::Unsilence if before.silenced_until.is_none_or(|until| until <= now) => {
            Err(ActError::Already { id, what: "not silenced", by: None })
        }
        _ => Ok(()),
    }
}

fn describe(action: IncidentAction, audit: AuditContext<'_>) -> String {
    let reason = audit.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let actor = audit.actor;
    match action {
        IncidentAction::Acknowledge => format!("acknowledged by {actor}{reason}"),
        IncidentAction::Resolve => format!("resolved by {actor}{reason}"),
        IncidentAction::Silence(_) => format!("the silence by {actor} is over{reason}"),
        IncidentAction::Unsilence => format!("{actor} has ended the silence{reason}"),
    }
}
