//! Actions that enough people have approved, and that are not carried out.

use crate::{Now, Store, StoreError};

/// A request that is approved and not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApprovedRequest {
    /// Its number.
    pub id: i64,
    /// `edit`, `discard`, `bulk_requeue`, `bulk_discard`, `bulk_cancel` or `backfill`.
    pub kind: String,
    /// Milliseconds since the last approval, or since its process has shown a sign of life, by the database's clock.
    pub silent_ms: i64,
}

/// Returns the requests that are approved, and neither carried out nor expired, the longest silent first; at most 1,000, as many as
/// may wait.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list_approved_requests(
    store: &Store,
    now: Now,
) -> Result<Vec<ApprovedRequest>, StoreError> {
    Ok(sqlx::query_as!(
        ApprovedRequest,
        r#"-- doctor_approvals
        SELECT r.id AS "id!", r.kind AS "kind!",
               (extract(epoch FROM coalesce($1, now()) - s.last_at) * 1000)::bigint AS "silent_ms!"
        FROM sexton.approval_requests r,
             LATERAL (SELECT count(*) AS approvals, greatest(max(a.approved_at), r.claimed_at) AS last_at
                      FROM sexton.approvals a WHERE a.request_id = r.id) s
        WHERE r.state = 'waiting' AND r.expires_at > coalesce($1, now()) AND s.approvals + 1 >= r.people
        ORDER BY s.last_at, r.id LIMIT 1000"#,
        now
    )
    .fetch_all(store.with_timeout())
    .await?)
}
