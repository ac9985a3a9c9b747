//! Counts failed executions of which a later one with the same idempotency key has succeeded.
//!
//! Executions share a key only where a job's template leaves the execution key out, and then all of the job have the
//! same one, or the few that its past templates have made. So a preview searches for the latest success of each key
//! once, along the job's executions; a search for each failed execution would walk the same rows many times. It
//! remembers the range that it has walked, so that it walks no execution twice for a key, over all its pages.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Store, StoreError};

/// The searched keys.
#[derive(Default)]
pub(super) struct LaterSuccesses {
    known: HashMap<(Uuid, String), SearchedRange>,
}

#[derive(Clone, Copy)]
struct SearchedRange {
    /// All executions that were claimed after this have been searched.
    from: DateTime<Utc>,
    /// When the latest success was claimed; `None`: none succeeded.
    latest: Option<DateTime<Utc>>,
}

/// Executions of a page with the same key.
struct Group {
    job: Uuid,
    key: String,
    claimed: Vec<DateTime<Utc>>,
}

impl LaterSuccesses {
    /// Counts the executions among these of which a later one has succeeded.
    pub(super) async fn count(&mut self, store: &Store, ids: &[Uuid]) -> Result<u64, StoreError> {
        let groups = group_by_key(store, ids).await?;
        self.search(store, &groups).await?;
        let mut count = 0;
        for group in groups {
            let latest =
                self.known.get(&(group.job, group.key)).and_then(|searched| searched.latest);
            count += group.claimed.iter().filter(|at| latest.is_some_and(|it| it > **at)).count();
        }
        Ok(count as u64)
    }

    /// Searches the executions that were claimed after the first of each group, without the range that is already
    /// searched.
    async fn search(&mut self, store: &Store, groups: &[Group]) -> Result<(), StoreError> {
        for group in groups {
            let Some(from) = group.claimed.iter().min().copied() else { continue };
            let name = (group.job, group.key.clone());
            let known = self.known.get(&name).copied();
            if known.is_some_and(|known| known.latest.is_some() || known.from <= from) {
                continue;
            }
            let until = known.map(|known| known.from);
            let latest = find_latest_success(store, group, from, until).await?;
            self.known.insert(name, SearchedRange { from, latest });
        }
        Ok(())
    }
}

/// Groups the executions whose job's templates allow shared keys.
async fn group_by_key(store: &Store, ids: &[Uuid]) -> Result<Vec<Group>, StoreError> {
    let rows = sqlx::query!(
        r#"-- shared_keys_of_page
        SELECT e.job_id, e.idempotency_key, array_agg(e.claimed_at) AS "claimed!"
        FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
        WHERE e.id = ANY ($1) AND j.idempotency_template NOT LIKE '%{execution\_key}%'
        GROUP BY 1, 2"#,
        ids
    )
    .fetch_all(store.with_timeout())
    .await?;
    let group = rows.into_iter().map(|row| Group {
        job: row.job_id,
        key: row.idempotency_key,
        claimed: row.claimed,
    });
    Ok(group.collect())
}

/// Returns when the latest success with this key was claimed, after `from` and not after `until`.
async fn find_latest_success(
    store: &Store,
    group: &Group,
    from: DateTime<Utc>,
    until: Option<DateTime<Utc>>,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- latest_success_of_key
        SELECT claimed_at FROM sexton.executions
        WHERE job_id = $1 AND claimed_at > $3 AND claimed_at <= coalesce($4::timestamptz, 'infinity')
          AND state = 'succeeded' AND idempotency_key = $2
        ORDER BY claimed_at DESC LIMIT 1",
        group.job,
        group.key,
        from,
        until
    )
    .fetch_optional(store.with_timeout())
    .await?)
}
