//! A flow in the jobs file: each execution of its job begins it.

use chrono::{DurationRound as _, TimeDelta};
use serde_json::Value;
use sexton_model::id::ExecutionId;
use sexton_service::clock;
use sexton_store::backfill::{Backfill, create_batch};
use sexton_store::flows::make_members;
use sexton_store::operator::AuditContext;
use sexton_store::retention::{RetentionPolicy, RetentionTarget};
use sexton_tests::retention::pass;
use uuid::Uuid;

use crate::cli::Console;
use crate::scheduler::one_round;

const JOBS: &str = r#"
[[job]]
name = "etl.extract"
schedule = "* * * * *"
task = "extract"
overlap = "skip"

[[job]]
name = "etl.load"
task = "load"
params = { table = "orders" }

[[job]]
name = "etl.report"
task = "report"

[[flow]]
job = "etl.extract"

[[flow.member]]
name = "load"
job = "etl.load"
after = ["start"]
results = { rows = "{{ upstream.start.result.rows }}" }

[[flow.member]]
name = "report"
job = "etl.report"
after = ["start", "load"]
when = "all_done"
"#;

async fn console() -> Console {
    let console = Console::new().await;
    let file = console.file("jobs.toml", JOBS);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    console
}

/// As a scheduler does it.
async fn make(console: &Console) {
    while make_members(console.store(), 2_000).await.unwrap().is_some() {}
}

async fn count(console: &Console, what: &'static str) -> i64 {
    sqlx::query_scalar(what).fetch_one(console.store().pool()).await.unwrap()
}

const FLOWS: &str =
    "SELECT count(*) FROM sexton.flows WHERE name = 'etl.extract' AND members = 3 AND open = 3";

#[tokio::test]
async fn a_firing_a_trigger_a_backfill_and_an_enqueue_begin_the_flow_and_a_skipped_firing_does_not()
{
    let console = console().await;
    console.run(&["jobs", "trigger", "etl.extract"]).await.expect(0);
    assert_eq!(count(&console, FLOWS).await, 1);
    console.run(&["jobs", "trigger", "etl.extract", "--key", "k"]).await.expect(0);
    // The key has its execution, and with it its flow.
    console.run(&["jobs", "trigger", "etl.extract", "--key", "k"]).await.expect(0);
    assert_eq!(count(&console, FLOWS).await, 2);
    console.run(&["enqueue", "etl.extract", "--key", "one"]).await.expect(0);
    assert_eq!(count(&console, FLOWS).await, 3);
    // Earlier executions are under way, so the schedule's firing is skipped.
    sqlx::query("UPDATE sexton.jobs SET next_fire_at = date_trunc('minute', now()) WHERE name = 'etl.extract'")
        .execute(console.store().pool())
        .await
        .unwrap();
    one_round(console.store()).await;
    assert_eq!(
        count(&console, "SELECT count(*) FROM sexton.executions WHERE state = 'skipped'").await,
        1
    );
    assert_eq!(count(&console, FLOWS).await, 3);
    sqlx::query("UPDATE sexton.jobs SET overlap = 'allow', misfire_policy = 'fire_all', next_fire_at = date_trunc('minute', now()) - interval '1 minute'
                 WHERE name = 'etl.extract'")
        .execute(console.store().pool())
        .await
        .unwrap();
    one_round(console.store()).await;
    assert_eq!(count(&console, FLOWS).await, 4);
    let minute =
        clock::now().duration_trunc(TimeDelta::minutes(1)).unwrap() - TimeDelta::minutes(5);
    let range = Backfill {
        approved: None,
        job: "etl.extract",
        from: minute,
        to: minute,
        rate: None,
        allow_overlap: false,
        dry_run: false,
        claimed_by: "cli",
    };
    let by = AuditContext { actor: "ada", reason: None };
    let fresh = || ExecutionId::new(Uuid::now_v7());
    create_batch(console.store(), range, None, fresh, by, None).await.unwrap();
    assert_eq!(count(&console, FLOWS).await, 5);
    make(&console).await;
    let blocked = "SELECT count(*) FROM sexton.flow_members m JOIN sexton.executions e ON e.id = m.execution_id
                   WHERE NOT m.decided AND e.state = 'pending' AND e.waits = 'turn' AND e.next_attempt_at > now()";
    assert_eq!(count(&console, blocked).await, 10);
    let shown = console.json(&["jobs", "show", "etl.extract"]).await;
    assert_eq!(shown["flow"][0]["name"], "load", "{shown}");
    // Applied again, nothing of the flow has changed.
    let file = console.file("jobs.toml", JOBS);
    let again = console.json(&["jobs", "apply", "-f", &file]).await;
    assert_eq!(again["changed"][0]["changes"]["flow"], Value::Null, "{again}");
}

#[tokio::test]
async fn what_is_wrong_with_a_flow_is_told_with_its_place() {
    let console = Console::new().await;
    let file = console.file(
        "wrong.toml",
        r#"
[[job]]
name = "a.first"
task = "t"
params = { x = "{{ upstream.b.result }}" }

[[flow]]
job = "a.first"
[[flow.member]]
name = "b"
job = "a.second"
after = ["c"]
[[flow.member]]
name = "c"
job = "a.second"
after = ["b"]
[[flow.member]]
name = "d"
job = "a.second"
needs = ["b"]
results = { x = "{{ job }}", y = "{{ upstream.b.result }}" }

[[flow]]
job = "a.other"
"#,
    );
    let refused = console.run(&["jobs", "apply", "-f", &file]).await;
    let text = refused.text();
    for expected in [
        "wrong.toml:5: job \"a.first\": params: upstream.b has a value in the results of a flow's member alone",
        "needs: is not a field; write after",
        "results: may name upstream.NAME.result alone",
        "results: names a result of \"b\", which after does not name",
        "job: \"a.other\" is no job of this file",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let cycle = JOBS.replace("after = [\"start\"]", "after = [\"start\", \"report\"]");
    let file = console.file("cycle.toml", &cycle);
    let text = console.run(&["jobs", "apply", "-f", &file]).await.text();
    assert!(text.contains("job \"etl.extract\": flow.member: it waits for itself"), "{text}");
    let missing = JOBS.replace("job = \"etl.load\"", "job = \"etl.elsewhere\"");
    let file = console.file("missing.toml", &missing);
    let text = console.run(&["jobs", "apply", "-f", &file]).await.text();
    assert!(
        text.contains(
            "the flow of \"etl.extract\" has members of \"etl.elsewhere\", which is no job"
        ),
        "{text}"
    );
    assert_eq!(count(&console, "SELECT count(*) FROM sexton.jobs").await, 0);
}

#[tokio::test]
async fn a_job_with_a_part_in_a_flow_is_not_deleted() {
    let console = console().await;
    let refused = console.run(&["jobs", "delete", "etl.load", "--reason", "x", "--yes"]).await;
    let text = refused.text();
    assert!(
        text.contains("job \"etl.load\" is a member of the flow of etl.extract; change that first"),
        "{text}"
    );
}

/// By hand anything can happen; a claim goes on.
/// Somebody has the key of a member: that flow waits and says why, and no other does.
#[tokio::test]
async fn a_flow_whose_members_cannot_be_made_holds_up_no_other_and_is_made_once_they_can() {
    let console = console().await;
    console.run(&["jobs", "trigger", "etl.extract"]).await.expect(0);
    let id: Uuid = sqlx::query_scalar("SELECT id FROM sexton.flows")
        .fetch_one(console.store().pool())
        .await
        .unwrap();
    let key = format!("flow-{id}-load");
    console.run(&["jobs", "trigger", "etl.load", "--key", &key]).await.expect(0);
    console.run(&["jobs", "trigger", "etl.extract"]).await.expect(0);
    make(&console).await;
    let waiting =
        "SELECT count(*) FROM sexton.flows WHERE to_make IS NOT NULL AND make_after > now()
                   AND problem LIKE '%duplicate key%'";
    assert_eq!(count(&console, waiting).await, 1);
    assert_eq!(count(&console, FLOWS).await, 2);
    assert_eq!(count(&console, "SELECT count(*) FROM sexton.flow_members").await, 3, "the other");
    let shown = console.run(&["flows", "show", &id.to_string()]).await.expect(0);
    assert!(shown.text().contains("tried again every minute: duplicate key"), "{}", shown.text());

    let gone = "DELETE FROM sexton.executions WHERE execution_key = $1";
    sqlx::query(gone).bind(&key).execute(console.store().pool()).await.unwrap();
    make(&console).await;
    assert_eq!(count(&console, waiting).await, 1, "not before the minute is over");
    let later = "UPDATE sexton.flows SET make_after = now() WHERE to_make IS NOT NULL";
    sqlx::query(later).execute(console.store().pool()).await.unwrap();
    make(&console).await;
    assert_eq!(count(&console, waiting).await, 0);
    assert_eq!(count(&console, "SELECT count(*) FROM sexton.flow_members").await, 6);
}

#[tokio::test]
async fn a_flow_whose_members_cannot_be_made_can_be_cancelled() {
    let console = console().await;
    sqlx::query("UPDATE sexton.jobs SET deleted_at = now(), deleted_name = name, name = '~' || id, status = 'paused',
                     paused_at = now(), next_fire_at = NULL WHERE name = 'etl.load'")
        .execute(console.store().pool())
        .await
        .unwrap();
    console.run(&["jobs", "trigger", "etl.extract"]).await.expect(0);
    make(&console).await;
    let waiting = "SELECT count(*) FROM sexton.flows WHERE problem = 'there is no job etl.load'";
    assert_eq!(count(&console, waiting).await, 1);
    let id: Uuid = sqlx::query_scalar("SELECT id FROM sexton.flows")
        .fetch_one(console.store().pool())
        .await
        .unwrap();
    console.run(&["flows", "cancel", &id.to_string(), "--yes"]).await.expect(0);
    assert_eq!(
        count(&console, "SELECT count(*) FROM sexton.executions WHERE state = 'cancelled'").await,
        1
    );
    let ended = "SELECT count(*) FROM sexton.flows WHERE members = 1 AND ended_at IS NOT NULL AND to_make IS NULL";
    assert_eq!(count(&console, ended).await, 1);
}

/// Two flows of one month would have the same idempotency key, and the second would be taken for a repetition.
#[tokio::test]
async fn a_member_whose_job_names_a_param_that_nobody_gives_is_refused_when_it_is_applied() {
    let console = console().await;
    let key =
        "idempotency_key = \"load:{{ params.region }}:{{ scheduled_for | date(\\\"%Y-%m\\\") }}\"";
    let load = "name = \"etl.load\"\ntask = \"load\"";
    let templated = JOBS.replace(load, &format!("{load}\n{key}"));
    assert_ne!(templated, JOBS);
    let file = console.file("jobs.toml", &templated);
    let refused = console.run(&["jobs", "apply", "-f", &file]).await.expect(2);
    let message =
        "member load of the flow of job etl.extract: job etl.load: params.region is missing";
    assert!(refused.text().contains(message), "{}", refused.text());
    console.run(&["jobs", "apply", "--dry-run", "-f", &file]).await.expect(2);
    // Results come later than the key.
    let by_result = templated.replace("results = { rows =", "results = { region = \"x\", rows =");
    let file = console.file("jobs.toml", &by_result);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(2);
    let given = templated.replace("results =", "params = { region = \"eu\" }\nresults =");
    let file = console.file("jobs.toml", &given);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    // The member's job alone, beside a flow that is there.
    let other = "[[job]]\nname = \"etl.report\"\nevery = \"1h\"\ntask = \"report\"\nparams = { since = \"{{ previous_scheduled_for }}\" }\n";
    let file = console.file("other.toml", other);
    let refused = console.run(&["jobs", "apply", "-f", &file]).await.expect(2);
    assert!(
        refused.text().contains("member report of the flow of job etl.extract"),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn a_job_is_not_deleted_while_a_flow_waits_for_its_members() {
    let console = console().await;
    console.run(&["jobs", "trigger", "etl.extract"]).await.expect(0);
    let without = JOBS.split("[[flow]]").next().unwrap();
    let file = console.file("jobs.toml", without);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let refused =
        console.run(&["jobs", "delete", "etl.load", "--reason", "x", "--yes"]).await.expect(2);
    assert!(
        refused.text().contains("is a member of the flow of etl.extract"),
        "{}",
        refused.text()
    );
    make(&console).await;
    assert_eq!(count(&console, FLOWS).await, 1, "as it was when it began");
}

/// A start whose own key is kept for longer is stripped once its flow has ended, however long that takes.
#[tokio::test]
async fn what_was_kept_for_an_open_flow_is_stripped_after_its_end() {
    let console = console().await;
    console
        .run(&["enqueue", "etl.extract", "--key", "o-1", "--params", "{\"a\": 1}"])
        .await
        .expect(0);
    make(&console).await;
    let end = "UPDATE sexton.executions SET state = 'succeeded', next_attempt_at = NULL, finished_at = now() - interval '50 days'
               WHERE id IN (SELECT execution_id FROM sexton.flow_members WHERE name = ANY ($1))";
    let stripped = async |names: &[&str]| {
        sqlx::query(end).bind(names).execute(console.store().pool()).await.unwrap();
        let policy = RetentionPolicy { days: 30, audit_days: None };
        pass(console.store(), policy, &[RetentionTarget::Contents], 100, None)
            .await
            .unwrap()
            .stripped
    };
    assert_eq!(stripped(&["start", "load"]).await, 0, "its flow is open");
    assert_eq!(stripped(&["report"]).await, 1, "the pass of before has not gone past it");
}

#[tokio::test]
async fn retention_takes_no_member_of_an_open_flow_and_the_flow_with_its_last_member() {
    let console = console().await;
    console.run(&["jobs", "trigger", "etl.extract"]).await.expect(0);
    make(&console).await;
    let end = "UPDATE sexton.executions SET state = 'succeeded', next_attempt_at = NULL, finished_at = now() - interval '50 days'
               WHERE id IN (SELECT execution_id FROM sexton.flow_members WHERE name = ANY ($1))";
    let removed = async |names: &[&str]| {
        sqlx::query(end).bind(names).execute(console.store().pool()).await.unwrap();
        let policy = RetentionPolicy { days: 30, audit_days: None };
        pass(console.store(), policy, &[RetentionTarget::Executions], 100, None)
            .await
            .unwrap()
            .executions
    };
    assert_eq!(removed(&["start", "load"]).await, 0);
    assert_eq!(removed(&["report"]).await, 3);
    let left =
        "SELECT (SELECT count(*) FROM sexton.flows) + (SELECT count(*) FROM sexton.flow_members)
                + (SELECT count(*) FROM sexton.flow_edges)";
    assert_eq!(count(&console, left).await, 0);
}

/// Tasks may be faster than the scheduler that makes the members; and a backfill has the date of its firing.
#[tokio::test]
async fn a_flow_whose_first_member_has_ended_goes_on_when_its_members_are_made() {
    let console = console().await;
    let template = "UPDATE sexton.jobs SET params = '{\"day\": \"{{ scheduled_for | date(\\\"%F\\\") }}\"}' WHERE name = 'etl.load'";
    sqlx::query(template).execute(console.store().pool()).await.unwrap();
    console.run(&["jobs", "trigger", "etl.extract", "--key", "k"]).await.expect(0);
    let end = "UPDATE sexton.executions SET state = 'succeeded', next_attempt_at = NULL, finished_at = now(),
                   result = '{\"rows\": 7}', scheduled_for = '2026-01-02T03:00:00Z' WHERE execution_key = 'k'";
    sqlx::query(end).execute(console.store().pool()).await.unwrap();
    assert_eq!(count(&console, "SELECT count(*) FROM sexton.flow_members").await, 0);
    make(&console).await;
    let due = "SELECT count(*) FROM sexton.executions WHERE params = '{\"day\": \"2026-01-02\", \"rows\": 7}'
               AND state = 'pending' AND relay_after <= now() AND scheduled_for = '2026-01-02T03:00:00Z'";
    assert_eq!(count(&console, due).await, 1);
    assert_eq!(count(&console, "SELECT count(*) FROM sexton.flows WHERE open = 2").await, 1);
}
