//! `sexton serve`, pinged over HTTP.

use std::process::{Command, Stdio};
use std::time::Duration;

use sexton_tests::platform::{Platform, Program};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/healthchecks/run.sh");
const PATIENCE: Duration = Duration::from_mins(2);
const CHECKS: &str =
    "[[check]]\nname = \"backup\"\nevery = \"1h\"\ngrace = \"10m\"\nkey = \"team\"\n";

struct Fixture {
    platform: Platform,
    server: Program,
    address: String,
    key: String,
    id: String,
}

impl Fixture {
    async fn new(env: &[(&str, &str)]) -> Self {
        let platform = Platform::new().await.unwrap();
        let created =
            platform.sexton_json(&["checks", "create-key", "team", "--max-checks", "2"]).await;
        let file = platform.write("checks", CHECKS).unwrap();
        let applied = platform.sexton(&["checks", "apply", "-f", file.to_str().unwrap()]).await;
        assert!(applied.stdout.contains("+ check backup"), "{applied}");
        let shown = platform.sexton_json(&["checks", "show", "backup"]).await;
        let mut server = platform.start_server("serve", env).unwrap();
        server.ready().await;
        let log = server.log();
        let begin =
            log.find("http://127.0.0.1:").and_then(|_| log.find("pings are accepted at http://"));
        let rest = &log[begin.unwrap() + "pings are accepted at http://".len()..];
        let address = rest.split('/').next().unwrap().to_owned();
        Self {
            platform,
            server,
            address,
            key: created["key"].as_str().unwrap().to_owned(),
            id: shown["check"]["id"].as_str().unwrap().to_owned(),
        }
    }

    /// Sends a request; returns status, head and body.
    async fn send(&self, method: &str, path: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nUser-Agent: curl/8\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    /// Waits until a statement waits for the table of pings.
    async fn statement_waits(&self) {
        let waiting = "SELECT true FROM pg_locks WHERE relation = 'sexton.pings'::regclass AND NOT granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1";
        self.platform
            .eventually("a statement waits for the table", PATIENCE, async || {
                let pool = self.platform.store().pool();
                sqlx::query_scalar::<_, bool>(waiting).fetch_optional(pool).await.unwrap()
            })
            .await;
    }

    async fn status(&self, method: &str, path: &str) -> u16 {
        self.send(method, path, b"").await.0
    }

    /// What was recorded for a check, the oldest first: what it reports, and its exit status.
    async fn pings(&self, check: &str) -> Vec<String> {
        let shown = self.platform.sexton_json(&["checks", "show", check, "--pings", "400"]).await;
        let line = |ping: &serde_json::Value| {
            let code = ping["exit_code"].as_i64().map_or(String::new(), |code| format!(" {code}"));
            format!("{}{code}", ping["kind"].as_str().unwrap())
        };
        shown["pings"].as_array().unwrap().iter().rev().map(line).collect()
    }
}

#[tokio::test]
async fn every_form_of_a_ping_is_recorded_and_what_is_none_is_refused() {
    let f = Fixture::new(&[]).await;
    let by_id = format!("/ping/{}", f.id);
    let by_name = format!("/ping/{}/backup", f.key);
    for (method, path) in
        [("GET", ""), ("HEAD", "/start"), ("POST", "/fail"), ("GET", "/log"), ("GET", "/7")]
    {
        assert_eq!(f.status(method, &format!("{by_id}{path}")).await, 200, "{path}");
        assert_eq!(f.status(method, &format!("{by_name}{path}")).await, 200, "{path}");
    }
    let all = ["success", "start", "fail", "log", "fail 7"];
    let twice: Vec<&str> = all.iter().flat_map(|one| [*one, *one]).collect();
    assert_eq!(f.pings("backup").await, twice);
    for (status, method, path) in [
        (404, "GET", "/ping/5b8a9f3e-0000-4000-8000-000000000001".to_owned()),
        (404, "GET", format!("/ping/{}/other", f.key)),
        (404, "GET", "/ping/sxp_wrong/backup".to_owned()),
        (404, "GET", format!("{by_id}/stop")),
        (404, "GET", "/nothing".to_owned()),
        (400, "GET", format!("{by_id}?rid=7")),
        (405, "DELETE", by_id.clone()),
    ] {
        assert_eq!(f.status(method, &path).await, status, "{method} {path}");
    }
    assert_eq!(f.pings("backup").await.len(), 10);
}

#[tokio::test]
async fn the_beginning_of_a_body_is_kept_and_nothing_in_it_does_harm() {
    let f = Fixture::new(&[]).await;
    let path = format!("/ping/{}/fail", f.id);
    let body = [&b"\0\xff<script>"[..], &vec![b'x'; 300_000]].concat();
    let (status, answer) = f.send("POST", &path, &body).await;
    assert_eq!((status, answer.contains("ping-body-limit: 10000")), (200, true), "{answer}");
    let shown = f.platform.sexton_json(&["checks", "show", "backup"]).await;
    let kept = shown["pings"][0]["body"].as_str().unwrap();
    assert!(kept.starts_with("\u{fffd}\u{fffd}<script>xxx"), "{kept:.40}");
    assert_eq!(kept.chars().count(), 10_000);
    assert_eq!(shown["pings"][0]["agent"], "curl/8");
}

#[tokio::test]
async fn create_makes_checks_up_to_the_key_s_limit() {
    let f = Fixture::new(&[]).await;
    let path = |name: &str| format!("/ping/{}/{name}?create=1", f.key);
    assert_eq!(f.status("GET", &path("one")).await, 201);
    assert_eq!(f.status("GET", &path("one")).await, 200);
    let (status, answer) = f.send("GET", &path("two"), b"").await;
    assert_eq!((status, answer.contains("as many checks")), (403, true), "{answer}");
    assert_eq!(f.pings("one").await, ["success", "success"]);
}

#[tokio::test]
async fn a_check_that_is_pinged_too_often_is_refused_and_another_is_not() {
    let f = Fixture::new(&[("PINGS_PER_MINUTE", "2")]).await;
    let path = format!("/ping/{}", f.id);
    assert_eq!([f.status("GET", &path).await, f.status("GET", &path).await], [200, 200]);
    let (status, answer) = f.send("GET", &path, b"").await;
    assert_eq!((status, answer.contains("retry-after: ")), (429, true), "{answer}");
    assert_eq!(f.status("GET", &format!("/ping/{}/two?create=1", f.key)).await, 201);
    assert_eq!(f.pings("backup").await.len(), 2);
}

#[tokio::test]
async fn a_ping_that_was_answered_survives_the_server_s_death() {
    let mut f = Fixture::new(&[]).await;
    let path = format!("/ping/{}/start", f.id);
    let sending = (0..40).map(|_| f.status("GET", &path));
    let answered = futures_util::future::join_all(sending).await;
    f.server.kill();
    assert!(answered.iter().all(|status| *status == 200), "{answered:?}");
    assert_eq!(f.pings("backup").await.len(), 40);
}

#[tokio::test]
async fn a_server_without_its_tables_answers_soon_that_it_records_nothing() {
    let f = Fixture::new(&[]).await;
    let rename = |from, to| format!("ALTER TABLE sexton.{from} RENAME TO {to}");
    let run = async |statement: String| {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
            .execute(f.platform.store().pool())
            .await
            .unwrap();
    };
    run(rename("pings", "away")).await;
    let (status, answer) = f.send("GET", &format!("/ping/{}", f.id), b"").await;
    assert_eq!((status, answer.contains("retry-after: 5")), (503, true), "{answer}");
    run(rename("away", "pings")).await;
    assert_eq!(f.status("GET", &format!("/ping/{}", f.id)).await, 200);
}

#[tokio::test]
async fn a_ping_is_answered_after_it_is_recorded() {
    let f = Fixture::new(&[]).await;
    let pool = f.platform.store().pool();
    let mut tx = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE sexton.pings IN EXCLUSIVE MODE").execute(&mut *tx).await.unwrap();
    let path = format!("/ping/{}", f.id);
    let mut answer = std::pin::pin!(f.status("GET", &path));
    tokio::select! {
        status = &mut answer => panic!("it was answered with {status} before it was recorded"),
        () = f.statement_waits() => {}
    }
    tx.commit().await.unwrap();
    assert_eq!(answer.await, 200);
    assert_eq!(f.pings("backup").await, ["success"]);
}

#[tokio::test]
async fn a_server_that_cannot_record_does_not_say_that_it_accepts_pings() {
    let f = Fixture::new(&[]).await;
    let pool = f.platform.store().pool();
    // Its sign of life could still be written.
    let rename = "ALTER TABLE sexton.check_wakeups RENAME TO away";
    sqlx::raw_sql(rename).execute(pool).await.unwrap();
    f.platform
        .eventually("it complains", PATIENCE, async || {
            f.server.log().contains("pings cannot be recorded").then_some(())
        })
        .await;
    let seen = async || -> String {
        let query = "SELECT seen_at::text FROM sexton.ping_endpoint";
        sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
    };
    let before = seen().await;
    let again = "ALTER TABLE sexton.away RENAME TO check_wakeups";
    sqlx::raw_sql(again).execute(pool).await.unwrap();
    f.platform
        .eventually("it is ready, and says so", PATIENCE, async || {
            let again = f.server.log().contains("pings are recorded again");
            (again && seen().await != before).then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_failing_job_elsewhere_is_an_incident_and_its_next_success_ends_it() {
    let f = Fixture::new(&[]).await;
    let _scheduler = f.platform.start_scheduler("s1", &[]).unwrap();
    let path = format!("/ping/{}", f.id);
    f.send("POST", &format!("{path}/3"), b"pg_dump: no space left\n").await;
    let incident = f.platform.eventually("the incident is open", PATIENCE, async || {
        let list = f.platform.sexton_json(&["incidents", "list"]).await;
        list["items"].as_array()?.first().cloned()
    });
    let incident = incident.await;
    assert_eq!((&incident["cause"], &incident["name"]), (&"failed".into(), &"backup".into()));
    assert!(incident["detail"].as_str().unwrap().contains("no space left"), "{incident}");
    let acknowledged = f.platform.sexton(&["incidents", "ack", "backup"]).await;
    assert!(acknowledged.status.success(), "{acknowledged}");
    let listed = f.platform.sexton(&["checks", "list", "--open"]).await;
    assert!(listed.stdout.contains("backup"), "{listed}");
    f.send("GET", &path, b"").await;
    f.platform
        .eventually("the incident is over", PATIENCE, async || {
            let list = f.platform.sexton_json(&["incidents", "list"]).await;
            list["items"].as_array()?.is_empty().then_some(())
        })
        .await;
}

/// A client that somebody else wrote for Healthchecks, from PyPI.
#[tokio::test]
async fn a_client_of_healthchecks_works_unchanged() {
    let f = Fixture::new(&[]).await;
    let (address, key, id) = (f.address.clone(), f.key.clone(), f.id.clone());
    let running = tokio::task::spawn_blocking(move || {
        let url = format!("http://{address}/ping/");
        Command::new("sh").args([SCRIPT, &url, &key, &id]).stdin(Stdio::null()).output().unwrap()
    });
    let output = running.await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(77) {
        sexton_tests::untested::report_untested(&format!("the script of the docs: {printed}"));
        return;
    }
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let expected = ["start", "success", "fail", "fail 3", "start", "success", "start", "fail"];
    assert_eq!(f.pings("backup").await, expected, "{printed}");
}
