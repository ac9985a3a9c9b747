//! Pauses jobs whose last executions have all failed for good.
//!
//! The planner checks under the lock of the job whose firing is due. So one of any number of replicas decides, no
//! firing slips through between check and pause, and it never waits for a settlement, which locks no job: one that
//! commits later counts at the next firing. The due firing stays the job's cursor, so it is recorded as missed by the
//! pause.

use std::collections::HashSet;

use chrono::TimeDelta;
use serde_json::json;
use uuid::Uuid;

use super::{ClaimTransaction, DueJobs, FailingJob, claim_lead};
use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;
use crate::operator::{NewAction, record_actions};

/// The actor in the row and in the audit.
const AUDIT_ACTOR: &str = "sexton";

impl ClaimTransaction<'_> {
    /// Pauses the due jobs whose last executions failed, and removes them from `due`.
    ///
    /// A separate statement after the jobs are locked, like that for executions under way. Succeeded and failed
    /// executions count, in the order in which they ended; skipped, cancelled and discarded ones do not. It searches
    /// the newest claims, ten times the limit and a hundred more.
    pub(super) async fn pause_failing_jobs(&mut self, due: &mut DueJobs) -> Result<(), StoreError> {
        let asking = due.jobs.iter().filter_map(|job| Some((job, job.pause_after_failures?)));
        let (jobs, limits): (Vec<Uuid>, Vec<i32>) =
            asking.map(|(job, failures)| (job.id.get(), failures as i32)).unzip();
        if jobs.is_empty() {
            return Ok(());
        }
        let failing: HashSet<Uuid> = sqlx::query_scalar!(
            r#"-- failing_jobs
            SELECT j.id FROM unnest($1::uuid[], $2::int[]) AS a (id, most)
            JOIN sexton.jobs j ON j.id = a.id
            CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE last.state = 'failed') AS failed FROM (
                    SELECT newest.state FROM (
                        SELECT e.state, e.finished_at FROM sexton.executions e WHERE e.job_id = j.id
                        ORDER BY e.claimed_at DESC LIMIT 10 * a.most + 100) newest
                    WHERE newest.state IN ('succeeded', 'failed')
                      AND (j.failures_since IS NULL OR newest.finished_at > j.failures_since)
                    ORDER BY newest.finished_at DESC LIMIT a.most) last) counted
            WHERE counted.failed = a.most"#,
            &jobs,
            &limits
        )
        .fetch_all(WithTimeout(&mut *self.tx))
        .await?
        .into_iter()
        .collect();
        if failing.is_empty() {
            return Ok(());
        }
        let paused = due.jobs.extract_if(.., |job| failing.contains(&job.id.get()));
        let mut actions = Vec::new();
        let mut at = None;
        let lead = TimeDelta::milliseconds(claim_lead(self.now) as i64);
        for job in paused {
            let failures = job.pause_after_failures.unwrap_or_default();
            actions.push(NewAction {
                action: "pause",
                job_id: job.id.get(),
                execution_id: None,
                reason: Some(pause_reason(failures)),
                before: Some(json!({"status": "active"})),
                after: Some(json!({"status": "paused"})),
            });
            at = Some(job.now - lead);
            due.paused.push(FailingJob { id: job.id, name: job.name, failures });
        }
        let Some(at) = at else { return Ok(()) };
        let ids: Vec<Uuid> = due.paused.iter().map(|job| job.id.get()).collect();
        let reasons: Vec<String> =
            due.paused.iter().map(|job| pause_reason(job.failures)).collect();
        sqlx::query!(
            "-- pause_failing_jobs
            UPDATE sexton.jobs SET status = 'paused', paused_by = $3, paused_why = p.why, paused_at = $4,
                updated_at = $4
            FROM unnest($1::uuid[], $2::text[]) AS p (id, why) WHERE jobs.id = p.id",
            &ids,
            &reasons,
            AUDIT_ACTOR,
            at
        )
        .execute(WithTimeout(&mut *self.tx))
        .await?;
        record_actions(&mut self.tx, AUDIT_ACTOR, &actions, at).await
    }
}

fn pause_reason(failures: u32) -> String {
    match failures {
        1 => "an execution failed (pause_after_failures = 1)".to_owned(),
        more => format!("{more} executions in a row failed (pause_after_failures = {more})"),
    }
}
