//! `sexton executions logs`: what is stored, as it is shown and followed.

use serde_json::{Value, json};
use sexton_model::id::ExecutionId;
use sexton_model::output::{Chunk, Line, Stream};
use sexton_model::retry::{Decision, Usage};
use sexton_store::lease::AttemptFence;
use sexton_store::output::{OutputPart, WriteOutcome, write};
use sexton_store::settle::{SettleOutcome, Settlement, settle};
use sexton_tests::proxy::Proxy;
use tokio::time::timeout;

use super::following_command::FollowingCommand;
use super::{Console, DEADLINE};

/// A chunk of these lines, each a second later than the one before, of as many bytes as they take
/// with their line ends.
pub(super) fn chunk(first_line: i64, before: i64, lines: &[(Stream, &str)]) -> Chunk {
    // 2026-01-01T00:00:00Z and so many seconds.
    let at = |line: i64| chrono::DateTime::from_timestamp(1_767_225_600 + line, 0).unwrap();
    let bytes = lines.iter().map(|(_, text)| text.len() as i64 + 1).sum();
    let line = |(line, (stream, text)): (i64, &(Stream, &str))| Line {
        at: at(line),
        stream: *stream,
        text: (*text).to_owned(),
    };
    let lines: Vec<Line> = (first_line..).zip(lines).map(line).collect();
    Chunk::new(first_line, before, bytes, &lines)
}

pub(super) fn part(chunks: &[Chunk]) -> OutputPart {
    let chunks = chunks.iter().cloned().map(Into::into).collect();
    OutputPart { chunks, ..OutputPart::default() }
}

async fn written(console: &Console, held: AttemptFence, chunks: &[Chunk]) {
    // A command that has ended may hold the row for a moment.
    let writing = async {
        while write(console.store(), &[(held, part(chunks))]).await.unwrap() != [WriteOutcome::Done]
        {
        }
    };
    timeout(DEADLINE, writing).await.unwrap();
}

/// Ends an attempt well, or so that another follows at once.
async fn ended(console: &Console, held: AttemptFence, well: bool, rest: &[Chunk]) {
    let used = Usage { retries: 1, ..Usage::default() };
    let again = Decision::Retry { after: std::time::Duration::ZERO, used };
    let settlement = Settlement {
        fence: held,
        verdict: if well { Decision::Succeed } else { again },
        outcome: if well { "succeeded" } else { "error" },
        error: (!well).then(|| ("exit_1".to_owned(), "no".to_owned())),
        exit_code: Some(i32::from(!well)),
        signal: None,
        output: Some(part(rest)),
        result: None,
    };
    let settling = async {
        while settle(console.store(), std::slice::from_ref(&settlement), None).await.unwrap()[0]
            == SettleOutcome::Locked
        {}
    };
    timeout(DEADLINE, settling).await.unwrap();
}

#[tokio::test]
async fn logs_follow_streams_every_attempt_of_an_execution_to_its_end() {
    let console = Console::with_jobs().await;
    let id = console.trigger("shop.mail").await;
    let mut following =
        FollowingCommand::start(console.db.url(), &["executions", "logs", "-f", &id.to_string()]);
    let first = console.open(id, 1).await;
    written(&console, first, &[chunk(1, 0, &[(Stream::Stdout, "one")])]).await;
    assert_eq!(following.line().await, "00:00:01.000 out one");
    written(&console, first, &[chunk(2, 4, &[(Stream::Stderr, "two\u{1b}[2J")])]).await;
    assert_eq!(following.line().await, "00:00:02.000 err two\\u{1b}[2J");
    // Two lines were dropped before this one.
    ended(&console, first, false, &[chunk(5, 22, &[(Stream::Stdout, "five")])]).await;
    assert_eq!(following.line().await, "… 2 lines (10 bytes) were not kept …");
    assert_eq!(following.line().await, "00:00:05.000 out five");
    assert_eq!(following.line().await, "— attempt 1 ended: error —");
    let second = console.open(id, 2).await;
    ended(&console, second, true, &[chunk(1, 0, &[(Stream::Stdout, "again")])]).await;
    assert_eq!(following.line().await, "00:00:01.000 out again");
    assert_eq!(following.line().await, "— attempt 2 ended: succeeded —");
    assert_eq!(following.line().await, "— the execution is succeeded —");
    assert_eq!(following.end().await, 0);
}

#[tokio::test]
async fn a_program_that_follows_gets_one_document_a_line() {
    let console = Console::with_jobs().await;
    let id = console.trigger("shop.mail").await;
    let held = console.open(id, 1).await;
    let evil = "\u{1b}[2J\u{202e}";
    let chunks = [chunk(1, 0, &[(Stream::Stdout, "one"), (Stream::Stderr, evil)])];
    ended(&console, held, true, &chunks).await;
    let id = id.to_string();
    let logs = console.run(&["--json", "executions", "logs", "-f", &id]).await.expect(0).stdout;
    assert!(!logs.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}')), "{logs}");
    let logs: Vec<Value> = logs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        logs,
        [
            json!({"attempt": 1, "at": "2026-01-01T00:00:01Z", "stream": "stdout", "text": "one"}),
            json!({"attempt": 1, "at": "2026-01-01T00:00:02Z", "stream": "stderr", "text": evil}),
            json!({"attempt": 1, "outcome": "succeeded"}),
            json!({"state": "succeeded"}),
        ]
    );
    // One attempt to its end, and not what comes after it.
    let logs = console.run(&["executions", "logs", "-f", "--stderr", "--attempt", "1", &id]).await;
    assert_eq!(
        logs.expect(0).stdout,
        "00:00:02.000 err \\u{1b}[2J\\u{202e}\n— attempt 1 ended: succeeded —\n"
    );
    console.run(&["executions", "logs", "-f", "--attempt", "2", &id]).await.expect(3);
}

#[tokio::test]
async fn a_database_that_is_away_for_a_moment_is_waited_for() {
    let console = Console::with_jobs().await;
    let proxy = Proxy::before(console.db.url()).await.unwrap();
    let id = console.trigger("shop.mail").await;
    let held = console.open(id, 1).await;
    written(&console, held, &[chunk(1, 0, &[(Stream::Stdout, "one")])]).await;
    let url = proxy.url(console.db.url());
    let mut following =
        FollowingCommand::start(&url, &["executions", "logs", "-f", &id.to_string()]);
    assert_eq!(following.line().await, "00:00:01.000 out one");
    proxy.cut();
    let warning = following.warning().await;
    assert!(warning.contains("the database does not answer"), "{warning}");
    ended(&console, held, true, &[chunk(2, 4, &[(Stream::Stdout, "two")])]).await;
    proxy.pass();
    assert_eq!(following.line().await, "00:00:02.000 out two");
    assert_eq!(following.line().await, "— attempt 1 ended: succeeded —");
    assert_eq!(following.line().await, "— the execution is succeeded —");
    assert_eq!(following.end().await, 0);
}

#[tokio::test]
async fn logs_follow_ends_on_an_interrupt() {
    let console = Console::with_jobs().await;
    let id = console.trigger("shop.mail").await;
    let held = console.open(id, 1).await;
    written(&console, held, &[chunk(1, 0, &[(Stream::Stdout, "one")])]).await;
    let mut following = FollowingCommand::start(
        console.db.url(),
        &["executions", "logs", "--follow", &id.to_string()],
    );
    assert_eq!(following.line().await, "00:00:01.000 out one");
    following.interrupt();
    assert_eq!(following.end().await, 0);
}

#[tokio::test]
async fn a_stream_can_be_shown_alone_and_the_gap_keeps_its_place() {
    let console = Console::with_jobs().await;
    let id = console.trigger("shop.mail").await;
    let held = console.open(id, 1).await;
    let running = console.run(&["executions", "logs", &id.to_string()]).await.expect(0);
    assert_eq!(running.stdout, "Attempt 1 is running and has written nothing yet.\n");
    let first = chunk(1, 0, &[(Stream::Stdout, "a"), (Stream::Stderr, "b"), (Stream::Stdout, "c")]);
    let last = chunk(9, 50, &[(Stream::Stderr, "d"), (Stream::Stdout, "e")]);
    written(&console, held, &[first, last]).await;
    let id = id.to_string();
    let texts = async |option: &[&str]| {
        let args = [&["executions", "logs", id.as_str()], option].concat();
        let stdout = console.run(&args).await.expect(0).stdout;
        stdout
            .lines()
            .map(|line| line.split(' ').next_back().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&["--stdout"]).await, ["a", "c", "…", "e"]);
    assert_eq!(texts(&["--stderr"]).await, ["b", "…", "d"]);
    assert_eq!(texts(&["--stderr", "--stdout"]).await, texts(&[]).await);
}

#[tokio::test]
async fn output_of_the_previous_worker_version_is_still_shown() {
    let console = Console::with_jobs().await;
    let id: ExecutionId = console.failed().await;
    let output = json!({
        "lines": [{"at": "2026-01-01T00:00:00Z", "stream": "stdout", "text": "once"}],
        "head_lines": 1, "dropped_bytes": 0, "dropped_lines": 0,
    });
    sqlx::query("UPDATE sexton.attempts SET output = $1")
        .bind(&output)
        .execute(console.db.pool())
        .await
        .unwrap();
    let id = id.to_string();
    let logs = console.run(&["executions", "logs", &id]).await.expect(0);
    assert_eq!(logs.stdout, "00:00:00.000 out once\n");
    assert_eq!(console.json(&["executions", "logs", &id]).await["output"], output);
    let logs = console.run(&["executions", "logs", "-f", &id]).await.expect(0);
    assert_eq!(
        logs.stdout,
        "00:00:00.000 out once\n— attempt 1 ended: error —\n— the execution is failed —\n"
    );
}

#[tokio::test]
async fn progress_of_a_running_task_is_listed_and_shown() {
    let console = Console::with_jobs().await;
    let id = console.trigger("shop.mail").await;
    let held = console.open(id, 1).await;
    let parsed = sexton_model::progress::parse(
        "::progress 40 records=1200 note=\u{202e}evil",
        chrono::DateTime::UNIX_EPOCH,
    );
    let progress = Some(serde_json::to_value(parsed.unwrap()).unwrap());
    let part = OutputPart { progress: progress.clone(), ..OutputPart::default() };
    assert_eq!(write(console.store(), &[(held, part)]).await.unwrap(), [WriteOutcome::Done]);
    let id = id.to_string();
    for args in [&["executions", "list"][..], &["executions", "show", &id]] {
        let stdout = console.run(args).await.expect(0).stdout;
        let short = "40 % note=\\u{202e}evil records=1200";
        assert!(stdout.contains(short), "{args:?}: {stdout}");
    }
    let listed = console.items(&["executions", "list"]).await;
    assert_eq!(Some(&listed[0]["progress"]), progress.as_ref());
    // Afterwards it is the attempt's.
    ended(&console, held, false, &[]).await;
    let shown = console.json(&["executions", "show", &id]).await;
    assert_eq!(
        (&shown["progress"], Some(&shown["attempts"][0]["progress"])),
        (&Value::Null, progress.as_ref())
    );
    let stdout = console.run(&["executions", "show", &id]).await.expect(0).stdout;
    assert!(stdout.contains("40 %"), "{stdout}");
}
