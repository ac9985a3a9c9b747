//! `sexton completions`: bash, zsh and fish themselves are asked what they offer.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Instant;

use sexton_model::id::ProcessId;
use sexton_store::instances::{InstanceRegistration, heartbeat};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::{Console, DEADLINE, JOBS, sexton};

/// The shells, and the endings of their scripts under `tests/clients/shells`.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/shells")
}

/// Installs missing shells, once for all tests.
async fn install_shells() {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    INSTALLED
        .get_or_init(|| async {
            let status = Command::new(scripts().join("install.sh")).status().await.unwrap();
            assert!(status.success(), "the shells cannot be installed");
        })
        .await;
}

/// Asks a shell what it offers after `words`, the last of which may be incomplete. `DATABASE_URL` is `url`.
async fn ask(shell: &str, words: &[&str], url: Option<&str>) -> Output {
    install_shells().await;
    let home = tempfile::tempdir().unwrap();
    let path = format!("{}:/usr/bin:/bin", sexton().parent().unwrap().display());
    let mut command = Command::new(shell);
    match shell {
        "bash" => command.args(["--norc", "--noprofile"]),
        "zsh" => command.arg("-f"),
        _ => command.arg("--no-config"),
    };
    command.arg(scripts().join(format!("ask.{shell}"))).args(words).kill_on_drop(true);
    command.env_clear().env("PATH", path).env("HOME", home.path()).env("TERM", "dumb");
    command.envs(url.map(|url| ("DATABASE_URL", url))).env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::null());
    tokio::time::timeout(DEADLINE, command.output()).await.unwrap().unwrap()
}

/// The candidates of a shell, without descriptions.
async fn offered(shell: &str, words: &[&str], url: Option<&str>) -> Vec<String> {
    let output = ask(shell, words, url).await;
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stderr.is_empty(), "{shell}: {stdout}{stderr}");
    let candidates = stdout.lines().map(|line| line.split('\t').next().unwrap_or_default().trim());
    candidates.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The candidates of a shell, sorted; asks again while it offers none, since a completion gives the database half a second, which a
/// busy machine exceeds.
async fn offered_at_last(shell: &str, words: &[&str], url: Option<&str>) -> Vec<String> {
    let end = Instant::now() + DEADLINE;
    loop {
        let mut found = offered(shell, words, url).await;
        if !found.is_empty() || Instant::now() >= end {
            found.sort_unstable();
            return found;
        }
    }
}

#[tokio::test]
async fn every_shell_completes_commands_job_names_and_ids() {
    let console = Console::with_jobs().await;
    let failed = console.failed().await.to_string();
    let pending = console.trigger("shop.mail").await.to_string();
    let discarded = console.failed().await.to_string();
    console.run(&["failed", "discard", &discarded, "--reason", "known", "--yes"]).await.expect(0);
    let worker = InstanceRegistration {
        id: ProcessId::new(Uuid::now_v7()),
        kind: "worker",
        name: "mailer-1".to_owned(),
        pid: 1,
        version: "0",
        tz_version: None,
        pools: vec!["mail".to_owned()],
        slots: 1,
        pool_slots: None,
        instance_lock: None,
        db_connections: 1,
    };
    heartbeat(console.store(), &worker, true, None).await.unwrap();
    let lock = "INSERT INTO sexton.lock_rows VALUES ('tokenCleanup', now(), now(), 'app1')";
    sqlx::query(lock).execute(console.store().pool()).await.unwrap();
    let row = sexton_store::executions::find(console.store(), failed.parse().unwrap()).await;
    sexton_store::failures::aggregate(console.store(), 1_000, None).await.unwrap();
    let group = row.unwrap().unwrap().fingerprint.unwrap();
    let url = Some(console.db.url());
    let beginning = &failed[..9];
    for shell in SHELLS {
        for (words, expected) in [
            (&["sexton", "wor"][..], vec!["workers"]),
            (&["sexton", "jobs", "trigger", "shop."], vec!["shop.charge", "shop.mail"]),
            (&["sexton", "jobs", "show", "bil"], vec!["billing.invoices"]),
            (&["sexton", "executions", "list", "--job", "shop.m"], vec!["shop.mail"]),
            (&["sexton", "executions", "show", &pending[..35]], vec![&*pending]),
            (&["sexton", "failed", "requeue", beginning], vec![&*failed]),
            (&["sexton", "failed", "restore", &discarded[..9]], vec![&*discarded]),
            (&["sexton", "groups", "show", &group[..3]], vec![&*group]),
            (&["sexton", "failed", "list", "--pool", "ma"], vec!["mail"]),
            (&["sexton", "workers", "show", "mail"], vec!["mailer-1"]),
            (&["sexton", "locks", "break", "tok"], vec!["tokenCleanup"]),
            (&["sexton", "jobs", "show", "nothing"], vec![]),
        ] {
            let found = if expected.is_empty() {
                offered(shell, words, url).await
            } else {
                offered_at_last(shell, words, url).await
            };
            assert_eq!(found, expected, "{shell}: {words:?}");
        }
    }
}

#[tokio::test]
async fn a_shell_offers_a_hundred_candidates_at_most() {
    let console = Console::new().await;
    let jobs: Vec<String> =
        (0..120).map(|n| format!("[[job]]\nname = \"many.j{n:03}\"\ntask = \"work\"\n")).collect();
    let file = console.file("jobs.toml", &jobs.concat());
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let url = Some(console.db.url());
    for shell in SHELLS {
        let found = offered_at_last(shell, &["sexton", "jobs", "show", "many."], url).await;
        assert_eq!((found.len(), &*found[99]), (100, "many.j099"), "{shell}");
    }
}

#[tokio::test]
async fn without_an_answer_of_the_database_a_shell_offers_nothing_and_says_nothing() {
    let console = Console::new().await;
    console.file("jobs.toml", JOBS);
    // It takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("postgres://u:p@{}/d", silent.local_addr().unwrap());
    for shell in SHELLS {
        for url in [None, Some(&*silent), Some("postgres://u:p@127.0.0.1:1/d"), Some("nonsense")] {
            let found = offered(shell, &["sexton", "jobs", "show", "shop."], url).await;
            assert!(found.is_empty(), "{shell} {url:?}: {found:?}");
            let found = offered(shell, &["sexton", "jobs", "sh"], url).await;
            assert_eq!(found, ["show"], "{shell} {url:?}");
        }
    }
}

#[tokio::test]
async fn a_script_is_printed_for_each_shell_and_as_json() {
    let console = Console::new().await;
    for shell in SHELLS {
        let script = console.run(&["completions", shell]).await.expect(0).stdout;
        assert!(script.contains("SEXTON_COMPLETE"), "{script}");
        let document = console.json(&["completions", shell]).await;
        assert_eq!(document["script"].as_str().unwrap().trim_end(), script.trim_end());
    }
    console.run(&["completions", "csh"]).await.expect(2);
}
