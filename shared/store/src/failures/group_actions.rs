//! Operators' notes and decisions about a group.
//!
//! One transaction: the group's row, the end of its incident, and the audit. A crash before the commit leaves nothing; after it, the repeated
//! command reports that nothing changes. Of two operators at once the second finds the first one's change.

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_model::failures::GroupDecision;

use super::reopened;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::error::parse_column;
use crate::operator::{AuditContext, is_lock_timeout, record_jobless_action, set_lock_timeout};
use crate::{Now, Store, StoreError};

/// The longest note, in characters.
pub const MAX_NOTE_CHARS: usize = 2_000;

/// A change of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupChange<'a> {
    /// Sets its note; an empty one removes it. At most [`MAX_NOTE_CHARS`] are kept.
    Note(&'a str),
    /// Sets the decision about it.
    Decide(GroupDecision),
}

/// The group after the change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupStatus {
    /// The decision.
    pub decision: GroupDecision,
    /// The note.
    pub note: Option<String>,
}

/// Why a change was refused.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// No failure was ever of this group, or it is forgotten.
    #[error("there is no group {0}; `sexton groups list --all` lists those there are")]
    Missing(String),
    /// The group has this state already.
    #[error("group {fingerprint} is {what} already{}", by.as_deref().map(|by| format!(", by {by}")).unwrap_or_default())]
    Already {
        /// The group.
        fingerprint: String,
        /// The state.
        what: &'static str,
        /// Who did it.
        by: Option<String>,
    },
    /// Another transaction kept the row locked for 5 s. Try again.
    #[error("group {0} is locked by somebody else; try again")]
    Locked(String),
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for DecideError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Changes a group's note, or the decision about it.
///
/// # Errors
///
/// [`DecideError`]; nothing was changed.
pub async fn decide(
    store: &Store,
    fingerprint: &str,
    change: GroupChange<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<GroupStatus, DecideError> {
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    // A group whose changes are not aggregated yet has no row.
    let made = sqlx::query!(
        "-- make_failure_group
        INSERT INTO sexton.failure_groups (fingerprint)
        SELECT $1::text WHERE EXISTS (SELECT FROM sexton.failure_changes WHERE fingerprint = $1)
        ON CONFLICT (fingerprint) DO NOTHING",
        fingerprint
    )
    .execute(WithTimeout(&mut *tx));
    let locked = |error: sqlx::Error| {
        if is_lock_timeout(&error) {
            DecideError::Locked(fingerprint.to_owned())
        } else {
            error.into()
        }
    };
    made.await.map_err(locked)?;
    let row = sqlx::query!(
        r#"-- lock_failure_group
        SELECT state, note, decided_by, coalesce($2, clock_timestamp()) AS "now!"
        FROM sexton.failure_groups WHERE fingerprint = $1 FOR NO KEY UPDATE"#,
        fingerprint,
        now
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await
    .map_err(locked)?;
    let row = row.ok_or_else(|| DecideError::Missing(fingerprint.to_owned()))?;
    let previous = parse_column("failure_groups.state", &row.state, GroupDecision::parse)?;
    let already = |what, by: Option<String>| DecideError::Already {
        fingerprint: fingerprint.to_owned(),
        what,
        by,
    };
    let (action, decision, note, decided) = match change {
        GroupChange::Note(text) => {
            let text: String = text.trim().chars().take(MAX_NOTE_CHARS).collect();
            let note = Some(text).filter(|text| !text.is_empty());
            if note == row.note {
                return Err(already("noted so", None));
            }
            ("group_note", previous, note, None)
        }
        // A resolved group that has failed again may be resolved again.
        GroupChange::Decide(decision)
            if decision == previous && decision != GroupDecision::Resolved =>
        {
            return Err(already(decision.as_str(), row.decided_by));
        }
        GroupChange::Decide(decision) => {
            let action = match decision {
                GroupDecision::Open => "group_reopen",
                GroupDecision::Muted => "group_mute",
                GroupDecision::Resolved => "group_resolve",
            };
            (action, decision, row.note.clone(), Some(row.now))
        }
    };
    let before = json!({"fingerprint": fingerprint, "state": previous.as_str(), "note": row.note});
    let after = json!({"fingerprint": fingerprint, "state": decision.as_str(), "note": note});
    write(&mut tx, fingerprint, decision, note.as_deref(), decided, by).await?;
    if decided.is_some() {
        let ended = reopened::decided(&mut tx, fingerprint, decision, by.actor, row.now).await;
        ended.map_err(|error| match error {
            StoreError::Unavailable(error) | StoreError::Statement(error) => locked(error),
            error => error.into(),
        })?;
    }
    record_jobless_action(&mut tx, action, (Some(before), Some(after)), by, row.now).await?;
    commit(tx).await?;
    Ok(GroupStatus { decision, note })
}

async fn write(
    connection: &mut sqlx::PgConnection,
    fingerprint: &str,
    decision: GroupDecision,
    note: Option<&str>,
    decided: Option<DateTime<Utc>>,
    by: AuditContext<'_>,
) -> Result<(), DecideError> {
    let done = sqlx::query!(
        "-- change_failure_group
        UPDATE sexton.failure_groups SET state = $2, note = $3,
            decided_by = CASE WHEN $4::timestamptz IS NULL THEN decided_by ELSE $5 END,
            decided_at = coalesce($4, decided_at)
        WHERE fingerprint = $1",
        fingerprint,
        decision.as_str(),
        note,
        decided,
        by.actor
    )
    .execute(WithTimeout(connection))
    .await?;
    if done.rows_affected() == 1 {
        Ok(())
    } else {
        Err(DecideError::Missing(fingerprint.to_owned()))
    }
}
