//! The acts between the commands of the runbook.

use std::collections::HashMap;
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use sexton_broker::names::failed_queue;
use sexton_tests::platform::{Platform, Program};
use sexton_tests::proxy::Proxy;
use sqlx::{AssertSqlSafe, Row as _};

mod elsewhere;
mod readings;
mod relays;

/// For events that only have to happen in the end.
const FINAL_TIMEOUT: Duration = Duration::from_mins(2);

/// Variables of the programs, unless an act says otherwise: nothing is lost by the way, and metrics are read often.
const DEFAULTS: [(&str, &str); 2] = [("LEASE_MS", "60000"), ("METRICS_INTERVAL_MS", "100")];

/// A task that fails until there is a file, and one that never ends.
const TASKS: &str = r#"
[tasks.charge]
command = ["/bin/sh", "-c", "test -e repaired || { echo 'the bank does not answer' >&2; exit 65; }"]
[tasks.endless]
command = ["/bin/sh", "-c", "sleep 3000"]
"#;

/// A platform, and what the commands say of it.
pub(in crate::docs) struct Scene {
    platform: Platform,
    programs: HashMap<String, Program>,
    /// Variables of the commands, and of their environment.
    variables: HashMap<String, String>,
    environment: HashMap<String, String>,
    /// Between the programs and a server, by the server's name.
    relays: HashMap<String, Proxy>,
}

impl Scene {
    pub(in crate::docs) async fn new() -> Self {
        let mut platform = Platform::new().await.unwrap();
        platform.catalogue(TASKS);
        let (programs, variables, environment, relays) = Default::default();
        Self { platform, programs, variables, environment, relays }
    }

    /// One act: a word and what belongs to it.
    pub(in crate::docs) async fn act(&mut self, act: &str) {
        let (word, rest) = act.trim().split_once(' ').unwrap_or((act.trim(), ""));
        match word {
            "scheduler" | "worker" => self.start(word, rest).await,
            "starting" => self.start_unready(rest).await,
            "relay" => self.relay(rest).await,
            "cut" => self.relays[rest].cut(),
            "heal" => self.relays[rest].pass(),
            "slow" => self.slow(rest),
            "metric" => self.metric(rest).await,
            "check-ledger" => self.check_ledger(rest).await,
            "kill" => self.programs.remove(rest).unwrap().kill(),
            "job" => self.apply(rest).await,
            // Its queues go with the platform.
            "pool" => self.platform.uses_pool(rest),
            "repair" => std::fs::write(self.platform.folder().join("repaired"), "").unwrap(),
            "receiver" => self.receiver().await,
            "watcher" => self.watcher(rest).await,
            "server" => self.server(rest).await,
            "check" => self.check(rest).await,
            "judge" => self.judge(rest).await,
            "rubbish" => self.rubbish(rest.as_bytes()).await,
            "sql" => {
                let (pool, sql) = (self.platform.store().pool(), AssertSqlSafe(rest.to_owned()));
                sqlx::query(sql).execute(pool).await.unwrap();
            }
            "sexton" => {
                let output = self.command(act).await;
                assert!(!output.contains("(exit status"), "{act}: {output}");
            }
            "shell" => {
                self.shell(rest);
            }
            "trigger" => {
                let (job, keys) = rest.split_once(' ').unwrap();
                for key in keys.split_whitespace() {
                    let output =
                        self.command(&format!("sexton jobs trigger {job} --key {key}")).await;
                    assert!(!output.contains("(exit status"), "{act}: {output}");
                }
            }
            // Failed, with their messages in the failed queue.
            "failed" => self.until_executions(rest, "ticket_published_at IS NOT NULL", word).await,
            "succeeded" => self.until_executions(rest, "true", word).await,
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
            other => panic!("no act is called {other}"),
        }
    }

    /// Starts a program; its name may be followed by variables.
    async fn start(&mut self, kind: &str, name_and_variables: &str) {
        let start =
            if kind == "worker" { Platform::start_worker } else { Platform::start_scheduler };
        let (name, variables) =
            name_and_variables.split_once(' ').unwrap_or((name_and_variables, ""));
        let variables = variables.split_whitespace().map(|set| set.split_once('=').unwrap());
        let env: Vec<_> = DEFAULTS.into_iter().chain(self.relayed()).chain(variables).collect();
        let mut program = start(&self.platform, name, &env).unwrap();
        program.ready().await;
        self.add(name, program);
        self.until(&format!(
            "SELECT count(*) FROM sexton.instances WHERE name = '{name}' AND ready"
        ))
        .await;
    }

    /// Keeps a program, and where it answers and logs, as the variables `HEALTH` and `LOG` of the newest.
    fn add(&mut self, name: &str, program: Program) {
        let address = program.health_address().unwrap();
        self.variables.insert("HEALTH".to_owned(), format!("http://{address}"));
        self.variables.insert("LOG".to_owned(), program.log_file().display().to_string());
        self.programs.insert(name.to_owned(), program);
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
        let look = async || (self.count(query).await > 0).then_some(());
        self.platform.eventually(query, FINAL_TIMEOUT, look).await;
    }

    async fn count(&self, query: &str) -> i64 {
        let (pool, sql) = (self.platform.store().pool(), AssertSqlSafe(query.to_owned()));
        sqlx::query(sql).fetch_one(pool).await.unwrap().get(0)
    }

    /// Waits until `count` executions are in `state` and meet `condition`.
    async fn until_executions(&self, count: &str, condition: &str, state: &str) {
        // The quotient of two integers is 0 below `count`.
        let query = format!(
            "SELECT count(*) / {count} FROM sexton.executions WHERE state = '{state}' AND {condition}"
        );
        self.until(&query).await;
    }

    /// Writes a file into the folder in which the commands run.
    pub(in crate::docs) fn file(&self, name: &str, content: &str) {
        std::fs::write(self.platform.folder().join(name), content).unwrap();
    }

    /// Runs a line of a page: `sexton`, a program in the background (`NAME=value … worker &`), the assignment
    /// of a variable that an act has set, or anything else by a shell. Answers as [`Self::command`].
    pub(in crate::docs) async fn run(&mut self, line: &str) -> String {
        if line.starts_with("sexton ") {
            return self.command(line).await;
        }
        if let Some(program) = line.strip_suffix(" &") {
            self.start_in_background(program).await;
            return String::new();
        }
        match line.split_once('=') {
            Some((name, _)) if self.variables.contains_key(name) => String::new(),
            _ => self.shell(line),
        }
    }

    /// Starts the program as the line says, under the name in its `SEXTON_INSTANCE`.
    async fn start_in_background(&mut self, line: &str) {
        // The log is the platform's own, so that failures show it.
        let line = line.split(" 2>").next().unwrap_or_default();
        let line = line.replace("sexton serve", "serve");
        let (env, program) = line.rsplit_once(' ').unwrap();
        let env: Vec<(&str, &str)> =
            env.split_whitespace().map(|set| set.split_once('=').unwrap()).collect();
        let (_, name) = env.iter().find(|(name, _)| *name == "SEXTON_INSTANCE").unwrap();
        let env: Vec<_> = DEFAULTS.into_iter().chain(self.relayed()).chain(env.clone()).collect();
        let start = match program {
            "worker" => Platform::start_worker,
            "scheduler" => Platform::start_scheduler,
            "serve" => Platform::start_server,
            other => panic!("a page starts a program that nobody knows: {other}"),
        };
        let mut started = start(&self.platform, name, &env).unwrap();
        started.ready().await;
        self.add(name, started);
    }

    fn shell(&self, line: &str) -> String {
        let mut shell = std::process::Command::new("/bin/sh");
        let shell = shell.args(["-c", line]).current_dir(self.platform.folder());
        let output = shell.envs(&self.variables).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command of the runbook; answers what it says, and its exit status if that is not 0.
    async fn command(&self, line: &str) -> String {
        let words = self.words(line);
        let [program, args @ ..] = &words[..] else { panic!("no command: {line}") };
        assert_eq!(program, "sexton", "only sexton is run: {line}");
        let env: Vec<(&str, &str)> =
            self.environment.iter().map(|(name, value)| (&**name, &**value)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = self.platform.sexton_with(&env, &args).await;
        let mut text = format!("{}{}", output.stdout, output.stderr);
        if !output.status.success() {
            let code = output.status.code().map_or_else(|| "none".to_owned(), |it| it.to_string());
            text = format!("{text}\n(exit status {code})");
        }
        text
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
