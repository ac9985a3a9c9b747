//! The doctor: each finding of its list is created on real servers and found by the real `sexton`.
//!
//! Method: a platform that is well, of which the doctor says so (but for what cannot be seen), then one
//! thing that is broken, and a second look. Each test is called `doctor_finds_` and the finding's name;
//! a test of the documents asks that there is one for each. Two are not here: older server
//! releases are no longer packaged, so unit tests beside the checks cover those.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod approvals;
mod broken_broker;
mod connections;
mod failed_messages;
mod fixing;
mod list;
mod locks;
mod policies;
mod privileges;
mod processes;
mod rows;
mod schema;
mod time;
mod verify_tasks;

use lapin::{Channel, Connection, ConnectionProperties};
use serde_json::Value;
use sexton_broker::{Endpoint, Link, LinkSettings, PoolName, Timeouts};
use sexton_operations::doctor::Code;
use sexton_tests::platform::{CommandOutput, Platform};

/// What the doctor cannot see on the releases that may have it wrong, and what a busy machine makes.
const EXCUSED: [Code; 3] = [Code::BrokerFlagUnseen, Code::DatabaseSlow, Code::BrokerSlow];

/// A platform that is well: migrated, with its queues, and with a scheduler that was heard of just now.
struct DoctorFixture {
    platform: Platform,
}

impl DoctorFixture {
    async fn new() -> Self {
        Self::of(Platform::new().await.unwrap()).await
    }

    async fn of(platform: Platform) -> Self {
        let fixture = Self { platform };
        fixture.declare().await;
        fixture.process("scheduler", "s1", "ready => true").await;
        fixture
    }

    /// As a scheduler does when it connects.
    async fn declare(&self) {
        let link = Link::start(LinkSettings {
            endpoint: Endpoint::parse(self.platform.amqp_url()).unwrap(),
            name: "test".to_owned(),
            namespace: self.platform.namespace().clone(),
            pools: vec![PoolName::default_pool()],
            timeouts: Timeouts::default(),
        });
        assert!(link.up().await.is_some());
        link.close().await;
    }

    /// A process that was heard of just now, with further columns as `name => value, …`.
    async fn process(&self, kind: &str, name: &str, columns: &str) {
        let (mut names, mut values) = (String::new(), String::new());
        for column in columns.split(", ").filter(|it| !it.is_empty()) {
            let (name, value) = column.split_once(" => ").unwrap();
            names = format!("{names}, {name}");
            values = format!("{values}, {value}");
        }
        let version = env!("CARGO_PKG_VERSION");
        let version = if columns.split(", ").any(|it| it.starts_with("version =>")) {
            String::new()
        } else {
            version.into()
        };
        if !version.is_empty() {
            names.push_str(", version");
            values = format!("{values}, '{version}'");
        }
        let heartbeat = if columns.contains("heartbeat_at =>") { "" } else { ", heartbeat_at" };
        let now = if heartbeat.is_empty() { "" } else { ", now()" };
        self.sql(&format!(
            "INSERT INTO sexton.instances (id, kind, name, pid, started_at{heartbeat}{names})
             VALUES (gen_random_uuid(), '{kind}', '{name}', 1, now() - interval '1 day'{now}{values})"
        ))
        .await;
    }

    async fn sql(&self, statement: &str) -> u64 {
        let pool = self.platform.store().pool();
        let done = sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).execute(pool).await;
        done.unwrap().rows_affected()
    }

    async fn channel(&self) -> (Channel, Connection) {
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(self.platform.amqp_url(), properties).await.unwrap();
        (connection.create_channel().await.unwrap(), connection)
    }

    async fn run(&self, env: &[(&str, &str)], args: &[&str]) -> (CommandOutput, Value) {
        let args = [&["--json", "doctor"], args].concat();
        let output = self.platform.sexton_with(env, &args).await;
        let answer = serde_json::from_str(&output.stdout);
        let Ok(answer) = answer else { panic!("no JSON: {output}") };
        (output, answer)
    }

    /// Asks that all is well.
    async fn is_well(&self) {
        let (output, answer) = self.run(&[], &[]).await;
        assert_eq!(findings_of(&answer), Vec::<String>::new(), "{output}");
        reports_severity(&output, &answer);
    }

    /// Asserts that the doctor finds `code` now, and returns that finding.
    async fn has(&self, code: Code) -> Value {
        self.has_with(&[], code).await
    }

    async fn has_with(&self, env: &[(&str, &str)], code: Code) -> Value {
        let (output, answer) = self.run(env, &[]).await;
        let findings = answer["findings"].as_array().unwrap();
        let found = findings.iter().find(|one| one["code"] == code.as_str());
        let found = found.unwrap_or_else(|| panic!("{} is not found: {output}", code.as_str()));
        assert!(!found["evidence"].as_str().unwrap().is_empty(), "{found}");
        reports_severity(&output, &answer);
        // What people read says the same.
        let output = self.platform.sexton_with(env, &["doctor"]).await;
        assert!(output.stdout.contains(&format!(" {}: ", code.as_str())), "{output}");
        found.clone()
    }

    /// Asks that what was found is gone.
    async fn has_no(&self, code: Code) {
        let (output, answer) = self.run(&[], &[]).await;
        assert!(!codes(&answer).contains(&code.as_str().to_owned()), "{output}");
    }
}

fn codes(answer: &Value) -> Vec<String> {
    let findings = answer["findings"].as_array().unwrap();
    findings.iter().map(|one| one["code"].as_str().unwrap().to_owned()).collect()
}

/// What was found, but for what the doctor cannot see, and for what the tests beside this one may cause: how long a
/// round trip takes says nothing of the platform where others keep the machine busy. Both limits have tests of their
/// own, with servers that answer late, and in values.
fn findings_of(answer: &Value) -> Vec<String> {
    let mut codes_found = codes(answer);
    codes_found.retain(|code| EXCUSED.iter().all(|excused| code != excused.as_str()));
    codes_found
}

/// Asks that the exit status is that of the worst finding; notes are no failure.
fn reports_severity(output: &CommandOutput, answer: &Value) {
    let worst = match answer["worst"].as_str() {
        None | Some("note") => 0,
        Some("warning") => 10,
        _ => 8,
    };
    assert_eq!(output.status.code(), Some(worst), "the status is that of the worst: {output}");
}

fn evidence(found: &Value) -> &str {
    found["evidence"].as_str().unwrap()
}

#[tokio::test]
async fn a_healthy_platform_has_no_findings_and_doctor_changes_nothing() {
    let fixture = DoctorFixture::new().await;
    fixture.is_well().await;
    let actions: i64 = sqlx::query_scalar("SELECT count(*) FROM sexton.operator_actions")
        .fetch_one(fixture.platform.store().pool())
        .await
        .unwrap();
    assert_eq!(actions, 0);
}
