//! The result file of a command, and its folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use sexton_worker::executor::command::{CommandTask, TaskUser};
use sexton_worker::executor::{Executor, Outcome, StopReason, TaskEnd};
use sexton_worker::guard::GuardProgram;
use tokio::time::timeout;

use super::fixture::{
    DEADLINE, Scene, executor, executor_under, long_lease, run, script, stdout, task,
};

/// Runs a script that first prints the path of its result file.
async fn handed_back(rest: &str) -> TaskEnd {
    let end = run(&executor(script(&format!("echo $SEXTON_RESULT_FILE; {rest}")))).await;
    let folder = Path::new(stdout(&end)[0]).parent().unwrap().to_owned();
    assert!(!folder.exists(), "{} is left", folder.display());
    end
}

fn refused(end: &TaskEnd) -> &str {
    assert_eq!((&end.result, end.exit_code), (&None, Some(0)));
    match &end.outcome {
        Outcome::Permanent { class, .. } => class,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn the_result_file_of_a_command_is_its_result() {
    let end = handed_back("echo '{\"records\": 1200}' >$SEXTON_RESULT_FILE").await;
    assert_eq!((end.outcome, end.result), (Outcome::Succeeded, Some(json!({"records": 1200}))));
    let end = run(&executor(script("true"))).await;
    assert_eq!((end.outcome, end.result), (Outcome::Succeeded, None));
    for nothing in [": >$SEXTON_RESULT_FILE", "mkdir -p $SEXTON_RESULT_FILE.d/deep"] {
        let end = handed_back(nothing).await;
        assert_eq!((end.outcome, end.result), (Outcome::Succeeded, None), "{nothing}");
    }
    let end = handed_back("echo 7 >$SEXTON_RESULT_FILE; exit 3").await;
    assert_eq!((end.exit_code, end.result), (Some(3), None));
}

#[tokio::test]
async fn a_result_at_the_limit_is_accepted_and_a_larger_one_fails_permanently() {
    let write = |bytes: usize| {
        format!(
            "(printf '\"'; head -c {bytes} /dev/zero | tr '\\0' x; printf '\"') >$SEXTON_RESULT_FILE"
        )
    };
    let end = handed_back(&write(64 * 1024 - 2)).await;
    assert_eq!(end.outcome, Outcome::Succeeded);
    assert_eq!(end.result.as_ref().and_then(Value::as_str).map(str::len), Some(64 * 1024 - 2));
    assert_eq!(refused(&handed_back(&write(64 * 1024 - 1)).await), "result_too_large");
}

#[tokio::test]
async fn an_unreadable_result_fails_the_attempt_permanently() {
    for wrong in [
        "echo '{\"records\": ' >$SEXTON_RESULT_FILE",
        "printf '\"\\377\"' >$SEXTON_RESULT_FILE",
        "echo '\"\\u0000\"' >$SEXTON_RESULT_FILE",
        "echo 123456789012345678901 >$SEXTON_RESULT_FILE",
        "mkdir $SEXTON_RESULT_FILE",
        "mkfifo $SEXTON_RESULT_FILE",
        "echo 1 >$SEXTON_RESULT_FILE.2; ln -s $SEXTON_RESULT_FILE.2 $SEXTON_RESULT_FILE",
    ] {
        assert_eq!(refused(&handed_back(wrong).await), "result_invalid", "{wrong}");
    }
}

#[tokio::test]
async fn stopping_a_command_removes_its_folder() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    let executor = executor(scene.task("echo $SEXTON_RESULT_FILE >&3; sleep 1000"));
    let (supervisor, control) = long_lease();
    let task = task(json!({}));
    let running = tokio::spawn(async move { executor.run(&task, control).await });
    let file = signs.line().await;
    supervisor.stop_at_once(StopReason::Cancelled);
    let end = timeout(DEADLINE, running).await.unwrap().unwrap();
    assert_eq!(end.outcome, Outcome::Cancelled);
    assert!(!Path::new(&file).parent().unwrap().exists());
}

#[tokio::test]
async fn a_result_is_read_before_a_slow_guard_takes_the_worker_for_dead() {
    // A guard that gets no processor time between its last message and its end.
    let slow = "#!/bin/sh
        read -r start
        setup=$(dd bs=65536 count=1 2>/dev/null | tr '\\0' '\\n')
        SEXTON_RESULT_FILE=$(echo \"$setup\" | sed -n 's/^SEXTON_RESULT_FILE=//p')
        echo 7 >$SEXTON_RESULT_FILE
        printf 'started 2\\nexited 0 no retires\\n' >&0
        cat >/dev/null <&0
        rm -r ${SEXTON_RESULT_FILE%/*}";
    let folder = tempfile::tempdir().unwrap();
    let guard = folder.path().join("guard");
    fs::write(&guard, slow).unwrap();
    fs::set_permissions(&guard, fs::Permissions::from_mode(0o700)).unwrap();
    let end = run(&executor_under(GuardProgram::from_path(guard), script("no matter what"))).await;
    assert_eq!((end.outcome, end.result), (Outcome::Succeeded, Some(json!(7))));
}

#[tokio::test]
async fn a_task_of_another_user_cannot_return_a_file_that_only_the_worker_can_read() {
    if !rustix::process::geteuid().is_root() {
        sexton_tests::untested::report_untested("only root can run a task as another user");
        return;
    }
    let secret = tempfile::tempdir().unwrap();
    fs::write(secret.path().join("result.json"), "\"of the worker\"").unwrap();
    let instead = "d=${SEXTON_RESULT_FILE%/*}; echo $d; mv $d $d.moved; ln -s";
    let user = Some(TaskUser { uid: 65534, gid: 65534, account: None });
    let task = script(&format!("{instead} {} $d", secret.path().display()));
    let end = run(&executor(CommandTask { user, ..task })).await;
    assert_eq!((&end.outcome, &end.result), (&Outcome::Succeeded, &None));
    let folder = stdout(&end)[0];
    fs::remove_file(folder).unwrap();
    fs::remove_dir(format!("{folder}.moved")).unwrap();
}
