//! Several jobs are triggered at once, each once: on the page of all that match a filter, and by the API.

use std::time::Duration;

use serde_json::{Value, json};
use sexton_operations::actor::Actor;
use sexton_operations::jobs::trigger_jobs::{JobOutcome, JobTrigger, trigger_all};
use sexton_store::jobs::{JobFilter, list_selected};
use tokio::time::Instant;

use super::page_actions::{expect, fields_with_problems, send};
use super::{Fixture, LOCAL_HOST};

/// The database goes away whenever `shop.charge` is triggered.
const OUTAGE: &str = "
    CREATE FUNCTION go_away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.job_id = (SELECT id FROM sexton.jobs WHERE name = 'shop.charge') THEN
            RAISE EXCEPTION 'terminating connection due to administrator command' USING ERRCODE = '57P01';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER go_away BEFORE INSERT ON sexton.executions FOR EACH ROW EXECUTE FUNCTION go_away()";
/// A fault of the same job alone.
const FAULT: &str = "
    CREATE FUNCTION raise_fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.job_id = (SELECT id FROM sexton.jobs WHERE name = 'shop.charge') THEN
            RAISE EXCEPTION 'a trigger of somebody else';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER raise_fault BEFORE INSERT ON sexton.executions FOR EACH ROW EXECUTE FUNCTION raise_fault()";
/// For the job that is tried when the time is up, on a machine that is busy.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);
const OUTAGE_IS_OVER: &str = "DROP TRIGGER go_away ON sexton.executions";

/// A program on the machine `ops1`.
pub(super) fn actor() -> Actor {
    Actor {
        name: "ann@ops1".to_owned(),
        host: "ops1".to_owned(),
        process_id: 1,
        origin: None,
        is_interactive: false,
    }
}

pub(super) async fn execute(f: &Fixture, statement: &'static str) {
    sqlx::raw_sql(statement).execute(f.console.store().pool()).await.unwrap();
}

/// The preview, at the address to which the one without a key leads.
async fn preview(f: &Fixture, token: &str, path: &str) -> String {
    let authorization = format!("Authorization: Bearer {token}");
    let headers = [LOCAL_HOST, "Sec-Fetch-Site: same-origin", &authorization];
    let answer = f.send_to("GET", path, &headers, "").await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    let place = answer.header("location").unwrap();
    assert!(place.starts_with(path) && place.contains("key=console-"), "{place}");
    let page = expect(send(f, token, "GET", place, "").await);
    // Who comes back to the form has the same key.
    assert!(place.ends_with(&format!("key={}", field(&page, "key"))), "{place}: {page}");
    page
}

/// The value of a hidden or other field of a page.
fn field<'a>(page: &'a str, name: &str) -> &'a str {
    let begin = format!("name=\"{name}\"");
    let (_, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no {name}: {page}"));
    let (_, rest) = rest.split_once("value=\"").unwrap();
    rest.split('"').next().unwrap()
}

/// The job and the key of each execution.
async fn executions(f: &Fixture) -> Vec<(String, String)> {
    let rows = f.console.items(&["executions", "list"]).await;
    let rows = rows.as_array().unwrap().iter();
    let mut rows: Vec<(String, String)> = rows
        .map(|row| {
            let text = |column: &str| row[column].as_str().unwrap().to_owned();
            (text("job_name"), text("execution_key"))
        })
        .collect();
    rows.sort();
    rows
}

fn outcomes(answer: &Value) -> Vec<&str> {
    let items = answer["items"].as_array().unwrap().iter();
    items.map(|item| item["outcome"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn all_jobs_of_a_filter_are_triggered_once_after_a_preview() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let pause = ["jobs", "pause", "shop.mail", "--reason", "x"];
    f.console.run(&pause).await.expect(0);
    let listed = expect(send(&f, &token, "GET", "/jobs?contains=shop.&limit=1", "").await);
    assert!(listed.contains(r#"href="/jobs:trigger?contains=shop.""#), "{listed}");
    let watch = f.token("watch", "viewer").await;
    let watched = expect(send(&f, &watch, "GET", "/jobs", "").await);
    assert!(!watched.contains("/jobs:trigger") && watched.contains("needs the role operator"));

    let page = preview(&f, &token, "/jobs:trigger?contains=shop.").await;
    assert!(page.contains("<h1>Trigger 2 jobs</h1>") && page.contains("1 of them; they run"));
    let (seen, key) = (field(&page, "seen"), field(&page, "key"));
    let form = format!("contains=shop.&seen={seen}&key={key}&reason=late");
    let expected = ["shop.charge", "shop.mail"].map(|job| (job.to_owned(), key.to_owned()));
    let done = expect(send(&f, &token, "POST", "/jobs:trigger", &form).await);
    assert!(done.contains("2 of 2 jobs were triggered."), "{done}");
    assert!(!done.contains("Trigger the others"), "{done}");
    assert_eq!(executions(&f).await, expected);
    let again = expect(send(&f, &token, "POST", "/jobs:trigger", &form).await);
    let counts = "0 of 2 jobs were triggered; 2 had run with this key before.";
    assert!(again.contains(counts), "{again}");
    assert!(again.contains("Trigger them once more"), "{again}");
    assert_eq!(executions(&f).await, expected);
    let audit = f.console.items(&["audit", "list", "--action", "trigger"]).await;
    let actors: Vec<_> = audit.as_array().unwrap().iter().map(|row| &row["actor"]).collect();
    assert_eq!(actors, [&json!("token ann"), &json!("token ann")], "{audit}");
}

#[tokio::test]
async fn a_form_that_is_not_carried_out_is_shown_again_with_what_was_typed() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let page = preview(&f, &token, "/jobs:trigger?contains=shop.").await;
    let (seen, key) = (field(&page, "seen"), field(&page, "key"));
    let post = async |form: &str| send(&f, &token, "POST", "/jobs:trigger", form).await;
    // As many jobs, of which one is another.
    let job = f.console.file("more.toml", "[[job]]\nname = \"shop.new\"\ntask = \"work\"\n");
    f.console.run(&["jobs", "apply", "-f", &job]).await.expect(0);
    let delete = ["jobs", "delete", "shop.mail", "--reason", "x", "--yes"];
    f.console.run(&delete).await.expect(0);
    let (status, page) = post(&format!("contains=shop.&seen={seen}&key={key}&reason=late")).await;
    assert_eq!(status, 409, "{page}");
    let changed = "2 jobs match by now, and not those that you have seen";
    for text in [changed, "<h1>Trigger 2 jobs</h1>", "shop.new", r#"value="late""#] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert_eq!(field(&page, "key"), key);
    let seen = field(&page, "seen");

    let long = format!("contains=shop.&seen={seen}&key={}", "k".repeat(300));
    let (status, page) = post(&long).await;
    assert!(status == 400 && page.contains("more than"), "{page}");
    assert_eq!(fields_with_problems(&page), ["key"], "{page}");
    let (status, page) = post(&format!("contains=shop.&seen={seen}&key=&reason=late")).await;
    assert!(status == 400 && page.contains("key is missing"), "{page}");
    assert_eq!(fields_with_problems(&page), ["key"], "{page}");
    assert!(page.contains(r#"value="late""#), "{page}");
    let (status, page) = post("contains=shop.&key=mine").await;
    assert!(status == 400 && page.contains("nobody has looked at the jobs"), "{page}");
    assert!(executions(&f).await.is_empty());
    let done = expect(post(&format!("contains=shop.&seen={seen}&key={key}")).await);
    assert!(done.contains("2 of 2 jobs were triggered."), "{done}");
}

#[tokio::test]
async fn after_an_outage_the_jobs_that_were_not_tried_follow_with_the_same_key() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let page = preview(&f, &token, "/jobs:trigger").await;
    let (seen, key) = (field(&page, "seen"), field(&page, "key"));
    execute(&f, OUTAGE).await;
    let form = format!("seen={seen}&key={key}&reason=late");
    let page = expect(send(&f, &token, "POST", "/jobs:trigger", &form).await);
    let counts = "1 of 3 jobs were triggered; of 1 nobody knows; 1 was not tried.";
    for text in [counts, "unknown: the database does not answer", "Trigger the others"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert_eq!((field(&page, "from"), field(&page, "key")), ("shop.charge", key), "{page}");
    let mut expected = vec![("billing.invoices".to_owned(), key.to_owned())];
    assert_eq!(executions(&f).await, expected);

    execute(&f, OUTAGE_IS_OVER).await;
    let (seen, from) = (field(&page, "seen"), field(&page, "from"));
    let rest = format!("seen={seen}&key={key}&from={from}&reason=late");
    let page = expect(send(&f, &token, "POST", "/jobs:trigger", &rest).await);
    assert!(page.contains("2 of 2 jobs were triggered."), "{page}");
    expected.extend(["shop.charge", "shop.mail"].map(|job| (job.to_owned(), key.to_owned())));
    assert_eq!(executions(&f).await, expected);
}

#[tokio::test]
async fn the_api_says_of_each_job_what_became_of_it_and_needs_a_key_for_many() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let post = async |body: &Value, status: u16| {
        f.ask(&token, "POST", "/jobs:trigger", &body.to_string()).await.expect(status)
    };
    execute(&f, OUTAGE).await;
    let jobs = ["no.such", "billing.invoices", "shop.charge", "shop.mail"];
    let request = json!({"jobs": jobs, "key": "evening"});
    let done = post(&request, 200).await;
    assert_eq!(outcomes(&done), ["refused", "created", "unknown", "not_tried"]);
    let codes: Vec<_> =
        done["items"].as_array().unwrap().iter().map(|item| &item["problem"]["code"]).collect();
    assert_eq!(codes[..3], [&json!("not_found"), &Value::Null, &json!("unavailable")], "{done}");
    let last = json!({"job": "shop.mail", "outcome": "not_tried", "created": false});
    assert_eq!(done["items"][3], last, "nothing is null");
    post(&json!({"jobs": ["shop.charge"], "key": "evening"}), 503).await;
    execute(&f, OUTAGE_IS_OVER).await;
    let done = post(&request, 200).await;
    assert_eq!(outcomes(&done), ["refused", "known", "created", "created"]);

    execute(&f, FAULT).await;
    let done = post(&json!({"jobs": jobs, "key": "night"}), 200).await;
    assert_eq!(outcomes(&done), ["refused", "created", "refused", "created"], "{done}");

    let many: Vec<String> = (0..101).map(|number| format!("no.such{number}")).collect();
    let refused = post(&json!({"jobs": many}), 400).await;
    assert_eq!(refused["errors"][0]["pointer"], "/key", "{refused}");
    let done = post(&json!({"jobs": many, "key": "evening"}), 200).await;
    let of_none = |one: &&str| ["refused", "not_tried"].contains(one);
    assert!(outcomes(&done).len() == 101 && outcomes(&done).iter().all(of_none), "{done}");
    assert_eq!(outcomes(&post(&json!({"jobs": &many[..100]}), 200).await).len(), 100);
}

#[tokio::test]
async fn when_the_time_is_up_one_job_was_tried_and_a_repetition_tries_the_next() {
    let f = Fixture::new().await;
    let trigger = async |jobs: &[&str]| {
        let jobs = jobs.iter().map(|&job| job.to_owned()).collect();
        let options = (Some("evening"), None);
        let store = f.console.store();
        trigger_all(store, jobs, options, &actor(), (Instant::now(), PATIENCE)).await.unwrap()
    };
    let is_only_first = |done: &[JobTrigger]| {
        let is_left = |one: &JobTrigger| matches!(one.outcome, JobOutcome::NotTried);
        matches!(&done[0].outcome, JobOutcome::Done(done) if done.created)
            && done[1..].iter().all(is_left)
    };
    let done = trigger(&["billing.invoices", "shop.charge", "shop.mail"]).await;
    assert!(done.len() == 3 && is_only_first(&done), "{done:?}");
    let done = trigger(&["shop.charge", "shop.mail"]).await;
    assert!(done.len() == 2 && is_only_first(&done), "{done:?}");
    assert_eq!(executions(&f).await.len(), 2);
}

#[tokio::test]
async fn jobs_that_are_left_out_do_not_count_towards_the_limit() {
    let f = Fixture::new().await;
    let names = async |prefix: Option<&str>, without: &[&str], limit: i64| {
        let without: Vec<String> = without.iter().map(|&prefix| prefix.to_owned()).collect();
        let filter = JobFilter::default();
        let store = f.console.store();
        let rows = list_selected(store, &filter, (prefix, &without), limit).await.unwrap();
        rows.into_iter().map(|job| job.name).collect::<Vec<_>>()
    };
    assert_eq!(names(None, &[], 2).await, ["billing.invoices", "shop.charge"]);
    assert_eq!(names(None, &["billing."], 2).await, ["shop.charge", "shop.mail"]);
    assert_eq!(names(None, &["billing.", "shop.c"], 2).await, ["shop.mail"]);
    assert_eq!(names(Some("shop."), &[], 1).await, ["shop.charge"]);
    assert_eq!(names(Some("shop."), &["shop."], 1).await, [""; 0]);
}
