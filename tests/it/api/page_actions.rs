//! What the pages of lists show and do.

use serde_json::json;
use url::form_urlencoded::byte_serialize;

use super::Fixture;

pub(super) async fn send(
    f: &Fixture,
    token: &str,
    method: &str,
    path: &str,
    form: &str,
) -> (u16, String) {
    let authorization = format!("Authorization: Bearer {token}");
    let headers = ["Host: localhost", "Sec-Fetch-Site: same-origin", &authorization];
    let answer = f.send_to(method, path, &headers, form).await;
    (answer.status, answer.body.as_str().unwrap_or_default().to_owned())
}

/// A page, with its ampersands as people read them.
#[track_caller]
pub(super) fn expect((status, page): (u16, String)) -> String {
    assert_eq!(status, 200, "{page}");
    page.replace("&#38;", "&").replace("&amp;", "&")
}

/// The value of a hidden field of a page, as a browser sends it.
fn hidden(page: &str, name: &str) -> String {
    let begin = format!("name=\"{name}\" value=\"");
    let value = page.split(&begin).nth(1).and_then(|rest| rest.split('"').next());
    let value = value.unwrap_or_else(|| panic!("{page}")).replace("&#43;", "+");
    byte_serialize(value.as_bytes()).collect()
}

/// The fields with problems beside them.
pub(super) fn fields_with_problems(page: &str) -> Vec<&str> {
    let described = page.split("aria-invalid=\"true\" aria-describedby=\"").skip(1);
    described.map(|rest| rest.split("-problems\"").next().unwrap()).collect()
}

#[tokio::test]
async fn all_executions_of_a_filter_are_cancelled_after_a_preview_and_none_that_is_claimed_later() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let one = f.console.trigger("shop.charge").await;
    let two = f.console.trigger("shop.charge").await;
    f.console.trigger("shop.mail").await;
    let list = "/executions?job=shop.charge&state=pending&state=failed&limit=1";
    let listed = expect(send(&f, &token, "GET", list, "").await);
    let preview = "/executions/bulk?kind=cancel&job=shop.charge&state=pending";
    assert!(listed.contains(&format!("href=\"{preview}\"")), "{listed}");
    let watch = f.token("watch", "viewer").await;
    let watched = expect(send(&f, &watch, "GET", list, "").await);
    assert!(!watched.contains("/executions/bulk") && watched.contains("needs the role operator"));

    let page = expect(send(&f, &token, "GET", preview, "").await);
    assert!(page.contains("<h1>Cancel 2 executions</h1>"), "{page}");
    let command = "sexton executions cancel --job shop.charge --state pending";
    assert!(page.contains(command) && page.contains("/api/v1/bulks"), "{page}");
    let previewed_at = hidden(&page, "previewed_at");
    f.console.trigger("shop.charge").await;
    let form = format!(
        "kind=cancel&job=shop.charge&state=pending&rate=10%2Fs&reason=wrong+file&previewed_at={previewed_at}"
    );
    let (status, answer) = send(&f, &token, "POST", "/executions/bulk", &form).await;
    assert_eq!(status, 303, "{answer}");
    let bulk = f.console.json(&["bulks", "show", "1"]).await["bulk"].clone();
    assert_eq!(
        (&bulk["kind"], &bulk["rate"], &bulk["reason"]),
        (&json!("cancel"), &json!("10/s"), &json!("wrong file"))
    );
    // Schedulers select by this statement.
    while sexton_store::bulk::prepare(f.console.store(), 1, 100, None).await.unwrap().is_some() {}
    let items = sexton_store::bulk::list_items(f.console.store(), 1, &["waiting"], 0, 100).await;
    let mut ids: Vec<_> = items.unwrap().iter().map(|item| item.execution_id).collect();
    ids.sort_unstable();
    let mut expected = vec![one.get(), two.get()];
    expected.sort_unstable();
    assert_eq!(ids, expected);
}

#[tokio::test]
async fn a_bulk_that_would_take_more_than_was_counted_is_shown_again_with_what_was_typed() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let one = f.console.trigger("shop.charge").await;
    let two = f.console.trigger("shop.charge").await;
    f.console.open(one, 1).await;
    let filter = "kind=cancel&job=shop.charge&state=running";
    let preview = format!("/executions/bulk?{filter}");
    let page = expect(send(&f, &token, "GET", &preview, "").await);
    assert!(page.contains("<h1>Cancel 1 execution</h1>"), "{page}");
    assert!(page.contains("If more match by then") && page.contains("numbers alone are compared"));
    let form = |page: &str| {
        let (count, previewed_at) = (hidden(page, "count"), hidden(page, "previewed_at"));
        format!("{filter}&count={count}&previewed_at={previewed_at}&rate=10%2Fm&reason=wrong+file")
    };
    f.console.open(two, 1).await;
    let (status, page) = send(&f, &token, "POST", "/executions/bulk", &form(&page)).await;
    assert_eq!(status, 409, "{page}");
    let anew = ["more match by now than the 1 that", "<h1>Cancel 2 executions</h1>"];
    for text in anew.into_iter().chain([r#"value="10/m""#, r#"value="wrong file""#]) {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert_eq!(f.console.items(&["bulks", "list"]).await, json!([]));
    let (status, answer) = send(&f, &token, "POST", "/executions/bulk", &form(&page)).await;
    assert_eq!(status, 303, "{answer}");
    // Some of those that were counted have ended.
    let fewer = form(&page).replace("count=2", "count=3");
    let (status, answer) = send(&f, &token, "POST", "/executions/bulk", &fewer).await;
    assert_eq!(status, 303, "{answer}");
}

#[tokio::test]
async fn what_was_typed_into_a_bulk_s_form_stays_and_problems_stand_beside_their_fields() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    f.console.failed().await;
    let page = expect(send(&f, &token, "GET", "/failed/bulk?kind=discard", "").await);
    assert_eq!(fields_with_problems(&page), [""; 0], "{page}");
    let previewed_at = hidden(&page, "previewed_at");
    f.console.failed().await;
    let form = format!("kind=discard&count=1&previewed_at={previewed_at}&rate=often");
    let (status, page) = send(&f, &token, "POST", "/failed/bulk", &form).await;
    assert_eq!(status, 400, "{page}");
    assert_eq!(fields_with_problems(&page), ["rate", "reason"], "{page}");
    assert!(page.contains("value=\"often\""), "{page}");
    assert!(page.contains("<h1>Discard 1 execution</h1>"), "it has the later failure: {page}");
    assert_eq!(hidden(&page, "previewed_at"), previewed_at);

    for canary in ["0", "1001", "some"] {
        let form = format!("kind=requeue&canary={canary}&rate=10%2Fm&reason=there+is+paper");
        let (status, page) = send(&f, &token, "POST", "/failed/bulk", &form).await;
        assert_eq!(status, 400, "{page}");
        assert_eq!(fields_with_problems(&page), ["canary"], "{page}");
        assert!(page.contains("are the canary: this must be 1 to 1000."), "{page}");
        for typed in [canary, "10/m", "there is paper"] {
            assert!(page.contains(&format!("value=\"{typed}\"")), "{typed}: {page}");
        }
    }
    assert_eq!(f.console.items(&["bulks", "list"]).await, json!([]));
}

#[tokio::test]
async fn each_list_has_the_bulks_of_its_executions() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    for (path, hint) in [
        ("/executions/bulk?kind=discard", "write cancel"),
        ("/executions/bulk?kind=cancel&state=failed", "pending, retrying or running"),
        ("/executions/bulk?kind=cancel&muted=true", "muted groups"),
        ("/failed/bulk?kind=cancel", "write requeue, discard or restore"),
        ("/failed/bulk?kind=requeue&state=pending", "goes with a cancel"),
        ("/failed/bulk?kind=discard&canary=5", "goes with a requeue"),
        ("/failed/bulk?kind=discard&no_verify=true", "goes with a requeue"),
    ] {
        let (status, page) = send(&f, &token, "GET", path, "").await;
        assert_eq!(status, 400, "{path}: {page}");
        assert!(page.contains(hint), "{path}: {page}");
    }
}

#[tokio::test]
async fn the_page_of_an_execution_has_its_traces_where_it_is_traced() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let id = f.console.failed().await;
    let path = format!("/executions/{id}");
    let page = expect(send(&f, &token, "GET", &path, "").await);
    assert!(!page.contains("<dt>Trace</dt>"), "{page}");
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    sqlx::query("UPDATE sexton.executions SET traceparent = $2 WHERE id = $1")
        .bind(id.get())
        .bind(format!("00-{trace}-00f067aa0ba902b7-01"))
        .execute(f.console.store().pool())
        .await
        .unwrap();
    let page = expect(send(&f, &token, "GET", &path, "").await);
    assert!(page.contains(&format!("<code>{trace}</code> of attempt 1</dd>")), "{page}");
}

#[tokio::test]
async fn pools_are_on_the_page_of_the_workers() {
    let f = Fixture::below("/ops").await;
    let token = f.token("watch", "viewer").await;
    let (status, _) = send(&f, &token, "GET", "/ops/pools", "").await;
    assert_eq!(status, 308);
    let page = expect(send(&f, &token, "GET", "/ops/workers", "").await);
    assert!(page.contains("Pools"), "{page}");
}

#[tokio::test]
async fn jobs_are_listed_by_their_labels() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let file = f.console.file(
        "labels.toml",
        "[[job]]\nname = \"acme.report\"\ntask = \"report\"\nlabels = { team = \"billing\", stage = \"live\" }\n",
    );
    f.console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let names = async |query: &str| {
        let list = f.get(&token, &format!("/jobs?{query}")).await.expect(200);
        let items = list["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("label=team%3Dbilling").await, ["acme.report"]);
    assert_eq!(names("label=team%3Dbilling&label=stage%3Dlive").await, ["acme.report"]);
    for none in ["label=team%3Dbilling&label=stage%3Dtest", "label=team%3Dbilling&deleted=true"] {
        assert_eq!(names(none).await, [""; 0], "{none}");
    }
    let listed = f.console.json(&["jobs", "list", "--label", "team=billing"]).await;
    assert_eq!(listed, f.get(&token, "/jobs?label=team%3Dbilling").await.expect(200));
    let refused = f.get(&token, "/jobs?label=team").await.expect(400);
    assert_eq!(refused["errors"][0]["parameter"], "label", "{refused}");
    let page = expect(send(&f, &token, "GET", "/jobs?label=stage%3Dlive", "").await);
    assert!(page.contains(r#"href="/jobs?label=team%3Dbilling">team=billing</a>"#), "{page}");
    assert!(!page.contains("shop.charge"), "{page}");
}

#[tokio::test]
async fn the_list_of_jobs_shows_what_their_last_executions_say() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    f.console.failed().await;
    f.console.failed().await;
    f.console.trigger("shop.charge").await;
    let page = expect(send(&f, &token, "GET", "/jobs", "").await);
    let row = |job: &str| {
        let name = format!(">{job}</a>");
        let rows = page.split("<tr id=\"j-");
        let mut rows = rows.filter_map(|row| row.split("</tr>").next());
        rows.find(|row| row.contains(&name)).unwrap_or_else(|| panic!("{page}"))
    };
    let (charge, mail) = (row("shop.charge"), row("shop.mail"));
    assert!(charge.contains(r#"aria-label="Last 3: 1 pending, 2 failed""#), "{charge}");
    assert!(charge.contains(r#"href="/failed?muted=true&job=shop.charge">2</a>"#), "{charge}");
    let empty = r#"<td class="number">–</td>"#;
    assert!(!charge.contains(empty), "{charge}");
    assert!(!mail.contains("<svg") && mail.matches(empty).count() == 2, "{mail}");
}
