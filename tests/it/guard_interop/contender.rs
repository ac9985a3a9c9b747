//! A contender in another language, as a process.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::{INSTALL_TIMEOUT, PATIENCE};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/locks/run.sh");
/// What the script answers where a language's tools are missing.
const MISSING: i32 = 77;

/// What a contender does.
pub(super) struct Contention<'a> {
    /// `node`, `python` or `java`.
    pub(super) language: &'a str,
    /// `advisory`, `tick`, `pglock` or `row`.
    pub(super) kind: &'a str,
    /// The key, or the name.
    pub(super) key: &'a str,
    /// As which it writes down what it holds.
    pub(super) holder: &'a str,
    /// Whether it takes the lock once, and holds it until it is ended.
    pub(super) is_holding: bool,
    /// Variables of its environment.
    pub(super) env: &'a [(&'a str, &'a str)],
}

impl<'a> Contention<'a> {
    /// One that contends until it is ended, under its language's name.
    pub(super) const fn of(language: &'a str, kind: &'a str, key: &'a str) -> Self {
        Self { language, kind, key, holder: language, is_holding: false, env: &[] }
    }

    /// One that takes the lock once, and holds it until it is ended or killed.
    pub(super) const fn hold(self, env: &'a [(&'a str, &'a str)]) -> Self {
        Self { is_holding: true, env, ..self }
    }
}

/// The process; killed with this value. It ends by itself with its standard input, so with the tests at the latest.
#[derive(Debug)]
pub(super) struct Contender {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    log: NamedTempFile,
}

impl Contender {
    /// Starts one on the database of `url`, and waits until it is connected. `None`, with a report, where the language's tools
    /// are missing.
    pub(super) async fn start(url: &str, contention: &Contention<'_>) -> Option<Self> {
        let Contention { language, kind, key, holder, is_holding, env } = contention;
        let log = NamedTempFile::new().unwrap();
        let mode = if *is_holding { "hold" } else { "contend" };
        let mut process = Command::new("sh")
            .args([SCRIPT, language, kind, key, holder, mode])
            .env("DATABASE_URL", url)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log.path()).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut contender = Self { process, lines, log };
        match contender.line(INSTALL_TIMEOUT).await.as_deref() {
            Some("ready") => Some(contender),
            Some(line) if contender.status().await.code() == Some(MISSING) => {
                sexton_tests::untested::report_untested(&format!("locks in {language}: {line}"));
                None
            }
            other => panic!("{language}: {other:?}\n{}", contender.log()),
        }
    }

    /// Waits until it has taken the lock that it holds until its end.
    pub(super) async fn holding(&mut self) {
        let line = self.line(PATIENCE).await;
        assert_eq!(line.as_deref(), Some("holding"), "{}", self.log());
    }

    /// Lets it end: it releases the lock, and says whether anything went wrong.
    pub(super) async fn end(mut self) {
        drop(self.process.stdin.take());
        let status = self.status().await;
        assert!(status.success(), "{status}\n{}", self.log());
    }

    /// SIGKILL, and waits until the process is gone.
    pub(super) async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }

    async fn line(&mut self, patience: Duration) -> Option<String> {
        let line = timeout(patience, self.lines.next_line()).await;
        line.unwrap_or_else(|_| panic!("no line within {patience:?}\n{}", self.log())).unwrap()
    }

    async fn status(&mut self) -> std::process::ExitStatus {
        let ended = timeout(PATIENCE, self.process.wait()).await;
        ended.unwrap_or_else(|_| panic!("it does not end\n{}", self.log())).unwrap()
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log.path()).unwrap_or_default()).into_owned()
    }
}
