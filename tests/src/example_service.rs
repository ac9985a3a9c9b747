//! The services of `examples/` in other languages, as processes.
//!
//! `examples/serve.sh` installs what a service needs, builds it and starts it. The process runs in the platform's folder, so it
//! ends with the platform at the latest, even if the harness is killed.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::platform::Platform;

/// The languages that have such a service.
pub const LANGUAGES: [&str; 3] = ["python", "typescript", "java"];

/// The table of the services.
pub const ORDERS_TABLE: &str = include_str!("../../examples/orders/orders.sql");

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/serve.sh");

/// What the script answers where a language's tools are missing.
const MISSING: i32 = 77;

/// The text in a service's log before the address at which it listens.
const ADDRESS_FOLLOWS: &str = "running on http://";

/// For the packages of a language, and for its compiler on a machine that runs other tests.
const START_DEADLINE: Duration = Duration::from_mins(8);

/// An answer waits for a transaction of a few statements.
const ANSWER_DEADLINE: Duration = Duration::from_mins(1);

/// An answer is a small object, or a page with an error and its stack.
const ANSWER_MAX_BYTES: u64 = 256 * 1024;

/// Between two looks at the log.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How a start ended.
#[derive(Debug)]
pub enum Start {
    /// The service listens.
    Running(Box<ExampleService>),
    /// The machine has not what the language needs, which this names.
    Missing(String),
}

/// A service that listens; killed with this value.
#[derive(Debug)]
pub struct ExampleService {
    process: Child,
    address: String,
    log: PathBuf,
}

/// A service's answer.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; null if it is not JSON.
    pub body: Value,
}

impl ExampleService {
    /// Starts the service in `language` on the platform's database, and waits until it listens. The first time this
    /// installs packages.
    ///
    /// # Errors
    ///
    /// It ended, or did not listen within eight minutes.
    pub async fn start(platform: &Platform, language: &str) -> Result<Start> {
        let log = platform.folder().join(format!("{language}.log"));
        let file = File::create(&log).with_context(|| format!("create {}", log.display()))?;
        let mut process = Command::new("sh")
            .args([SCRIPT, language])
            .env("DATABASE_URL", platform.database_url())
            .env("PORT", "0")
            .current_dir(platform.folder())
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start the service in {language}"))?;
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            // Before the log: what has ended writes no more.
            let ended = process.try_wait()?;
            let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
            if let Some(address) = address(&text) {
                let address = address.to_owned();
                return Ok(Start::Running(Box::new(Self { process, address, log })));
            }
            match ended {
                Some(status) if status.code() == Some(MISSING) => {
                    return Ok(Start::Missing(text.trim_end().to_owned()));
                }
                Some(status) => bail!("the service in {language} ended ({status}):\n{text}"),
                None if Instant::now() < deadline => sleep(POLL_INTERVAL).await,
                None => bail!(
                    "the service in {language} does not listen after {START_DEADLINE:?}:\n{text}"
                ),
            }
        }
    }

    /// Posts `body` to `path`.
    ///
    /// # Errors
    ///
    /// The connection ended without an answer, or there was no answer within a minute.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        post(&self.address, path, body).await
    }

    /// Where it listens, for [`post`] of a task of its own.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// SIGKILL, and waits until the process is gone.
    ///
    /// # Errors
    ///
    /// It cannot be killed.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.kill().await.context("failed to kill the service")
    }

    /// What it has written to its log.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

/// Posts `body` to `path` of the service at `address`.
///
/// # Errors
///
/// As [`ExampleService::post`].
pub async fn post(address: &str, path: &str, body: &Value) -> Result<Answer> {
    let body = body.to_string();
    // HTTP/1.0, so that no answer comes in chunks.
    let request = format!(
        "POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let asking = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(ANSWER_MAX_BYTES).read_to_end(&mut answer).await?;
        anyhow::Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let text = timeout(ANSWER_DEADLINE, asking).await.context("no answer in time")??;
    let (head, body) = text.split_once("\r\n\r\n").context("the service gave no answer")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Answer {
        status: status.with_context(|| format!("no status: {head}"))?,
        body: serde_json::from_str(body).unwrap_or_default(),
    })
}

/// The address in a log, once its line is whole enough.
fn address(log: &str) -> Option<&str> {
    let (_, after) = log.split_once(ADDRESS_FOLLOWS)?;
    let end = after.find(|c: char| c == '/' || c.is_whitespace())?;
    Some(&after[..end])
}
