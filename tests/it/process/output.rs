//! The output of tasks, from their pipes to the reader: live, masked, bounded.

use sexton_tests::platform::{Platform, Program};

use super::{FINAL_TIMEOUT, by_hand, count, until};
use crate::cli::following_command::FollowingCommand;

/// A platform whose only task type `work` is this shell script.
async fn platform(script: &str, worker: &[(&str, &str)]) -> (Platform, Program) {
    let mut platform = Platform::new().await.unwrap();
    let file = platform.folder().join("task.sh");
    std::fs::write(&file, script).unwrap();
    platform.catalogue(&format!(
        "[tasks.work]\ncommand = [\"/bin/sh\", \"{}\"]\ngrace = \"1s\"\n",
        file.display()
    ));
    platform.apply(&by_hand("a.b", "work", "retry = { delay = \"0s\" }")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let worker = platform.start_worker("w1", worker).unwrap();
    (platform, worker)
}

async fn trigger(platform: &Platform) -> String {
    let answer = platform.sexton_json(&["jobs", "trigger", "a.b"]).await;
    answer["id"].as_str().unwrap().to_owned()
}

fn touch(platform: &Platform, name: &str) {
    std::fs::write(platform.folder().join(name), "").unwrap();
}

#[tokio::test]
async fn task_output_is_followed_and_masked_while_the_task_runs() {
    let script = "echo begun with token-4711 >&2
        echo '::progress 40 token=token-4712'
        while ! test -e go.$SEXTON_ATTEMPT; do sleep 0.05; done
        echo refused: token-4713
        test $SEXTON_ATTEMPT = 2";
    let (platform, _worker) = platform(script, &[("WORKER_MASK", "token-[0-9]+")]).await;
    let id = trigger(&platform).await;
    // The worker records it before the attempt has ended.
    let begun = async || {
        let stdout = platform.sexton(&["executions", "logs", &id]).await.stdout;
        stdout.contains("err begun with ***").then_some(())
    };
    platform.eventually("the first line is shown", FINAL_TIMEOUT, begun).await;
    assert_eq!(
        count(&platform, "sexton.executions WHERE state = 'running' AND attempt = 1").await,
        1
    );
    until(&platform, "sexton.all_attempts WHERE (progress ->> 'percent')::float8 = 40", 1).await;

    // Its first word shows that it follows from the first attempt on.
    let mut follower = FollowingCommand::start(
        platform.database_url(),
        &["executions", "logs", "-f", id.as_str()],
    );
    let mut stdout = vec![follower.line().await];
    touch(&platform, "go.1");
    until(&platform, "sexton.all_attempts WHERE number = 2 AND progress IS NOT NULL", 1).await;
    touch(&platform, "go.2");
    while !stdout.last().unwrap().starts_with("— the execution is ") {
        stdout.push(follower.line().await);
    }
    assert_eq!(follower.end().await, 0);
    let stdout: Vec<&str> = stdout.iter().map(|line| line.get(13..).unwrap_or(line)).collect();
    let attempt = ["err begun with ***", "out refused: ***"];
    assert_eq!(stdout.iter().filter(|line| attempt.contains(line)).count(), 4, "{stdout:?}");
    assert!(stdout.last().unwrap().ends_with("succeeded —"), "{stdout:?}");

    let rows = "SELECT coalesce(string_agg(t, ' '), '') FROM (
        SELECT content AS t FROM sexton.attempt_output
        UNION ALL SELECT concat(progress, error_message, output) FROM sexton.all_attempts
        UNION ALL SELECT error_message FROM sexton.executions) all_texts";
    let stored: String = sqlx::query_scalar(rows).fetch_one(platform.store().pool()).await.unwrap();
    assert!(stored.contains("refused: ***") && !stored.contains("token-"), "{stored}");
}

#[tokio::test]
async fn a_task_keeps_writing_while_the_database_delays_its_output() {
    let script = "echo first
        while ! test -e go; do sleep 0.05; done
        yes 0123456789abcde | head -c 20000000
        echo last
        touch written";
    let (platform, _worker) = platform(script, &[]).await;
    let id = trigger(&platform).await;
    until(&platform, "sexton.attempt_output", 1).await;
    let mut other = platform.store().pool().begin().await.unwrap();
    let lock = "LOCK TABLE sexton.attempt_output IN ACCESS EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *other).await.unwrap();
    touch(&platform, "go");
    let written = async || platform.folder().join("written").exists().then_some(());
    platform.eventually("the task wrote all", FINAL_TIMEOUT, written).await;
    other.rollback().await.unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", 1).await;
    let output = &platform.sexton_json(&["executions", "logs", &id]).await["output"];
    let lines = output["lines"].as_array().unwrap();
    assert_eq!(
        (&lines[0]["text"], &lines[lines.len() - 1]["text"]),
        (&"first".into(), &"last".into())
    );
    let kept_bytes: u64 =
        lines.iter().map(|line| line["text"].as_str().unwrap().len() as u64 + 1).sum();
    assert_eq!(kept_bytes + output["dropped_bytes"].as_u64().unwrap(), 20_000_000 + 6 + 5);
    assert!(kept_bytes <= 96 * 1024, "{kept_bytes}");
}

#[tokio::test]
async fn binary_output_is_stored_and_shown_escaped() {
    let script = "head -c 200000 /dev/urandom; printf '\\000\\033[2J' >&2; sleep 1.5; exit 0";
    let (platform, _worker) = platform(script, &[]).await;
    let id = trigger(&platform).await;
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", 1).await;
    for args in [&["executions", "logs", &id][..], &["executions", "logs", "-f", &id]] {
        let output = platform.sexton(args).await;
        assert!(output.status.success(), "{output}");
        assert!(!output.stdout.chars().any(|c| c != '\n' && c.is_control()), "{args:?}");
        assert!(output.stdout.contains("err \u{fffd}\\u{1b}[2J"), "{args:?}");
    }
}

#[tokio::test]
async fn a_worker_with_sixty_four_verbose_tasks_uses_little_memory() {
    const SLOTS: usize = 64;
    const MAX_KIB: u64 = 20 * 1024;
    // Short lines and an endless one, more than is kept of either.
    let script = "yes short | head -c 300000 >&2
        head -c 300000 /dev/zero | tr '\\000' x
        touch written.$SEXTON_EXECUTION_ID
        while ! test -e go; do sleep 0.3; done";
    let (platform, mut worker) = platform(script, &[("WORKER_SLOTS", "64")]).await;
    worker.ready().await;
    let idle = resident_kib(&worker);
    // Nothing can be stored meanwhile: all that is kept is in memory.
    let mut other = platform.store().pool().begin().await.unwrap();
    let lock = "LOCK TABLE sexton.attempt_output IN ACCESS EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *other).await.unwrap();
    for _ in 0..SLOTS {
        trigger(&platform).await;
    }
    let written = async || {
        let names = std::fs::read_dir(platform.folder()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        (names.filter(|name| name.starts_with("written.")).count() == SLOTS).then_some(())
    };
    platform.eventually("all wrote all", FINAL_TIMEOUT, written).await;
    let more = resident_kib(&worker).saturating_sub(idle);
    other.rollback().await.unwrap();
    touch(&platform, "go");
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", SLOTS as i64)
        .await;
    assert!(more <= MAX_KIB, "{more} KiB more than idle");
}

fn resident_kib(program: &Program) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
