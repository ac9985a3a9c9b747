//! What the platform's monitors found: remembered from judgement to judgement, so that only what lasts opens an incident.

use chrono::TimeDelta;
use sexton_model::incident::SubjectKind;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::incidents::{Occurrence, recover, report};
use crate::{Now, Store, StoreError};

/// How long a finding stands before it opens an incident.
pub const FINDING_GRACE: TimeDelta = TimeDelta::seconds(55);

/// Records what stands now, in one transaction with the incidents: a finding that stands for [`FINDING_GRACE`] opens one, a
/// finding that is gone resolves its own. Each occurrence's subject is the finding's code. Returns how many incidents opened,
/// and how many were resolved.
///
/// # Errors
///
/// [`StoreError`]; nothing was changed, or all of it.
pub async fn record_findings(
    store: &Store,
    found: &[Occurrence],
    now: Now,
) -> Result<(usize, usize), StoreError> {
    let codes: Vec<String> = found.iter().map(|one| one.subject.clone()).collect();
    let details: Vec<String> = found.iter().map(|one| one.detail.clone()).collect();
    let mut tx = store.begin().await?;
    let rows = sqlx::query!(
        r#"-- record_platform_findings
        INSERT INTO sexton.platform_findings AS f (code, detail, first_seen, last_seen)
        SELECT n.code, n.detail, coalesce($3, now()), coalesce($3, now())
        FROM unnest($1::text[], $2::text[]) AS n (code, detail) ORDER BY n.code
        ON CONFLICT (code) DO UPDATE SET detail = excluded.detail, last_seen = excluded.last_seen,
            -- Nobody judged meanwhile, so it may have been over.
            first_seen = CASE WHEN f.last_seen < excluded.last_seen - interval '3 minutes' THEN excluded.first_seen
                ELSE f.first_seen END
        RETURNING code, first_seen, last_seen,
            EXISTS (SELECT FROM sexton.incidents i WHERE i.subject_kind = 'platform' AND i.subject = f.code
                    AND i.state <> 'resolved') AS "is_open!""#,
        &codes,
        &details,
        now
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    let gone = sqlx::query!(
        r#"-- forget_platform_findings
        DELETE FROM sexton.platform_findings WHERE code <> ALL ($1) RETURNING code, coalesce($2, now()) AS "now!""#,
        &codes,
        now
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    let lasting = |occurrence: &&Occurrence| {
        rows.iter().any(|row| {
            row.code == occurrence.subject
                && !row.is_open
                && row.last_seen - row.first_seen >= FINDING_GRACE
        })
    };
    let opened: Vec<Occurrence> = found.iter().filter(lasting).cloned().collect();
    let at = rows.first().map(|row| row.last_seen).or_else(|| gone.first().map(|row| row.now));
    let mut resolved = 0;
    if let Some(at) = at {
        report(&mut tx, &opened, at).await?;
        let over: Vec<(SubjectKind, String, String)> = gone
            .into_iter()
            .map(|row| (SubjectKind::Platform, row.code, "it is not found any more".to_owned()))
            .collect();
        resolved = recover(&mut tx, &over, at).await? as usize;
    }
    commit(tx).await?;
    Ok((opened.len(), resolved))
}
