//! What monitors report: incidents are over.

use chrono::{DateTime, Utc};
use sexton_model::incident::{NotificationKind, SubjectKind};
use sqlx::PgConnection;
use uuid::Uuid;

use super::notify::{Event, drop_later, notify_followers, record_events};
use super::{MAX_DETAIL_CHARS, RESOLVER, cut};
use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

/// Resolves the open incidents of subjects whose cause is gone. A subject without one is passed over. Returns how many it
/// resolved.
///
/// # Errors
///
/// [`StoreError`]; the caller rolls back.
pub async fn recover(
    connection: &mut PgConnection,
    subjects: &[(SubjectKind, String, String)],
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    if subjects.is_empty() {
        return Ok(0);
    }
    let kinds: Vec<String> = subjects.iter().map(|(kind, ..)| kind.as_str().to_owned()).collect();
    let (names, details): (Vec<String>, Vec<String>) = subjects
        .iter()
        .map(|(_, subject, detail)| (subject.clone(), cut(detail, MAX_DETAIL_CHARS)))
        .unzip();
    let rows = sqlx::query!(
        r#"-- recover_incidents
        WITH given AS (
            SELECT DISTINCT ON (g.subject_kind, g.subject) * FROM unnest($1::text[], $2::text[], $3::text[])
                WITH ORDINALITY AS g (subject_kind, subject, detail, no)
            ORDER BY g.subject_kind, g.subject, g.no),
        locked AS MATERIALIZED (
            SELECT i.id, g.detail FROM given g JOIN sexton.incidents i
                ON i.subject_kind = g.subject_kind AND i.subject = g.subject AND i.state <> 'resolved'
            ORDER BY i.id FOR NO KEY UPDATE OF i)
        UPDATE sexton.incidents i SET state = 'resolved', resolved_at = $4, resolved_by = $5, changed_at = $4
        FROM locked l WHERE i.id = l.id RETURNING i.id, l.detail AS "detail!""#,
        &kinds,
        &names,
        &details,
        now,
        RESOLVER
    )
    .fetch_all(WithTimeout(&mut *connection))
    .await?;
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    drop_later(connection, &ids, now).await?;
    let event = |(id, detail)| Event { incident: id, kind: "resolved", detail: Some(detail) };
    let resolved: Vec<(Uuid, &str)> =
        rows.iter().map(|row| (row.id, row.detail.as_str())).collect();
    let events: Vec<Event<'_>> = resolved.iter().copied().map(event).collect();
    record_events(connection, &events, None, now).await?;
    notify_followers(connection, &resolved, NotificationKind::Resolved, (now, now)).await?;
    Ok(rows.len() as u64)
}
