//! The limits of a command, and the outcome when it exceeds one.

use std::time::Duration;

use sexton_worker::executor::Outcome;
use sexton_worker::executor::command::{CommandTask, TaskLimits};

use super::fixture::{Scene, executor, run, script, stdout};

const MIB: u64 = 1 << 20;

#[tokio::test]
async fn a_command_that_uses_more_memory_than_it_may_is_killed_with_all_that_it_started() {
    // By itself, and by a descendant in another session.
    for eats in [
        "dd if=/dev/zero of=/dev/null bs=200M",
        "setsid dd if=/dev/zero of=/dev/null bs=200M & wait",
    ] {
        let scene = Scene::new();
        let mut signs = scene.signs();
        let limits = TaskLimits { memory: Some(64 * MIB), ..TaskLimits::default() };
        let end = run(&executor(CommandTask { limits, ..scene.task(eats) })).await;
        let message = "it used more than 64MiB of memory".to_owned();
        assert_eq!((end.outcome, end.signal), (Outcome::OutOfMemory { message }, Some(9)));
        signs.all_gone().await;
    }
}

#[tokio::test]
async fn a_command_within_its_limits_is_left_alone() {
    let limits = TaskLimits {
        memory: Some(64 * MIB),
        cpu_time: Some(Duration::from_mins(1)),
        open_files: Some(64),
    };
    // Long enough for several samples.
    let task = CommandTask { limits, ..script("sleep 0.5; ulimit -Sn; ulimit -St") };
    let end = run(&executor(task)).await;
    assert_eq!((&end.outcome, stdout(&end)), (&Outcome::Succeeded, vec!["64", "60"]));
}

#[tokio::test]
async fn a_command_that_uses_up_its_processor_time_is_told_from_other_signals() {
    let limits = TaskLimits { cpu_time: Some(Duration::from_secs(1)), ..TaskLimits::default() };
    let end = run(&executor(CommandTask { limits, ..script("while :; do :; done") })).await;
    let Outcome::Failed { class, message } = &end.outcome else { panic!("{end:?}") };
    assert_eq!((class.as_str(), end.signal), ("cpu_time", Some(24)));
    assert_eq!(message, "a process used up its processor time, 1s");
    // A shell in between reports it in its exit code.
    let task = CommandTask { limits, ..script("sh -c 'while :; do :; done'; exit $?") };
    let end = run(&executor(task)).await;
    let Outcome::Failed { class, .. } = &end.outcome else { panic!("{end:?}") };
    assert_eq!((class.as_str(), end.exit_code), ("cpu_time", Some(152)));
}

#[tokio::test]
async fn a_command_cannot_raise_its_limits() {
    let limits = TaskLimits { open_files: Some(64), ..TaskLimits::default() };
    // The hard limit follows just after the start.
    let tries = "until [ $(ulimit -Hn) -eq 64 ]; do :; done; ulimit -n 65 2>/dev/null || echo held";
    let end = run(&executor(CommandTask { limits, ..script(tries) })).await;
    assert_eq!(stdout(&end), ["held"], "{end:?}");
}

#[tokio::test]
async fn a_command_that_opens_more_files_than_it_may_is_refused_the_next() {
    // All of them at the same time.
    let opens = || script("tee $(yes /dev/null | head -n 64) < /dev/null");
    let limits = TaskLimits { open_files: Some(32), ..TaskLimits::default() };
    let end = run(&executor(CommandTask { limits, ..opens() })).await;
    let Outcome::Failed { message, .. } = &end.outcome else { panic!("{end:?}") };
    assert!(message.contains("Too many open files"), "{message}");
    let end = run(&executor(opens())).await;
    assert_eq!(end.outcome, Outcome::Succeeded, "{end:?}");
}
