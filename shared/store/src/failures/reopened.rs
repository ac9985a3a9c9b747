//! Incidents of groups that an operator resolved and that failed again.
//!
//! An incident is open while its group is reopened and something of it is failed. It opens in the transaction that adds the new
//! failures up, and ends in the one that adds up the end of the last, or that decides about the group. Both lock
//! the group's row first. So a crash leaves the changes to the next aggregator, nothing is reported twice, and what fails
//! an execution appends a change and waits for nobody.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sexton_model::failures::{GroupDecision, ReopenedGroup};
use sexton_model::incident::{REOPENED_GROUP, Severity, SubjectKind};
use sqlx::PgConnection;

use crate::connection::client_timeout::WithTimeout;
use crate::connection::instant::instant;
use crate::error::parse_column;
use crate::incidents::{self, Occurrence};
use crate::{Now, StoreError};

/// Reports groups with the number of their new failures. Returns how many it reported: one of which nothing is failed any more
/// is left out.
pub(super) async fn report(
    connection: &mut PgConnection,
    again: &[(String, i64)],
    now: Now,
) -> Result<usize, StoreError> {
    if again.is_empty() {
        return Ok(0);
    }
    let now = instant(connection, now).await?;
    let occurrences = read(connection, again).await?;
    incidents::report(connection, &occurrences, now).await?;
    Ok(occurrences.len())
}

/// Ends the incidents of those groups of which nothing is failed any more.
pub(super) async fn end(
    connection: &mut PgConnection,
    fingerprints: &[String],
    now: Now,
) -> Result<(), StoreError> {
    if fingerprints.is_empty() {
        return Ok(());
    }
    let over = sqlx::query_scalar!(
        "-- ended_group_incidents
        SELECT i.subject FROM sexton.incidents i
        WHERE i.subject_kind = 'group' AND i.subject = ANY ($1) AND i.state <> 'resolved' AND (
            SELECT coalesce(sum(n.standing), 0) FROM (
                SELECT standing FROM sexton.failure_counts WHERE fingerprint = i.subject
                UNION ALL
                SELECT change FROM sexton.failure_changes WHERE fingerprint = i.subject) n) <= 0
        ORDER BY i.subject",
        fingerprints
    )
    .fetch_all(WithTimeout(&mut *connection))
    .await?;
    if over.is_empty() {
        return Ok(());
    }
    let now = instant(connection, now).await?;
    let detail = "nothing of the group is failed any more";
    let over: Vec<_> =
        over.into_iter().map(|group| (SubjectKind::Group, group, detail.to_owned())).collect();
    incidents::recover(connection, &over, now).await?;
    Ok(())
}

/// Ends the incident of a group that an operator decided about.
pub(super) async fn decided(
    connection: &mut PgConnection,
    fingerprint: &str,
    decision: GroupDecision,
    actor: &str,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let detail = format!("{actor} has set the group to {}", decision.as_str());
    let over = [(SubjectKind::Group, fingerprint.to_owned(), detail)];
    incidents::recover(connection, &over, now).await?;
    Ok(())
}

/// Reads what there is to say about groups. The labels are those of the job whose execution failed last, and the severity
/// is the highest of the jobs with failed executions.
async fn read(
    connection: &mut PgConnection,
    again: &[(String, i64)],
) -> Result<Vec<Occurrence>, StoreError> {
    let (fingerprints, counts): (Vec<String>, Vec<i64>) = again.iter().cloned().unzip();
    let rows = sqlx::query!(
        r#"-- read_reopened_groups
        SELECT r.fingerprint AS "fingerprint!", r.again AS "again!", g.decided_by, g.decided_at AS "decided_at!",
               e.id AS "execution?", j.id AS "job?", j.labels AS "labels?", j.remind_every_ms,
               coalesce(CASE WHEN e.fingerprint = r.fingerprint THEN coalesce(a.error_class, e.error_class) END,
                        g.error_class, '') AS "error_class!",
               coalesce(CASE WHEN e.fingerprint = r.fingerprint THEN left(coalesce(a.error_message, e.error_message), 2000) END,
                        g.pattern, '') AS "message!",
               s.standing AS "standing!", s.jobs AS "jobs!", s.names AS "names!", s.severities AS "severities!"
        FROM unnest($1::text[], $2::bigint[]) AS r (fingerprint, again)
        JOIN sexton.failure_groups g ON g.fingerprint = r.fingerprint
        LEFT JOIN sexton.executions e ON e.id = g.example
        LEFT JOIN sexton.attempts a ON a.execution_id = e.id AND a.number = e.attempt - 1
        LEFT JOIN sexton.jobs j ON j.id = e.job_id
        CROSS JOIN LATERAL (
            SELECT sum(n.standing)::bigint AS standing, count(*) AS jobs,
                   (array_agg(coalesce(k.deleted_name, k.name) ORDER BY k.name))[:5] AS names,
                   array_agg(DISTINCT coalesce(k.severity, 'medium')) AS severities
            FROM (SELECT b.job_id, sum(b.standing) AS standing FROM (
                      SELECT job_id, standing FROM sexton.failure_counts WHERE fingerprint = r.fingerprint
                      UNION ALL
                      SELECT job_id, change FROM sexton.failure_changes WHERE fingerprint = r.fingerprint) b
                  GROUP BY b.job_id HAVING sum(b.standing) > 0) n
            JOIN sexton.jobs k ON k.id = n.job_id) s
        WHERE s.standing > 0 ORDER BY r.fingerprint"#,
        &fingerprints,
        &counts
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let mut occurrences = Vec::with_capacity(rows.len());
    for row in rows {
        let severities =
            row.severities.iter().map(|text| parse_column("jobs.severity", text, Severity::parse));
        let severities = severities.collect::<Result<Vec<_>, _>>()?;
        let labels: BTreeMap<String, String> =
            row.labels.and_then(|labels| serde_json::from_value(labels).ok()).unwrap_or_default();
        let group = ReopenedGroup {
            fingerprint: row.fingerprint,
            again: row.again,
            standing: row.standing,
            jobs: row.jobs,
            names: row.names,
            decided_by: row.decided_by,
            decided_at: row.decided_at,
            error_class: row.error_class,
            message: row.message,
        };
        occurrences.push(Occurrence {
            subject_kind: SubjectKind::Group,
            name: group.name(),
            cause: REOPENED_GROUP.to_owned(),
            severity: severities.into_iter().max().unwrap_or_default(),
            labels,
            detail: group.describe(),
            job: row.job,
            execution: row.execution,
            occurrences: u32::try_from(row.again).unwrap_or(u32::MAX),
            remind_every_ms: row.remind_every_ms,
            subject: group.fingerprint,
        });
    }
    Ok(occurrences)
}
