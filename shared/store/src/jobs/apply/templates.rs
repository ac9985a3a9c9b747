//! Templates that could not be filled once the jobs are there: in members of flows, and in zones that the server does not know.

use serde_json::Value;
use sexton_model::job::JobSpec;
use sqlx::PgConnection;

use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

/// Returns what is wrong, at most a hundred lines. A firing must not fail for its template, and two executions whose idempotency
/// key lacks the param by which they differ would be repetitions of one another.
pub(super) async fn find_problems(
    connection: &mut PgConnection,
    specs: &[JobSpec],
) -> Result<Vec<String>, StoreError> {
    let concerned: Vec<Value> =
        specs.iter().filter(|spec| is_concerned(spec)).map(JobSpec::to_json).collect();
    if concerned.is_empty() {
        return Ok(Vec::new());
    }
    let concerned = Value::from(concerned);
    // A statement of its own: the other one would fail for such a zone.
    let zones = sqlx::query_scalar!(
        r#"-- unknown_zones
        SELECT format('job %s: PostgreSQL does not know the time zone %s, by which a placeholder is formatted; '
                      'update the zone data of its server, or leave the format out', g.name, g.timezone) AS "problem!"
        FROM jsonb_populate_recordset(NULL::sexton.jobs, $1) AS g
        WHERE g.timezone <> 'UTC' AND strpos(g.params::text || coalesce(g.idempotency_template, ''), 'date(') > 0
          AND NOT EXISTS (SELECT FROM pg_timezone_names z WHERE z.name = g.timezone)
        ORDER BY g.name LIMIT 100"#,
        &concerned
    )
    .fetch_all(WithTimeout(&mut *connection))
    .await?;
    if !zones.is_empty() {
        return Ok(zones);
    }
    Ok(sqlx::query_scalar!(
        r#"-- unfilled_members
        WITH g AS MATERIALIZED (
            SELECT name, params, timezone, idempotency_template, flow
            FROM jsonb_populate_recordset(NULL::sexton.jobs, $1)),
        j AS MATERIALIZED (
            SELECT g.*, true AS given FROM g
            UNION ALL
            SELECT o.name, o.params, o.timezone, o.idempotency_template, o.flow, false FROM sexton.jobs o
            WHERE o.deleted_at IS NULL AND (o.flow IS NOT NULL OR o.templated)
              AND NOT EXISTS (SELECT FROM g WHERE g.name = o.name)),
        m AS MATERIALIZED (
            SELECT f.name AS flow, i.item ->> 'name' AS member, t.name AS job, sexton.filled_execution(
                       t.params, p.given, t.idempotency_template, sexton.template_values(
                           t.name, t.timezone, 'flow', now(), NULL, t.params || p.given)) ->> 'problem' AS problem
            FROM j f CROSS JOIN LATERAL jsonb_array_elements(f.flow) AS i (item)
            JOIN j t ON t.name = i.item ->> 'job' AND (f.given OR t.given)
                    AND strpos(t.params::text || coalesce(t.idempotency_template, ''), '{{') > 0
            CROSS JOIN LATERAL (SELECT coalesce(nullif(i.item -> 'params', 'null'), '{}') AS given) p
            WHERE f.flow IS NOT NULL)
        SELECT format('member %s of the flow of job %s: job %s: %s; give it in the member''s params, since results come later',
                      m.member, m.flow, m.job, m.problem) AS "problem!"
        FROM m WHERE m.problem IS NOT NULL ORDER BY 1 LIMIT 100"#,
        &concerned
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}

fn is_concerned(spec: &JobSpec) -> bool {
    let is_template = |text: &str| text.contains("{{");
    !spec.flow.is_empty()
        || is_template(&spec.params.to_string())
        || spec.idempotency_template.as_deref().is_some_and(is_template)
}
