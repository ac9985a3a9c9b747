//! The open incidents at a glance.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::{Store, StoreError};

/// Number of incidents that a summary names.
const MAX_NAMED: i64 = 5;

/// The open incidents, acknowledged ones included.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OpenIncidents {
    /// Number of those of high severity.
    pub high: i64,
    /// Number of those of medium severity.
    pub medium: i64,
    /// Number of those of low severity.
    pub low: i64,
    /// The most severe, the newest first; at most five.
    pub worst: Vec<OpenIncident>,
}

impl OpenIncidents {
    /// Returns the number of all.
    pub const fn count(&self) -> i64 {
        self.high + self.medium + self.low
    }
}

/// An open incident; the fields are named after the columns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[expect(missing_docs, reason = "the schema comments every column")]
pub struct OpenIncident {
    pub id: Uuid,
    pub subject_kind: String,
    pub name: String,
    pub cause: String,
    pub severity: String,
    pub state: String,
    pub opened_at: DateTime<Utc>,
}

/// Reads the open incidents at a glance.
///
/// # Errors
///
/// [`StoreError`].
pub async fn summarize_open(store: &Store) -> Result<OpenIncidents, StoreError> {
    let rows = sqlx::query!(
        r#"-- summarize_open_incidents
        SELECT id, subject_kind, name, cause, severity, state, opened_at,
               count(*) FILTER (WHERE severity = 'high') OVER () AS "high!",
               count(*) FILTER (WHERE severity = 'medium') OVER () AS "medium!",
               count(*) FILTER (WHERE severity = 'low') OVER () AS "low!"
        FROM sexton.incidents WHERE state <> 'resolved'
        ORDER BY array_position(ARRAY['high', 'medium', 'low'], severity), opened_at DESC, id DESC LIMIT $1"#,
        MAX_NAMED
    )
    .fetch_all(store.with_timeout())
    .await?;
    let mut open = OpenIncidents::default();
    for row in rows {
        (open.high, open.medium, open.low) = (row.high, row.medium, row.low);
        open.worst.push(OpenIncident {
            id: row.id,
            subject_kind: row.subject_kind,
            name: row.name,
            cause: row.cause,
            severity: row.severity,
            state: row.state,
            opened_at: row.opened_at,
        });
    }
    Ok(open)
}
