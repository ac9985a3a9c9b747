//! What happens between the commands of the runbook.

use std::collections::HashMap;
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use sexton_broker::names::failed_queue;
use sexton_tests::platform::{Platform, Program};
use sqlx::{AssertSqlSafe, Row as _};

/// For what only has to happen in the end.
const FINAL_TIMEOUT: Duration = Duration::from_mins(2);

/// A task that fails until there is a file, and one that never ends.
const TASKS: &str = r#"
[tasks.charge]
command = ["/bin/sh", "-c", "test -e repaired || { echo 'the bank does not answer' >&2; exit 65; }"]
[tasks.endless]
command = ["/bin/sh", "-c", "sleep 3000"]
"#;

/// A platform, and what the commands say of it.
pub(super) struct Scene {
    platform: Platform,
    programs: HashMap<String, Program>,
    /// Variables of the commands, and of their environment.
    variables: HashMap<String, String>,
    environment: HashMap<String, String>,
}

impl Scene {
    pub(super) async fn new() -> Self {
        let mut platform = Platform::new().await.unwrap();
        platform.catalogue(TASKS);
        let (programs, variables, environment) = Default::default();
        Self { platform, programs, variables, environment }
    }

    /// One act: a word and what belongs to it.
    pub(super) async fn act(&mut self, act: &str) {
        let (word, rest) = act.trim().split_once(' ').unwrap_or((act.trim(), ""));
        match word {
            "scheduler" | "worker" => self.start(word, rest).await,
            "kill" => self.programs.remove(rest).unwrap().kill(),
            "job" => self.apply(rest).await,
            // Its queues go with the platform.
            "pool" => self.platform.uses_pool(rest),
            "repair" => std::fs::write(self.platform.folder().join("repaired"), "").unwrap(),
            "rubbish" => self.rubbish(rest.as_bytes()).await,
            "sql" => {
                let (pool, sql) = (self.platform.store().pool(), AssertSqlSafe(rest.to_owned()));
                sqlx::query(sql).execute(pool).await.unwrap();
            }
            "sexton" => {
                let said = self.command(act).await;
                assert!(!said.contains("(exit status"), "{act}: {said}");
            }
            "until" => self.until(rest).await,
            "let" => {
                let (name, sql) = rest.split_once(" = ").unwrap();
                let (pool, sql) = (self.platform.store().pool(), AssertSqlSafe(sql.to_owned()));
                let value: String = sqlx::query(sql).fetch_one(pool).await.unwrap().get(0);
                self.variables.insert(name.to_owned(), value);
            }
            "env" => {
                let (name, value) = rest.split_once('=').unwrap();
                self.environment.insert(name.to_owned(), value.to_owned());
            }
            "unmigrated" => {
                sqlx::raw_sql("DROP SCHEMA sexton CASCADE")
                    .execute(self.platform.store().pool())
                    .await
                    .unwrap();
            }
            other => panic!("the runbook asks for an act that nobody knows: {other}"),
        }
    }

    async fn start(&mut self, kind: &str, name: &str) {
        let start =
            if kind == "worker" { Platform::start_worker } else { Platform::start_scheduler };
        let mut program = start(&self.platform, name, &[("LEASE_MS", "60000")]).unwrap();
        program.ready().await;
        self.programs.insert(name.to_owned(), program);
        self.until(&format!(
            "SELECT count(*) FROM sexton.instances WHERE name = '{name}' AND ready"
        ))
        .await;
    }

    async fn apply(&self, name_and_fields: &str) {
        let (name, fields) = name_and_fields.split_once(' ').unwrap();
        let fields = fields.replace("; ", "\n");
        let job = format!("[[job]]\nname = \"{name}\"\nretry = {{ max_retries = 0 }}\n{fields}\n");
        self.platform.apply(&job).await.unwrap();
    }

    async fn rubbish(&self, body: &[u8]) {
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(self.platform.amqp_url(), properties).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        let queue = failed_queue(self.platform.namespace());
        let properties = BasicProperties::default().with_delivery_mode(2);
        let options = BasicPublishOptions::default();
        let sent = channel.basic_publish("".into(), queue.into(), options, body, properties);
        sent.await.unwrap().await.unwrap();
        connection.close(200, "done".into()).await.unwrap();
    }

    /// Waits until a query counts one or more.
    async fn until(&self, query: &str) {
        let look = async || {
            let (pool, sql) = (self.platform.store().pool(), AssertSqlSafe(query.to_owned()));
            let count: i64 = sqlx::query(sql).fetch_one(pool).await.unwrap().get(0);
            (count > 0).then_some(())
        };
        self.platform.eventually(query, FINAL_TIMEOUT, look).await;
    }

    /// Runs a command of the runbook; answers what it says, and its exit status if that is not 0.
    pub(super) async fn command(&self, line: &str) -> String {
        let words = self.words(line);
        let [program, args @ ..] = &words[..] else { panic!("no command: {line}") };
        assert_eq!(program, "sexton", "only sexton is run: {line}");
        let env: Vec<(&str, &str)> =
            self.environment.iter().map(|(name, value)| (&**name, &**value)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = self.platform.sexton_with(&env, &args).await;
        let mut said = format!("{}{}", output.stdout, output.stderr);
        if !output.status.success() {
            let code = output.status.code().map_or_else(|| "none".to_owned(), |it| it.to_string());
            said = format!("{said}\n(exit status {code})");
        }
        said
    }

    /// As a shell splits it: quotes keep blanks, `$NAME` is a variable.
    fn words(&self, line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (number, part) in line.split('\'').enumerate() {
            if number % 2 == 1 {
                words.push(part.to_owned());
                continue;
            }
            words.extend(part.split_whitespace().map(|word| {
                match word.strip_prefix('$') {
                    Some(name) => self
                        .variables
                        .get(name)
                        .unwrap_or_else(|| panic!("nothing is known of ${name}"))
                        .clone(),
                    None => word.to_owned(),
                }
            }));
        }
        words
    }
}
