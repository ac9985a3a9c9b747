//! A `sexton` that goes on, read as it speaks.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

use super::{DEADLINE, sexton};

pub(crate) struct FollowingCommand {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    warnings: Lines<BufReader<ChildStderr>>,
}

impl FollowingCommand {
    pub(crate) fn start(database_url: &str, args: &[&str]) -> Self {
        let mut command = Command::new(sexton());
        command.args(args).env_clear().env("DATABASE_URL", database_url);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let warnings = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, lines, warnings }
    }

    /// The next line of its standard error.
    pub(crate) async fn warning(&mut self) -> String {
        let line = timeout(DEADLINE, self.warnings.next_line()).await.expect("a line in time");
        line.unwrap().expect("it goes on")
    }

    pub(crate) async fn line(&mut self) -> String {
        let line = timeout(DEADLINE, self.lines.next_line()).await.expect("a line in time");
        line.unwrap().expect("it goes on")
    }

    pub(crate) fn interrupt(&self) {
        let pid = Pid::from_raw(self.child.id().unwrap() as i32).unwrap();
        kill_process(pid, Signal::INT).unwrap();
    }

    /// Waits for its end; it must have written nothing more.
    pub(crate) async fn end(mut self) -> i32 {
        assert_eq!(timeout(DEADLINE, self.lines.next_line()).await.unwrap().unwrap(), None);
        timeout(DEADLINE, self.child.wait()).await.unwrap().unwrap().code().unwrap()
    }
}
