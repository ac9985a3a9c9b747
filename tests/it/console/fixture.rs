//! A platform with rows of every kind that pages show, and the addresses of the pages about them.

use serde_json::{Value, json};
use sexton_model::access::Role;
use sqlx::{Postgres, Transaction};

use super::roles::role_for_reading;
use crate::api::Fixture;

/// The longest name that a job can have, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The characters of an error that fill many lines of a phone.
const ERROR_CHARACTERS: usize = 2_000;

/// Routes that answer with no page, or lead to another site.
pub(super) const NO_PAGES: [&str; 5] =
    ["/assets/{name}", "/events", "/log-in/oidc", "/log-in/oidc/callback", "/pools"];

/// Addresses of pages, each behind its route; `<word>` stands for a value of [`Rows`]. Behind an address may stand the status of the answer,
/// if it is not 200, and a field of the page with a text that is written into it and sent.
const PAGES: &str = "
    / /
    /upcoming /upcoming
    /jobs /jobs
    /jobs /jobs?contains=nothing
    /jobs /jobs?label=team=billing
    /jobs /jobs?deleted=true
    /jobs:trigger /jobs:trigger?key=console-1
    /jobs:trigger /jobs:trigger?contains=nothing&key=console-1
    /jobs:trigger /jobs:trigger?contains=shop.&key=console-2 200 reason evening
    /jobs/{name} /jobs/shop.charge
    /jobs/{name} /jobs/shop.mail
    /jobs/{name} /jobs/billing.invoices
    /jobs/{name} /jobs/shop.old
    /jobs/{name} /jobs/<long>
    /jobs/{name}/trigger /jobs/shop.charge/trigger
    /jobs/{name}/trigger /jobs/shop.charge/trigger 400 params {
    /jobs/{name}/backfill /jobs/shop.nightly/backfill
    /jobs/{name}/backfill /jobs/shop.nightly/backfill?since=2024-01-01T00:00:00Z&until=2024-04-01T00:00:00Z
    /jobs/{name}/backfill /jobs/shop.nightly/backfill?since=yesterday&rate=often 400
    /firings /firings
    /executions /executions
    /executions/{id} /executions/<failed>
    /executions/{id} /executions/<running>
    /executions/{id} /executions/<long_failed>
    /executions/bulk /executions/bulk?kind=cancel
    /executions/bulk /executions/bulk?kind=cancel 400 rate often
    /failed /failed
    /failed /failed?text=nothing
    /failed /failed?discarded=true
    /failed/bulk /failed/bulk?kind=requeue
    /failed/bulk /failed/bulk?kind=requeue 400 rate often
    /failed/groups /failed/groups
    /failed/groups/{fingerprint} /failed/groups/<group>
    /failed/groups/{fingerprint} /failed/groups/<long_group>
    /failed/{id} /failed/<failed>
    /failed/{id} /failed/<discarded>
    /failed/{id} /failed/<long_failed>
    /failed/{id}/edit /failed/<failed>/edit
    /failed/{id}/edit /failed/<failed>/edit 400 params {
    /failed/{id}/edit /failed/<long_failed>/edit
    /bulks /bulks
    /bulks/{id} /bulks/1
    /bulks/{id} /bulks/2
    /bulks/{id} /bulks/1?state=waiting
    /approvals /approvals
    /approvals/{id} /approvals/1
    /incidents /incidents
    /incidents/{id} /incidents/<incident>
    /incidents/{id} /incidents/<long_incident>
    /monitors /monitors
    /checks /checks
    /checks/{name} /checks/backup
    /channels /channels
    /workers /workers
    /workers/{name} /workers/<worker>
    /locks /locks
    /audit /audit
    /flows /flows
    /flows/{id} /flows/<flow>
    /search /search
    /search /search?q=shop
    /me /me
    /settings /settings
    /settings/accounts /settings/accounts?all=true
    /settings/accounts /settings/accounts 200 name zoe
    /settings/tokens /settings/tokens
    /settings/tokens /settings/tokens 200 name deploy
    /log-in /log-in
    /set-up /set-up 404";

/// The lines of [`PAGES`]: each a route, and an address with what may stand behind it.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.lines().map(str::trim).filter_map(|line| line.split_once(' '))
}

/// Pages of a platform without any job, whose set-up is open, as a viewer gets them.
pub(super) fn empty_pages() -> Vec<String> {
    let is_of_no_row = |(route, address): &(&str, &str)| {
        !route.contains('{') && !address.contains(' ') && *route != "/log-in"
    };
    let pages = lines().filter(is_of_no_row).map(|(route, address)| {
        if role_for_reading(route) > Some(Role::Viewer) {
            format!("{address} 403")
        } else {
            address.to_owned()
        }
    });
    pages.chain(["/set-up".to_owned(), "/no-such-page 404".to_owned()]).collect()
}

/// A platform with rows of every kind that pages show.
pub(crate) struct Rows {
    pub(crate) f: Fixture,
    /// What stands for words in [`PAGES`].
    values: Vec<(&'static str, String)>,
    /// An advisory lock, for the page of locks.
    _lock: Transaction<'static, Postgres>,
}

impl Rows {
    /// Arranges them; requests of this machine have a role, or need a token.
    pub(crate) async fn new(local_role: Option<Role>) -> Self {
        let f = Fixture::with_local_role(local_role).await;
        let run = async |command: &[&str]| f.console.run(command).await.expect(0).text();
        let long = format!("shop.{}", "x".repeat(MAX_NAME_BYTES - "shop.".len()));
        let job = |name: &str, more: &str| format!("[[job]]\nname = \"{name}\"\n{more}\n");
        let jobs = [
            job("shop.nightly", "schedule = \"0 1 1 * *\"\ntask = \"report\""),
            job("shop.old", "task = \"work\""),
            job(&long, "task = \"work\""),
        ];
        run(&["jobs", "apply", "-f", &f.console.file("more.toml", &jobs.concat())]).await;
        run(&["jobs", "delete", "shop.old", "--reason", "x", "--yes"]).await;
        let failed = f.console.failed().await.to_string();
        let selected = f.console.failed().await.to_string();
        let proposed = f.console.failed().await.to_string();
        run(&["failed", "requeue", &selected, "--rate", "1/h", "--detach", "--yes"]).await;
        let mut values = arrange(&f).await;
        values.extend(fail_long(&f, &long).await);
        let running = f.console.trigger("shop.charge").await;
        f.console.open(running, 1).await;
        execute(&f, MORE_ROWS).await;
        run(&["approvals", "rules", "set", "all"]).await;
        f.console.run(&["failed", "discard", &proposed, "--yes", "--reason", "x"]).await.expect(11);
        f.account("ann", "viewer").await;
        f.token("ci", "operator").await;
        let pool = f.console.store().pool();
        let worker = "SELECT id::text FROM sexton.instances WHERE kind = 'worker'";
        let worker: String = sqlx::query_scalar(worker).fetch_one(pool).await.unwrap();
        let mut lock = pool.begin().await.unwrap();
        sqlx::raw_sql("SELECT pg_advisory_xact_lock(4711)").execute(&mut *lock).await.unwrap();
        let running = running.to_string();
        values.extend([
            ("long", long),
            ("failed", failed),
            ("running", running),
            ("worker", worker),
        ]);
        Self { f, values, _lock: lock }
    }

    /// Returns a value that stands for a word in [`PAGES`].
    pub(super) fn value(&self, name: &str) -> &str {
        let found = self.values.iter().find(|(it, _)| *it == name);
        &found.unwrap_or_else(|| panic!("no {name} is arranged")).1
    }

    /// Returns the address with the value for which a word in it stands.
    pub(crate) fn filled(&self, address: &str) -> String {
        match address.split_once('<') {
            None => address.to_owned(),
            Some((before, rest)) => {
                let (word, behind) = rest.split_once('>').unwrap();
                format!("{before}{}{behind}", self.value(word))
            }
        }
    }

    /// Returns the addresses of all pages, each behind its route, with what may stand behind an address.
    pub(super) fn pages(&self) -> Vec<(&'static str, String)> {
        lines().map(|(route, address)| (route, self.filled(address))).collect()
    }
}

/// Fails an execution of the job with the longest name with a long error without a blank, and opens an incident of it.
/// Returns the values of paths, and that of the group of the other failures.
async fn fail_long(f: &Fixture, job: &str) -> Vec<(&'static str, String)> {
    let failed = f.console.trigger(job).await;
    let error = "x".repeat(ERROR_CHARACTERS);
    f.console.fail(f.console.open(failed, 1).await, &error, None).await;
    f.console.incident(job, "high", "open", 30).await;
    let find = |items: &Value, value: &str, is_it: &dyn Fn(&Value) -> bool| {
        let found = items.as_array().unwrap().iter().find(|it| is_it(it));
        found.unwrap_or_else(|| panic!("{items}"))[value].as_str().unwrap().to_owned()
    };
    let groups = f.console.items(&["groups", "list"]).await;
    let is_long = |group: &Value| !group["pattern"].as_str().unwrap().contains("card declined");
    let incidents = f.console.items(&["incidents", "list"]).await;
    vec![
        ("group", find(&groups, "fingerprint", &|it| !is_long(it))),
        ("long_group", find(&groups, "fingerprint", &is_long)),
        ("long_incident", find(&incidents, "id", &|it| it["name"] == *job)),
        ("long_failed", failed.to_string()),
    ]
}

/// What no command makes without a scheduler, a worker or a channel that answers.
const MORE_ROWS: &str = "
    WITH w AS (
        INSERT INTO sexton.instances (id, kind, name, pid, version, pools, slots, started_at, heartbeat_at, ready)
        VALUES (gen_random_uuid(), 'worker', 'worker-1', 7, '0.1.0', '{default}', 4, now(), now(), true) RETURNING id)
    INSERT INTO sexton.offers (instance_id, task_type) SELECT id, 'work' FROM w;
    INSERT INTO sexton.instances (id, kind, name, pid, version, tz_version, started_at, heartbeat_at, ready)
        VALUES (gen_random_uuid(), 'scheduler', 'scheduler-1', 8, '0.1.0', '2025b', now(), now(), true);
    UPDATE sexton.executions SET worker_id = (SELECT id FROM sexton.instances WHERE kind = 'worker') WHERE state = 'running';
    INSERT INTO sexton.lock_rows (name, lock_until, locked_at, locked_by)
        VALUES ('charge', timezone('utc', now()) + interval '1 hour', timezone('utc', now()), 'app1');
    INSERT INTO sexton.incident_events (incident_id, at, kind, detail)
        SELECT id, now(), 'opened', 'a detail' FROM sexton.incidents;
    UPDATE sexton.channels SET failures = 1, failing_since = now(), last_error = 'refused';
    INSERT INTO sexton.notifications (id, incident_id, channel, kind, detail, created_at, due_at, state, attempts, finished_at, last_error)
        SELECT gen_random_uuid(), id, 'ops', 'opened', 'a detail', now(), now(), 'parked', 3, now(), 'refused' FROM sexton.incidents;
    INSERT INTO sexton.pings (check_id, at, kind, exit_code, body, agent)
        SELECT id, now(), 'fail', 1, 'disk full', 'curl/8' FROM sexton.checks;
    INSERT INTO sexton.gaps (job_id, first_firing, last_firing, count, reason, actor, why, recorded_at)
        SELECT id, now() - interval '1 day', now() - interval '1 day', 1, 'paused', 'ann', 'x', now() FROM sexton.jobs
        WHERE name = 'billing.invoices'";

async fn execute(f: &Fixture, statement: &'static str) {
    sqlx::raw_sql(statement).execute(f.console.store().pool()).await.unwrap();
}

/// Applies a job with a schedule, a check and a channel, holds firings, opens incidents, parks a message and pauses a bulk. Returns the
/// values of paths.
pub(crate) async fn arrange(f: &Fixture) -> Vec<(&'static str, String)> {
    let run = async |command: &[&str]| f.console.run(command).await.expect(0).text();
    let checks = "[[check]]\nname = \"backup\"\nevery = \"1h\"\ngrace = \"1m\"\n[[check]]\nname = \"paused\"\nevery = \"1h\"\ngrace = \"1m\"\n";
    run(&["checks", "apply", "-f", &f.console.file("checks.toml", checks)]).await;
    run(&["checks", "pause", "paused"]).await;
    let alerts = "[[channel]]\nname = \"ops\"\nslack = { url = { env = \"SLACK_URL\" } }\n";
    run(&["alerts", "apply", "-f", &f.console.file("alerts.toml", alerts)]).await;
    let discarded = f.console.failed().await.to_string();
    run(&["failed", "discard", &discarded, "--reason", "x", "--yes"]).await;
    run(&["jobs", "pause", "shop.mail", "--reason", "x"]).await;
    run(&["keys", "assign", "shop"]).await;
    f.console.incident("backup", "high", "open", 60).await;
    let flow = json!({"name": "nightly", "members": [
        {"name": "one", "job": "billing.invoices"}, {"name": "two", "job": "shop.charge", "after": ["one"]}]});
    let flow: uuid::Uuid = sqlx::query_scalar("SELECT flow_id FROM sexton.flow($1::jsonb)")
        .bind(flow)
        .fetch_one(f.console.store().pool())
        .await
        .unwrap();
    execute(
        f,
        "INSERT INTO sexton.unknown_messages (digest, kind, reason, body, body_bytes, properties, copies, first_seen, last_seen)
            SELECT decode(repeat(b.byte, 32), 'hex'), 'foreign', 'no row', 'x', 1, '{}', 1, now(), now()
            FROM unnest(ARRAY['ab', 'cd']) AS b (byte);
        INSERT INTO sexton.bulks (kind, selector, previewed_at, actor, state, created_at)
            VALUES ('requeue', '{\"filter\": {}}', now(), 'ann', 'paused', now());
        INSERT INTO sexton.holds (reason, last_seen, noticed_at, noticed_by)
            VALUES ('forward', now() - interval '2 days', now(), 'test:1');
        INSERT INTO sexton.held_firings (job_id, first_firing, last_firing, count, held_at)
            SELECT id, '2024-03-01T01:00:00Z', '2024-03-01T01:00:00Z', 1, '2024-03-01T01:05:00Z' FROM sexton.jobs
            WHERE name IN ('shop.nightly', 'billing.invoices')",
    )
    .await;
    run(&["unknown", "discard", &"cd".repeat(32), "--reason", "x", "--yes"]).await;
    let incidents = f.console.json(&["incidents", "list"]).await;
    vec![
        ("flow", flow.to_string()),
        ("incident", incidents["items"][0]["id"].as_str().unwrap().to_owned()),
        ("discarded", discarded),
        ("message", "ab".repeat(32)),
        ("message discarded", "cd".repeat(32)),
    ]
}
