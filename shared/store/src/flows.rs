//! Flows, as operators read and cancel them. The database itself begins them and follows the ends of their members, by
//! triggers (migration 0014).

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::notifications::Notification;
use crate::operator::{AuditContext, NewAction, notify, record_actions, record_jobless_action};
use crate::{Now, Store, StoreError};

/// When a member is due that waits for others: 9999-12-31.
pub(crate) const NOT_BEFORE_OTHERS: DateTime<Utc> =
    // Unwrap safety: the number is within the range, as the compiler checks.
    DateTime::from_timestamp(253_402_214_400, 0).unwrap();

/// The most members in one answer.
pub const MAX_LISTED_MEMBERS: i64 = 1_000;

/// A row of `flows`; the fields are named after the columns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Flow {
    pub id: Uuid,
    pub name: String,
    pub key: Option<String>,
    pub created_by: String,
    pub created_at: DateTime<Utc>,
    pub members: i32,
    pub open: i32,
    pub ended_at: Option<DateTime<Utc>>,
    /// Number of members that are parked as failed, and hold up those downstream.
    pub failed: i64,
    /// Why its members could not be made yet, or were given up.
    pub problem: Option<String>,
}

/// A member of a flow.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FlowMember {
    /// Its name in the flow.
    pub name: String,
    /// Its execution.
    pub execution_id: Uuid,
    /// The execution's job.
    pub job_name: String,
    /// The execution's state.
    pub state: String,
    /// Why it was skipped.
    pub skip_reason: Option<String>,
    /// Its last error.
    pub error_message: Option<String>,
    /// By which ends of its upstream members it runs.
    pub runs_when: String,
    /// Number of upstream members that have not ended.
    pub waits_for: i32,
    /// Whether it runs or was skipped; otherwise it waits for upstream members.
    pub decided: bool,
    /// The names of the members that it waits for or waited for, at most 20.
    pub after: Vec<String>,
    /// The number of those.
    pub upstream: i64,
    /// While it is not decided: the names of those that have not ended, at most 5.
    pub waiting_on: Vec<String>,
    /// While it is not decided: one of those that is parked as failed.
    pub parked: Option<ParkedMember>,
    /// How many steps it is from the first ones.
    pub depth: i32,
}

/// A member that is parked as failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ParkedMember {
    /// Its name in the flow.
    pub name: String,
    /// Its execution.
    pub execution_id: Uuid,
}

/// Which flows to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowFilter {
    /// Only those of this name.
    pub name: Option<String>,
    /// Only those that have not ended.
    pub open: bool,
    /// Only those that began before this one, where the previous page ended.
    pub after: Option<(DateTime<Utc>, Uuid)>,
}

/// Lists flows, the newest first, at most `limit`.
pub async fn list(store: &Store, filter: &FlowFilter, limit: i64) -> Result<Vec<Flow>, StoreError> {
    Ok(sqlx::query_as!(
        Flow,
        r#"-- list_flows
        SELECT f.id, f.name, f.key, f.created_by, f.created_at, f.members, f.open, f.ended_at, f.problem,
               (SELECT count(*) FROM sexton.flow_members m JOIN sexton.executions e ON e.id = m.execution_id
                WHERE m.flow_id = f.id AND f.ended_at IS NULL AND e.state = 'failed') AS "failed!"
        FROM sexton.flows f
        WHERE ($1::text IS NULL OR f.name = $1) AND (NOT $2 OR f.ended_at IS NULL)
          AND ($3::timestamptz IS NULL OR (f.created_at, f.id) < ($3, $4::uuid))
        ORDER BY f.created_at DESC, f.id DESC LIMIT $5"#,
        filter.name,
        filter.open,
        filter.after.map(|after| after.0),
        filter.after.map(|after| after.1),
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns one flow, by its id or that of a member.
pub async fn find(store: &Store, id: Uuid) -> Result<Option<Flow>, StoreError> {
    Ok(sqlx::query_as!(
        Flow,
        r#"-- find_flow
        SELECT f.id, f.name, f.key, f.created_by, f.created_at, f.members, f.open, f.ended_at, f.problem,
               (SELECT count(*) FROM sexton.flow_members m JOIN sexton.executions e ON e.id = m.execution_id
                WHERE m.flow_id = f.id AND f.ended_at IS NULL AND e.state = 'failed') AS "failed!"
        FROM sexton.flows f
        WHERE f.id = $1 OR f.id = (SELECT m.flow_id FROM sexton.flow_members m WHERE m.execution_id = $1)"#,
        id
    )
    .fetch_optional(store.with_timeout())
    .await?)
}

/// A member as it is read.
struct MemberRow {
    name: String,
    execution_id: Uuid,
    job_name: String,
    state: String,
    skip_reason: Option<String>,
    error_message: Option<String>,
    runs_when: String,
    waits_for: i32,
    decided: bool,
    after: Vec<String>,
    upstream: i64,
    waiting_on: Vec<String>,
    parked_name: Option<String>,
    parked_id: Option<Uuid>,
}

/// Returns the members of a flow, those first that others wait for, at most [`MAX_LISTED_MEMBERS`].
pub async fn list_members(store: &Store, flow: Uuid) -> Result<Vec<FlowMember>, StoreError> {
    let rows = read_members(store, flow, None).await?;
    let depths = depths(&rows);
    let mut members: Vec<FlowMember> =
        rows.into_iter().zip(depths).map(|(row, depth)| row.member(depth)).collect();
    members.sort_by(|a, b| (a.depth, &a.name).cmp(&(b.depth, &b.name)));
    Ok(members)
}

/// Returns the flow of an execution and what it is there, its depth not counted; `None`: it is no member of one.
pub async fn find_member(
    store: &Store,
    execution: Uuid,
) -> Result<Option<(Flow, FlowMember)>, StoreError> {
    let Some(flow) = find(store, execution).await? else { return Ok(None) };
    let member = read_members(store, flow.id, Some(execution)).await?.pop();
    Ok(member.map(|row| (flow, row.member(0))))
}

/// Reads the members of a flow, or one of them.
async fn read_members(
    store: &Store,
    flow: Uuid,
    execution: Option<Uuid>,
) -> Result<Vec<MemberRow>, StoreError> {
    Ok(sqlx::query_as!(
        MemberRow,
        r#"-- members_of_flow
        SELECT s.name, s.execution_id, coalesce(j.deleted_name, j.name) AS "job_name!", e.state, e.skip_reason,
               e.error_message, s.runs_when, s.waits_for, s.decided,
               ARRAY(SELECT u.name FROM sexton.flow_edges d JOIN sexton.flow_members u ON u.execution_id = d.upstream
                     WHERE d.downstream = s.execution_id ORDER BY u.name LIMIT 20) AS "after!",
               (SELECT count(*) FROM sexton.flow_edges d WHERE d.downstream = s.execution_id) AS "upstream!",
               ARRAY(SELECT u.name FROM sexton.flow_edges d
                     JOIN sexton.flow_members u ON u.execution_id = d.upstream
                     JOIN sexton.executions x ON x.id = d.upstream
                     WHERE NOT s.decided AND d.downstream = s.execution_id
                       AND x.state IN ('pending', 'running', 'retrying', 'failed')
                     ORDER BY u.name LIMIT 5) AS "waiting_on!",
               p.name AS "parked_name?", p.execution_id AS "parked_id?"
        -- Those first that need an operator, however large the flow is.
        FROM (SELECT m.* FROM sexton.flow_members m JOIN sexton.executions x ON x.id = m.execution_id
              WHERE m.flow_id = $1 AND ($3::uuid IS NULL OR m.execution_id = $3)
              ORDER BY x.state <> 'failed', m.execution_id LIMIT $2) s
        JOIN sexton.executions e ON e.id = s.execution_id JOIN sexton.jobs j ON j.id = e.job_id
        LEFT JOIN LATERAL (
            SELECT u.name, u.execution_id FROM sexton.flow_edges d
            JOIN sexton.flow_members u ON u.execution_id = d.upstream
            JOIN sexton.executions x ON x.id = d.upstream
            WHERE NOT s.decided AND d.downstream = s.execution_id AND x.state = 'failed'
            ORDER BY u.name LIMIT 1) p ON true"#,
        flow,
        MAX_LISTED_MEMBERS,
        execution
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns how many steps each member is from the first ones, as far as the rows say.
fn depths(rows: &[MemberRow]) -> Vec<i32> {
    let places: HashMap<&str, usize> =
        rows.iter().enumerate().map(|(place, row)| (row.name.as_str(), place)).collect();
    let mut depths = vec![0; rows.len()];
    // Each pass is right one step further; no flow has a circle, but rows that somebody wrote by hand may.
    for _ in 0..rows.len() {
        let mut changed = false;
        for (place, row) in rows.iter().enumerate() {
            let above = row.after.iter().filter_map(|name| places.get(name.as_str()));
            let depth = above.map(|above| depths[*above] + 1).max().unwrap_or(0);
            changed |= depth != depths[place];
            depths[place] = depth;
        }
        if !changed {
            break;
        }
    }
    depths
}

impl MemberRow {
    fn member(self, depth: i32) -> FlowMember {
        let Self { name, execution_id, job_name, state, skip_reason, error_message, .. } = self;
        FlowMember {
            name,
            execution_id,
            job_name,
            state,
            skip_reason,
            error_message,
            runs_when: self.runs_when,
            waits_for: self.waits_for,
            decided: self.decided,
            after: self.after,
            upstream: self.upstream,
            waiting_on: self.waiting_on,
            parked: self
                .parked_name
                .zip(self.parked_id)
                .map(|(name, execution_id)| ParkedMember { name, execution_id }),
            depth,
        }
    }
}

/// Makes the members of flows that have begun, until there are about `most`. Returns how many members were made;
/// `None`: no flow waits for any. One transaction; a crash before its commit leaves the flows as they were.
pub async fn make_members(store: &Store, most: i32) -> Result<Option<u64>, StoreError> {
    let made = sqlx::query_scalar!(
        "-- make_flow_members
        SELECT sexton.make_flow_members($1)",
        most
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(made.map(|made| made.max(0) as u64))
}

/// Cancels what waits of a flow, and requests it of the workers of what runs; failed members stay. One transaction, with
/// its record in the audit. Returns how many were cancelled at once; `None`: there is no such flow.
pub async fn cancel(
    store: &Store,
    flow: Uuid,
    by: AuditContext<'_>,
    now: Now,
) -> Result<Option<u64>, StoreError> {
    let mut tx = store.begin().await?;
    let found = sqlx::query!(
        r#"-- flow_to_cancel
        SELECT name, coalesce($2, now()) AS "now!" FROM sexton.flows WHERE id = $1"#,
        flow,
        now
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    let Some(found) = found else { return Ok(None) };
    let ended = sqlx::query!(
        r#"-- cancel_flow
        SELECT cancelled AS "cancelled!", requested AS "requested!" FROM sexton.end_flow($1, $2)"#,
        flow,
        found.now
    )
    .fetch_one(WithTimeout(&mut *tx))
    .await?;
    let rows = sqlx::query!(
        "-- cancelled_members
        SELECT id, job_id, state, attempt FROM sexton.executions
        -- Without any, the first one, if the flow is that of a job.
        WHERE id = ANY ($1) OR id = ANY ($2) OR id = $3 AND cardinality($1) + cardinality($2) = 0",
        &ended.cancelled,
        &ended.requested,
        flow
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    // What ends no member is recorded as well: members that could not be made are given up.
    let is_empty = ended.cancelled.is_empty() && ended.requested.is_empty();
    let action = if is_empty { "cancel_flow" } else { "cancel" };
    let actions: Vec<NewAction> = rows
        .iter()
        .map(|row| NewAction {
            action,
            job_id: row.job_id,
            execution_id: Some(row.id),
            reason: by.reason.map(str::to_owned),
            before: Some(json!({"flow": found.name, "attempt": row.attempt})),
            after: Some(json!({"state": row.state})),
        })
        .collect();
    if actions.is_empty() {
        let before = Some(json!({"flow": found.name}));
        record_jobless_action(&mut tx, action, (before, None), by, found.now).await?;
    }
    record_actions(&mut tx, by.actor, &actions, found.now).await?;
    notify(&mut tx, Notification::Cancel).await?;
    commit(tx).await?;
    Ok(Some(ended.cancelled.len() as u64))
}
