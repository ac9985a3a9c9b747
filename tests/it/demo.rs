//! The demo itself: it succeeds only if all of it was observed, and says what was not.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise, in its helpers too")]

use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sexton_tests::example_service::LANGUAGES;
use sexton_tests::servers;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// The demo ends by itself within two minutes; more would be a finding.
const DEADLINE: Duration = Duration::from_mins(2);

/// The packages of three languages may have to be installed first.
const INSTALL_DEADLINE: Duration = Duration::from_mins(15);

/// All that a newcomer does: the demo plays, then it is the newcomer's turn, in the console.
#[tokio::test]
async fn the_demo_observes_every_goal_and_a_newcomer_requeues_its_last_task() {
    let mut command = demo_command(&["run", "--stay"]).await;
    let mut demo = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let mut stdout = String::new();
    let playing = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            stdout.extend([&line, "\n"]);
            if line.contains("until you press Enter") {
                break;
            }
        }
    };
    timeout(DEADLINE, playing).await.expect("the demo comes to its end");
    let address = stdout.lines().find(|line| line.trim().starts_with("http://"));
    let address = address.unwrap_or_else(|| panic!("no address of a console:\n{stdout}"));
    crate::console::story("newcomer.js", &[address.trim()]).await;
    demo.stdin.take().unwrap().write_all(b"\n").await.unwrap();
    let ended = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            stdout.extend([&line, "\n"]);
        }
        demo.wait().await.unwrap()
    };
    let status = timeout(DEADLINE, ended).await.expect("Enter ends it");
    assert!(status.success(), "{status}\n{stdout}");
    assert!(!stdout.contains('\x1b'), "colour without a terminal:\n{stdout}");
    for verb in ["fired", "ran", "failed", "retried", "parked", "shown", "requeued", "succeeded"] {
        let is_of_execution = |line: &str| {
            let mut words = line.split_whitespace().skip(2);
            words.next() == Some(verb) && words.any(|word| uuid::Uuid::parse_str(word).is_ok())
        };
        assert!(
            stdout.lines().any(is_of_execution),
            "no line tells with an execution's id: {verb}\n{stdout}"
        );
    }
    // Two programs are killed, and one attempt with them.
    let row = |title: &str| stdout.lines().filter(|line| line.contains(title)).count();
    assert_eq!(row(", SIGKILL"), 2, "{stdout}");
    let lost = stdout.lines().find(|line| line.contains("attempts lost")).unwrap();
    assert!(!lost.contains(" 0 "), "{stdout}");
    assert!(!stdout.contains("MISSING") && !stdout.contains("WRONG"), "{stdout}");
}

#[tokio::test]
async fn the_demo_without_workers_fails_and_names_what_is_missing() {
    let output = demo(&["run", "--without-workers", "--limit", "20s"]).await;
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    let missing = stdout.lines().find(|line| line.contains("not observed: ")).unwrap();
    let (_, missing) = missing.split_once("not observed: ").unwrap();
    let missing: Vec<_> = missing.split(", ").collect();
    assert!(missing.contains(&"ran") && missing.contains(&"succeeded"), "{missing:?}");
    // The schedulers do their part without any worker.
    assert!(!missing.contains(&"fired"), "{missing:?}");
    assert!(stdout.contains("--- scheduler-2"), "no log is shown:\n{stdout}");
}

#[tokio::test]
async fn a_worker_runs_what_a_service_of_each_language_enqueued() {
    let output = timeout(INSTALL_DEADLINE, demo_command(&["clients"]).await.output()).await;
    let output = output.unwrap().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}\n{stdout}", output.status);
    for language in LANGUAGES {
        let has =
            |verb: &str| stdout.lines().any(|line| line.contains(verb) && line.contains(language));
        let is_shown = has("enqueued") && has("succeeded");
        assert!(is_shown || has("not shown"), "{language}:\n{stdout}");
        if !is_shown {
            sexton_tests::untested::report_untested(&format!("make demo-clients for {language}"));
        }
    }
}

#[tokio::test]
async fn an_interrupted_demo_stops_its_programs() {
    let (mut demo, pids) = demo_on_private_servers().await;
    signal(demo.id().unwrap(), Signal::INT);
    let status = timeout(DEADLINE, demo.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(130));
    // Not only soon afterwards: nothing is left when it ends.
    assert_eq!(alive(&pids), Vec::<u32>::new());
}

#[tokio::test]
async fn a_killed_demo_leaves_no_program_behind() {
    let (mut demo, pids) = demo_on_private_servers().await;
    assert_eq!(alive(&pids), pids);
    demo.kill().await.unwrap();
    let deadline = Instant::now() + DEADLINE;
    while !alive(&pids).is_empty() {
        assert!(Instant::now() < deadline, "left behind: {:?}", alive(&pids));
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn up_keeps_the_platform_running_until_down() {
    let servers = servers::shared().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = async |command: &str| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_demo"));
        process
            .args([command, "--state-folder"])
            .arg(folder.path())
            .env("DATABASE_URL", &servers.database_url)
            .env("AMQP_URL", &servers.amqp_url)
            .stdin(Stdio::null());
        let output = timeout(DEADLINE, process.output()).await.unwrap().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command}: {stdout}\n{:?}", output.stderr);
        stdout
    };
    assert!(run("down").await.contains("Nothing is running"));

    // What it prints can be pasted into a shell, which can then talk to the platform.
    let stdout = run("up").await;
    let exports = stdout.lines().filter(|line| line.trim_start().starts_with("export "));
    let script = exports.chain(["sexton --json status"]).collect::<Vec<_>>().join("\n");
    let status = Command::new("sh").args(["-c", &script]).output().await.unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let instances = status["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 4, "{status:#}");
    let pids: Vec<u32> =
        instances.iter().map(|it| u32::try_from(it["pid"].as_u64().unwrap()).unwrap()).collect();
    assert_eq!(alive(&pids), pids);

    // The console's address is printed, and somebody listens there.
    let address_of = |stdout: &str| {
        let line = stdout.lines().find(|line| line.trim().starts_with("http://"));
        line.unwrap_or_else(|| panic!("no address of a console:\n{stdout}")).trim().to_owned()
    };
    let address = address_of(&stdout);
    let host = address.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    tokio::net::TcpStream::connect(host).await.unwrap();

    let again = run("up").await;
    assert_eq!(address_of(&again), address);
    assert!(again.contains("already running"), "{again}");
    let exports_of = |stdout: &str| stdout[stdout.find("export").unwrap()..].to_owned();
    assert_eq!(exports_of(&again), exports_of(&stdout));

    run("down").await;
    assert_eq!(alive(&pids), Vec::<u32>::new());
    assert!(run("down").await.contains("Nothing is running"));
}

/// A demo that has started its programs, and their process ids.
async fn demo_on_private_servers() -> (Child, Vec<u32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    command.arg("run").env_remove("DATABASE_URL").env_remove("AMQP_URL");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut demo = command.spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let started = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("programs are started");
            if line.contains(" started ") {
                break line;
            }
        }
    };
    let started = timeout(DEADLINE, started).await.unwrap();
    let pids = started.split("(process ").skip(1);
    let pids: Vec<u32> =
        pids.map(|rest| rest.split(')').next().unwrap().parse().unwrap()).collect();
    assert_eq!(pids.len(), 5, "{started}");
    // A reader that closes the pipe must not stop the demo.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (demo, pids)
}

/// Those of these processes that run; what waits to be reaped does not.
fn alive(pids: &[u32]) -> Vec<u32> {
    let runs = |pid: &&u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    pids.iter().filter(runs).copied().collect()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Runs the demo on the servers that the tests share.
async fn demo(arguments: &[&str]) -> Output {
    let running = demo_command(arguments).await.output();
    timeout(DEADLINE, running).await.expect("the demo ends by itself").unwrap()
}

async fn demo_command(arguments: &[&str]) -> Command {
    let servers = servers::shared().await.unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    command
        .args(arguments)
        .env("DATABASE_URL", &servers.database_url)
        .env("AMQP_URL", &servers.amqp_url)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}
