//! A story in a browser that says how far it is, so that a test can change the world in between.

use std::process::Stdio;
use std::time::Duration;

use sexton_tests::platform::Program;
use sexton_tests::untested::report_untested;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::REQUIRED;

/// For everything in a browser; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_mins(3);

/// A story under way.
pub(super) struct Play {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    first: Option<String>,
}

impl Play {
    /// Begins a story of `clients/browser`; `None`: no browser can be had here.
    pub(super) async fn start(name: &str, arguments: &[&str]) -> Option<Self> {
        let script = format!("{}/clients/browser/run.sh", env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new("sh");
        command.args([&script, name]).args(arguments).kill_on_drop(true);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut play = Self { process, lines, first: None };
        let first = play.next().await;
        if first.starts_with("missing:") && std::env::var_os(REQUIRED).is_none() {
            report_untested(&format!("the console in a browser: {first}"));
            return None;
        }
        play.first = Some(first);
        Some(play)
    }

    /// Waits until the story has come to this line.
    pub(super) async fn expect(&mut self, line: &str) {
        let next = match self.first.take() {
            Some(first) => first,
            None => self.next().await,
        };
        assert_eq!(next, line);
    }

    /// Waits for the end of the story.
    pub(super) async fn end(mut self) {
        self.expect("seen to the end").await;
        let status = timeout(PATIENCE, self.process.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{status}");
    }

    async fn next(&mut self) -> String {
        let next = timeout(PATIENCE, self.lines.next_line()).await;
        next.expect("the story goes on").unwrap().unwrap_or_default()
    }
}

/// Where a console is, by its log.
pub(super) fn site(server: &Program) -> String {
    let log = server.log();
    let (_, rest) = log.split_once("the console is at ").expect("an address is logged");
    rest.split("/,").next().unwrap().to_owned()
}
