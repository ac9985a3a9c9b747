//! What tasks and people write, however it looks, is text in the console.

use sexton_model::access::Role;
use sexton_model::id::ExecutionId;
use sexton_store::attempts::output::OutputPart;

use super::story;
use crate::api::Fixture;

/// Markup, an escape sequence, characters that turn the direction around, one that is no text, and a word without an end.
fn hostile(mark: &str) -> String {
    let markup = format!(
        "</pre><script>window.pwned = '{mark}'</script><img src=x onerror=\"window.pwned = '{mark}'\">"
    );
    let odd = "\u{1b}[31m \u{202e}txt.exe \u{200b} {{ 7 * 7 }} '\"`&amp; \u{1f4a9}";
    format!("{markup}{odd} {}", "x".repeat(1_500))
}

#[tokio::test]
async fn no_text_of_a_task_or_a_person_becomes_markup() {
    let f = Fixture::with_local_role(Some(Role::Admin)).await;
    let mut deep = "1".to_owned();
    for _ in 0..60 {
        deep = format!("{{\"a\":{deep}}}");
    }
    let params = format!(
        "{{\"deep\": {deep}, \"number\": 9007199254740993, \"text\": {}, \"api_token\": \"hunter2\"}}",
        serde_json::Value::from(hostile("params").replace('\u{1b}', ""))
    );
    let triggered = f
        .console
        .json(&[
            "jobs",
            "trigger",
            "shop.charge",
            "--params",
            &params,
            "--reason",
            &hostile("reason"),
        ])
        .await;
    let id: uuid::Uuid = triggered["id"].as_str().unwrap().parse().unwrap();
    let open = f.console.open(ExecutionId::new(id), 1).await;
    f.console.fail(open, &hostile("error"), None::<OutputPart>).await;
    f.console.incident("backup", "high", "open", 60).await;
    let failure = format!("/failed/{id}");
    let edit = format!("/failed/{id}/edit");
    story("hostile.js", &[&f.site(), &failure, "/failed", &edit, "/failed/bulk?kind=discard"])
        .await;
}
