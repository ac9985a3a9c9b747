//! What tasks and people write, however it looks, is text in the console.

use serde_json::{Value, json};
use sexton_model::access::Role;
use sexton_model::id::ExecutionId;
use sexton_model::output::{Chunk, Line, Stream};
use sexton_store::output::OutputPart;

use super::fixture::Rows;
use super::story;

/// Depth of the JSON below the params, which have 64 levels at most.
const DEPTH: usize = 63;

/// Markup, an escape sequence, characters that turn the direction around, one that is no text, a year far away, and a word without an end.
fn hostile(mark: &str) -> String {
    let markup = format!(
        "</pre><script>window.pwned = '{mark}'</script><img src=x onerror=\"window.pwned = '{mark}'\">"
    );
    let odd = "\u{1b}[31m \u{202e}txt.exe \u{200b} {{ 7 * 7 }} '\"`&amp; 999999999-12-31T23:59:59Z \u{1f4a9}";
    format!("{markup}{odd} {}", "x".repeat(1_500))
}

fn deep() -> Value {
    (0..DEPTH).fold(json!(1), |inner, _| json!({"a": inner}))
}

/// Statements that write a hostile text, `$1`, and deep JSON, `$2`, into every column whose text pages show and the schema does not restrict.
const WRITES: [&str; 20] = [
    "UPDATE sexton.jobs SET description = $1, target = $1, params = params || jsonb_build_object('deep', $2::jsonb, 'text', $1::text),
         labels = jsonb_build_object(left($1, 100), $1::text)",
    "UPDATE sexton.jobs SET paused_by = $1, paused_why = $1 WHERE paused_at IS NOT NULL AND $2::jsonb IS NOT NULL",
    "UPDATE sexton.executions SET target = $1, claimed_by = $1, error_class = left($1, 300),
         error_message = CASE WHEN error_message IS NOT NULL THEN $1 END,
         params = params || jsonb_build_object('deep', $2::jsonb, 'text', $1::text)",
    "UPDATE sexton.attempts SET error_class = left($1, 300), error_message = $1, result = $2::jsonb",
    "UPDATE sexton.instances SET name = left($1, 300), version = left($1, 300), tz_version = left($1, 300), pools = ARRAY[left($1, 200)]
         WHERE $2::jsonb IS NOT NULL",
    "UPDATE sexton.offers SET task_type = left($1, 300), params_schema = NULL WHERE $2::jsonb IS NOT NULL",
    "INSERT INTO sexton.failure_groups (fingerprint, error_class, pattern, note, decided_by, decided_at)
         SELECT DISTINCT fingerprint, left($1, 300), $1, $1, $1, now() FROM sexton.failures
         WHERE fingerprint IS NOT NULL AND $2::jsonb IS NOT NULL
         ON CONFLICT (fingerprint) DO UPDATE SET error_class = left($1, 300), pattern = $1, note = $1, decided_by = $1, decided_at = now()",
    "UPDATE sexton.incidents SET name = left($1, 300), detail = $1, labels = jsonb_build_object(left($1, 100), $1::text),
         acknowledged_at = now(), acknowledged_by = $1, silenced_until = now() + interval '1 hour', silenced_by = $1, silence_reason = $1
         WHERE $2::jsonb IS NOT NULL",
    "UPDATE sexton.incident_events SET actor = $1, detail = $1 WHERE $2::jsonb IS NOT NULL",
    "UPDATE sexton.channels SET last_error = $1 WHERE $2::jsonb IS NOT NULL",
    "UPDATE sexton.notifications SET detail = $1, last_error = $1 WHERE $2::jsonb IS NOT NULL",
    "UPDATE sexton.pings SET body = $1, agent = left($1, 200) WHERE $2::jsonb IS NOT NULL",
    "UPDATE sexton.lock_rows SET name = left($1, 64), locked_by = left($1, 255) WHERE $2::jsonb IS NOT NULL",
    "UPDATE sexton.flows SET name = left($1, 200), key = left($1, 256), created_by = $1, problem = left($1, 400) WHERE $2::jsonb IS NOT NULL",
    "UPDATE sexton.flow_members SET name = left($1, 80) || right(execution_id::text, 12) WHERE $2::jsonb IS NOT NULL",
    "INSERT INTO sexton.operator_actions (at, actor, from_where, action, reason, before, after)
         VALUES (now(), $1, $1, 'pause', $1, jsonb_build_object(left($1, 100), $1::text), $2::jsonb)",
    "UPDATE sexton.gaps SET actor = $1, why = $1 WHERE $2::jsonb IS NOT NULL",
    "UPDATE sexton.bulks SET actor = $1, from_where = $1, reason = $1, why = $1, stopped_by = $1,
         selector = jsonb_build_object('filter', jsonb_build_object('text', $1::text)) WHERE $2::jsonb IS NOT NULL",
    "WITH approved AS (UPDATE sexton.approval_requests SET reason = $1, requested_by = left($1, 500), people = 3
             WHERE $2::jsonb IS NOT NULL RETURNING id)
         INSERT INTO sexton.approvals (request_id, actor, actor_names, reason, approved_at)
         SELECT id, left($1, 500), ARRAY['bob'], $1, now() FROM approved",
    "WITH changed AS (UPDATE sexton.approval_rules SET label = left($1, 200), label_value = left($1, 500), set_by = $1
             WHERE $2::jsonb IS NOT NULL)
         UPDATE sexton.tokens SET created_by = $1, only_jobs = 'team=' || left($1, 250) WHERE role <> 'admin'",
];

/// Fails an execution whose params, reason, error, output and progress are hostile, and returns its id.
async fn fail_execution(rows: &Rows) -> ExecutionId {
    let console = &rows.f.console;
    let text = hostile("params").replace('\u{1b}', "");
    let number = 9_007_199_254_740_993_u64;
    let params = json!({"deep": deep(), "number": number, "text": text, "api_token": "hunter2"});
    let (params, reason) = (params.to_string(), hostile("reason"));
    let trigger = ["jobs", "trigger", "shop.charge", "--params", &params, "--reason", &reason];
    let triggered = console.json(&trigger).await;
    let id: uuid::Uuid = triggered["id"].as_str().unwrap().parse().unwrap();
    let id = ExecutionId::new(id);
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    let text = hostile("output");
    let lines =
        [Stream::Stdout, Stream::Stderr].map(|stream| Line { at, stream, text: text.clone() });
    let bytes = 2 * (text.len() as i64 + 1);
    let progress = json!({"percent": 40.0, "values": {"note": hostile("progress")}, "at": at});
    let output = OutputPart {
        chunks: vec![Chunk::new(1, 0, bytes, &lines).into()],
        progress: Some(progress),
        ..OutputPart::default()
    };
    console.fail(console.open(id, 1).await, &hostile("error"), Some(output)).await;
    id
}

#[tokio::test]
async fn no_text_of_a_task_or_a_person_becomes_markup() {
    let rows = Rows::new(Some(Role::Admin)).await;
    for (number, statement) in WRITES.into_iter().enumerate() {
        let written = sqlx::query(statement).bind(hostile("column")).bind(deep());
        let written = written.execute(rows.f.console.store().pool()).await;
        written.unwrap_or_else(|error| panic!("statement {number}: {error}"));
    }
    let id = fail_execution(&rows).await;
    let of_it = ["", "/edit"].map(|part| format!("/failed/{id}{part}"));
    let more =
        [of_it[1].clone(), format!("/executions/{id}"), "/failed/bulk?kind=discard".to_owned()];
    let pages = rows.pages().into_iter().map(|(_, address)| address).chain(more);
    let site = rows.f.site().replace("127.0.0.1", "localhost");
    let arguments: Vec<String> = [site, of_it[0].clone()].into_iter().chain(pages).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    story("hostile.js", &arguments).await;
}
