//! Of which failed executions a later one with the same idempotency key has succeeded.
//!
//! Executions share a key only where a job's template leaves the execution key out, and then all of the job have
//! the same one, or the few that its templates of the past have made. So what is looked for is the latest success
//! of each key, once for a preview, along the job's executions; and not one for each failed execution, which would
//! be as many walks over the same rows. What was walked over is remembered, so that a preview walks over no
//! execution twice for a key, whatever its pages hold.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Store, StoreError};

/// What is known of the keys so far.
#[derive(Default)]
pub(super) struct LaterSuccesses {
    known: HashMap<(Uuid, String), SearchedRange>,
}

#[derive(Clone, Copy)]
struct SearchedRange {
    /// All executions that were claimed after this were looked at.
    from: DateTime<Utc>,
    /// When the latest that succeeded was claimed; `None`: none of them did.
    latest: Option<DateTime<Utc>>,
}

/// Executions of a page with one key.
struct Group {
    job: Uuid,
    key: String,
    claimed: Vec<DateTime<Utc>>,
}

impl LaterSuccesses {
    /// Of how many of these a later one has succeeded.
    pub(super) async fn count(&mut self, store: &Store, ids: &[Uuid]) -> Result<u64, StoreError> {
        let groups = group_by_key(store, ids).await?;
        self.search(store, &groups).await?;
        let mut count = 0;
        for group in groups {
            let latest = self.known.get(&(group.job, group.key)).and_then(|looked| looked.latest);
            count += group.claimed.iter().filter(|at| latest.is_some_and(|it| it > **at)).count();
        }
        Ok(count as u64)
    }

    /// Looks at what was claimed after the first of each group, as far as that is not known.
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

/// The executions that share their key with others, as far as their job says.
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

/// When the latest with this key that succeeded was claimed, after `from` and not after `until`.
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
