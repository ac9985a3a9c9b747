//! Each route that changes something writes an entry of the audit with the name of the token that it was sent with.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Fixture;
use crate::console::fixture::arrange;

/// Routes that write no entry, and why.
const SILENT: [(&str, &str); 9] = [
    ("DELETE /session", "it ends the session of its caller, and a token has none"),
    ("POST /bulks:preview", "it changes nothing"),
    ("POST /cron:lint", "it changes nothing"),
    ("POST /cron:next", "it changes nothing"),
    ("POST /jobs:lint", "it changes nothing"),
    ("POST /jobs:preview", "it changes nothing"),
    ("POST /lock-keys:derive", "it changes nothing"),
    ("POST /me/password", "a token has no password"),
    ("POST /session", "a log-in comes without a token, and its entry names the account"),
];
/// Stands for a scheduler that sends tests of channels.
pub(super) const SENT_AT_ONCE: &str = "
    CREATE FUNCTION public.sent() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN NEW.state := 'sent'; NEW.finished_at := now(); RETURN NEW; END $$;
    CREATE TRIGGER sent BEFORE INSERT ON sexton.notifications FOR EACH ROW EXECUTE FUNCTION public.sent()";
/// A parked notification, a silent worker and a lock.
const WITHOUT_PROCESSES: &str = "
    INSERT INTO sexton.notifications (id, channel, kind, detail, created_at, due_at, state, finished_at)
        VALUES (gen_random_uuid(), 'ops', 'test', 'a test', now(), now(), 'parked', now());
    INSERT INTO sexton.instances (id, kind, name, pid, started_at, heartbeat_at, version, ready)
        VALUES (gen_random_uuid(), 'worker', 'w9', 1, now() - interval '1 day', now() - interval '2 hours', '0.0.9', true);
    INSERT INTO sexton.lock_rows (name, locked_by, locked_at, lock_until)
        VALUES ('stock', 'host-7', timezone('UTC', now()) - interval '1 hour', timezone('UTC', now()) + interval '1 hour')";

/// Sends requests, each with a token of the least role that its route needs, and looks at what the audit has of them.
struct Walk {
    f: Fixture,
    description: Value,
    /// The tokens, by their role, which is their name as well.
    tokens: Vec<(&'static str, String)>,
    /// Routes that have yet to be tried.
    left: BTreeSet<String>,
    /// What [`arrange`] has made.
    values: Vec<(&'static str, String)>,
}

impl Walk {
    async fn new() -> Self {
        let f = Fixture::new().await;
        let nightly =
            "[[job]]\nname = \"shop.nightly\"\nschedule = \"0 1 1 * *\"\ntask = \"report\"\n";
        let file = f.console.file("nightly.toml", nightly);
        f.console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
        let values = arrange(&f).await;
        let mut tokens = Vec::new();
        for role in ["viewer", "operator", "editor", "admin"] {
            tokens.push((role, f.token(role, role).await));
        }
        let description = f.send("GET", "/openapi.json", &["Host: x"], "").await.expect(200);
        let mut left = BTreeSet::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            let path = path.strip_prefix("/api/v1").unwrap();
            let methods = item.as_object().unwrap().keys().filter(|method| *method != "get");
            left.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
        }
        Self { f, description, tokens, left, values }
    }

    fn value(&self, name: &str) -> String {
        self.values.iter().find(|(it, _)| *it == name).unwrap().1.clone()
    }

    async fn execute(&self, statement: &'static str) {
        sqlx::raw_sql(statement).execute(self.f.console.store().pool()).await.unwrap();
    }

    async fn last_entry(&self) -> i64 {
        let last = "SELECT coalesce(max(id), 0) FROM sexton.operator_actions";
        sqlx::query_scalar(last).fetch_one(self.f.console.store().pool()).await.unwrap()
    }

    /// Sends a request of a route; `part` stands for the part in braces.
    async fn send(&mut self, route: &'static str, part: &str, body: Value) -> Value {
        let (method, template) = route.split_once(' ').unwrap();
        let item = &self.description["paths"][format!("/api/v1{template}").as_str()];
        let role = item[method.to_lowercase().as_str()]["x-role"].as_str();
        let token = self.tokens.iter().find(|(it, _)| Some(*it) == role);
        let (name, token) = token.unwrap_or_else(|| panic!("{route} needs the role {role:?}"));
        let mut path = template.to_owned();
        if let Some((from, to)) = template.find('{').zip(template.find('}')) {
            path.replace_range(from..=to, part);
        }
        let mut headers = Vec::new();
        if method != "POST" && path.starts_with("/jobs/") {
            let job = self.f.get(token, &path).await;
            headers.push(format!("If-Match: {}", job.header("etag").unwrap()));
        }
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        if method == "DELETE" {
            path.push_str("?reason=x");
        }
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let last = self.last_entry().await;
        let answer = self.f.ask_with(token, (method, &path), &headers, &body).await;
        assert!((200..300).contains(&answer.status), "{route}: {}", answer.body);
        let count = "SELECT count(*) FROM sexton.operator_actions WHERE id > $1 AND actor = $2";
        let count = sqlx::query_scalar(count).bind(last).bind(format!("token {name}"));
        let entries: i64 = count.fetch_one(self.f.console.store().pool()).await.unwrap();
        let is_silent = SILENT.iter().any(|(it, _)| *it == route);
        assert_eq!(entries == 0, is_silent, "{route} as {name}: {entries} entries");
        self.left.remove(route);
        answer.body
    }

    /// As [`Self::send`], with a reason alone.
    async fn send_reason(&mut self, route: &'static str, part: &str) -> Value {
        self.send(route, part, json!({"reason": "x"})).await
    }
}

async fn jobs(walk: &mut Walk) {
    let old =
        json!({"type": "cron", "cron": "0 8 * * *", "params_scheduler": "{\"type\": \"report\"}"});
    let file = "[[job]]\nname = \"audit.file\"\ntask = \"work\"\n";
    let range = json!({"since": "2024-01-01T00:00:00Z", "until": "2024-02-15T00:00:00Z"});
    let keys = json!({"items": [{"key": "a"}]});
    walk.send("POST /jobs", "", json!({"name": "audit.new", "task": "work"})).await;
    walk.send("PUT /jobs/{name}", "audit.new", json!({"task": "report"})).await;
    walk.send("DELETE /jobs/{name}", "audit.new", Value::Null).await;
    walk.send("POST /jobs:apply", "", json!({"file": "my.toml", "text": file})).await;
    walk.send("POST /schedulers", "", old).await;
    walk.send("POST /jobs/{name}/trigger", "shop.charge", json!({"key": "once"})).await;
    walk.send("POST /jobs/{name}/trigger-each", "shop.charge", keys).await;
    let several = json!({"jobs": ["shop.charge"], "key": "evening"});
    walk.send("POST /jobs:trigger", "", several).await;
    walk.send("POST /jobs/{name}/backfills", "shop.nightly", range).await;
    let decision = json!({"decision": "discard", "jobs": ["billing.invoices"]});
    walk.send("POST /catch-up", "", decision).await;
    walk.send("POST /enqueue", "", json!({"job": "shop.charge"})).await;
    let keys = json!({"items": [{"key": "b"}]});
    walk.send("POST /jobs/{name}/enqueue-each", "shop.charge", keys).await;
    let waiting = walk.f.console.trigger("shop.charge").await.to_string();
    walk.send("POST /executions/{id}/cancel", &waiting, json!({})).await;
    walk.send_reason("POST /flows/{id}/cancel", &walk.value("flow")).await;
    walk.send_reason("POST /jobs/{name}/pause", "shop.charge").await;
    walk.send_reason("POST /jobs/{name}/resume", "shop.charge").await;
}

async fn failures(walk: &mut Walk) {
    let mut failed = Vec::new();
    for _ in 0..5 {
        failed.push(walk.f.console.failed().await.to_string());
    }
    walk.send("POST /failures/{id}/requeue", &failed[0], json!({})).await;
    walk.send_reason("POST /failures/{id}/discard", &failed[1]).await;
    walk.send_reason("POST /failures/{id}/restore", &walk.value("discarded")).await;
    let edit = json!({"merge": {"customer": 1}, "requeue": false, "reason": "x"});
    walk.send("POST /failures/{id}/edit", &failed[2], edit).await;
    let groups = walk.f.console.json(&["groups", "list"]).await;
    let group = groups["items"][0]["fingerprint"].as_str().unwrap().to_owned();
    let muted = json!({"state": "muted", "reason": "x"});
    walk.send("POST /failure-groups/{fingerprint}/remark", &group, muted).await;
    let bulk =
        |kind: &str, id: &str| json!({"kind": kind, "executions": [{"id": id}], "reason": "x"});
    walk.send("POST /bulks:preview", "", bulk("discard", &failed[3])).await;
    let stopped = walk.send("POST /bulks", "", bulk("requeue", &failed[4])).await;
    walk.send("POST /bulks/{id}/stop", &stopped["id"].to_string(), json!({})).await;
    walk.send("POST /bulks/{id}/resume", &stopped["id"].to_string(), json!({})).await;
    let done = walk.send("POST /bulks", "", bulk("discard", &failed[3])).await;
    // As a scheduler ends it.
    let end =
        "UPDATE sexton.bulks SET state = 'done', prepared_at = now(), done = 1, ended_at = now()
        WHERE kind = 'discard' AND state <> 'done'";
    walk.execute(end).await;
    walk.send("POST /bulks/{id}/restore", &done["id"].to_string(), json!({})).await;
}

async fn previews(walk: &mut Walk) {
    let expression = json!({"expression": "@daily"});
    walk.send("POST /cron:next", "", expression.clone()).await;
    walk.send("POST /cron:lint", "", expression).await;
    let file = "[[job]]\nname = \"audit.linted\"\ntask = \"work\"\n";
    walk.send("POST /jobs:lint", "", json!({"text": file})).await;
    walk.send("POST /jobs:preview", "", json!({})).await;
    let name = json!({"name": "nightly", "like": "hashtext"});
    walk.send("POST /lock-keys:derive", "", name).await;
}

async fn incidents_and_checks(walk: &mut Walk) {
    let incident = walk.value("incident");
    walk.send_reason("POST /incidents/{id}/acknowledge", &incident).await;
    let hour = json!({"for_s": 3600, "reason": "x"});
    walk.send("POST /incidents/{id}/silence", &incident, hour).await;
    walk.send_reason("POST /incidents/{id}/unsilence", &incident).await;
    walk.send_reason("POST /incidents/{id}/resolve", &incident).await;
    walk.send("POST /channels/{name}/test", "ops", Value::Null).await;
    walk.send("POST /notifications:requeue", "", json!({"channel": "ops"})).await;
    let alerts = "[[channel]]\nname = \"chat\"\nslack = { url = { env = \"CHAT_URL\" } }\n";
    walk.send("POST /alerts:apply", "", json!({"text": alerts})).await;
    walk.send_reason("POST /checks/{name}/pause", "backup").await;
    walk.send_reason("POST /checks/{name}/resume", "paused").await;
    let check = "[[check]]\nname = \"mine\"\nevery = \"1h\"\ngrace = \"1m\"\n";
    walk.send("POST /checks:apply", "", json!({"text": check})).await;
    walk.send("DELETE /checks/{name}", "mine", Value::Null).await;
    walk.send("POST /ping-keys", "", json!({"name": "team"})).await;
    walk.send("DELETE /ping-keys/{name}", "team", Value::Null).await;
}

async fn locks_messages_and_processes(walk: &mut Walk) {
    walk.send("POST /lock-keys/{name}/assign", "billing", json!({})).await;
    walk.send("POST /lock-keys/{name}/remove", "billing", json!({})).await;
    let file = json!({"text": "service,start,keys\nstock,7000,10\n"});
    walk.send("POST /lock-keys:import", "", file).await;
    walk.send_reason("POST /locks/{name}/break", "stock").await;
    let (message, discarded) = (walk.value("message"), walk.value("message discarded"));
    walk.send_reason("POST /unknown-messages/{id}/discard", &message).await;
    walk.send("POST /unknown-messages/{id}/restore", &discarded, json!({})).await;
    walk.send("POST /doctor:fix", "", Value::Null).await;
}

async fn people_and_tokens(walk: &mut Walk) {
    let password = "correct horse battery";
    let account = json!({"name": "zoe", "role": "viewer", "password": password});
    walk.send("POST /accounts", "", account).await;
    assert_eq!(walk.f.log_in("zoe", password).await.status, 204);
    walk.send("POST /accounts/end-sessions", "", json!({"name": "account zoe"})).await;
    walk.send("POST /accounts/{name}/role", "zoe", json!({"role": "operator"})).await;
    let other = json!({"password": "a battery of horses"});
    walk.send("POST /accounts/{name}/password", "zoe", other).await;
    walk.send("POST /accounts/{name}/disable", "zoe", json!({})).await;
    walk.send("POST /accounts/{name}/enable", "zoe", json!({})).await;
    walk.send("POST /tokens", "", json!({"name": "ci", "role": "viewer"})).await;
    walk.send("DELETE /tokens/{name}", "ci", Value::Null).await;
}

/// The last ones, since others would wait for an approval behind them.
async fn approvals(walk: &mut Walk) {
    walk.send("PUT /approval-rules/{name}", "all", json!({"people": 2})).await;
    // Another person than the one whose tokens approve and reject.
    let create = ["--json", "tokens", "create", "dee", "--role", "operator"];
    let created = walk.f.console.run_with(&create, &[("USER", "dee")], "").await.expect(0).json();
    let dee = created["token"].as_str().unwrap();
    for route in ["POST /approvals/{id}/approve", "POST /approvals/{id}/reject"] {
        let path = format!("/failures/{}/discard", walk.f.console.failed().await);
        let request = walk.f.ask(dee, "POST", &path, r#"{"reason": "x"}"#).await.expect(202);
        let entries = walk.f.console.items(&["audit", "list", "--limit", "1"]).await;
        assert_eq!(entries[0]["actor"], "token dee", "a request is an entry, too: {entries}");
        walk.send_reason(route, &request["id"].to_string()).await;
    }
    walk.send("DELETE /approval-rules/{name}", "all", Value::Null).await;
}

#[tokio::test]
async fn each_route_that_changes_something_writes_an_entry_with_the_name_of_its_token() {
    let mut walk = Walk::new().await;
    walk.execute(WITHOUT_PROCESSES).await;
    walk.execute(SENT_AT_ONCE).await;
    jobs(&mut walk).await;
    failures(&mut walk).await;
    previews(&mut walk).await;
    incidents_and_checks(&mut walk).await;
    locks_messages_and_processes(&mut walk).await;
    people_and_tokens(&mut walk).await;
    approvals(&mut walk).await;
    for route in &walk.left {
        assert!(SILENT.iter().any(|(it, _)| it == route), "nobody has looked at {route}");
    }
}
