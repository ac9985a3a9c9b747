//! Jobs that flows name and that do not exist.

use std::collections::HashSet;

use sexton_model::job::JobSpec;
use sqlx::PgConnection;

use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

/// Returns the flows' jobs and those of their members that are neither among `specs` nor in the database.
pub(super) async fn find(
    connection: &mut PgConnection,
    specs: &[JobSpec],
) -> Result<Vec<(String, String)>, StoreError> {
    let given: HashSet<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let (mut flows, mut members) = (Vec::new(), Vec::new());
    for spec in specs {
        let others = spec.flow.iter().filter(|member| !given.contains(member.job.as_str()));
        for member in others {
            flows.push(spec.name.clone());
            members.push(member.job.clone());
        }
    }
    if flows.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query!(
        r#"-- missing_members
        WITH there AS MATERIALIZED (
            -- They stay until the commit.
            SELECT j.name FROM sexton.jobs j WHERE j.name = ANY ($2) AND j.deleted_at IS NULL
            ORDER BY j.id FOR KEY SHARE)
        SELECT DISTINCT m.flow AS "flow!", m.job AS "job!" FROM unnest($1::text[], $2::text[]) AS m (flow, job)
        WHERE NOT EXISTS (SELECT FROM there WHERE there.name = m.job)
        ORDER BY 1, 2 LIMIT 100"#,
        &flows,
        &members
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows.into_iter().map(|row| (row.flow, row.job)).collect())
}

/// Says which are missing.
pub(super) fn describe(missing: &[(String, String)]) -> String {
    let each = missing.iter().map(|(flow, job)| {
        format!("the flow of {flow:?} has members of {job:?}, which is no job; apply it before, or in the same call")
    });
    each.collect::<Vec<_>>().join("\n")
}
