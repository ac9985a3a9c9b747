//! Where a command runs, as whom, and with what in its environment.

use std::fs;
use std::time::Duration;

use serde_json::json;
use sexton_outbound::secret::{SecretRef, Value};
use sexton_peers::HangingDisk;
use sexton_worker::executor::command::{CommandTask, TaskUser};
use sexton_worker::executor::{Executor, Outcome, StopReason, TaskEnd};
use tokio::time::timeout;

use super::fixture::{DEADLINE, executor, long_lease, run, run_task, script, stdout, task};

fn failure(end: &TaskEnd) -> (&str, &str) {
    match &end.outcome {
        Outcome::Failed { class, message } => (class, message),
        Outcome::CouldNotStart { message, retryable: true } => ("could_not_start", message),
        other => panic!("not a failure: {other:?}"),
    }
}

#[tokio::test]
async fn a_command_runs_in_its_directory_and_waits_for_one_that_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let place = fs::canonicalize(folder.path()).unwrap();
    let task = CommandTask { directory: Some(place.clone()), ..script("pwd") };
    assert_eq!(stdout(&run(&executor(task.clone())).await), [place.to_str().unwrap()]);
    drop(folder);
    let end = run(&executor(task)).await;
    let message = format!("the directory {} is not there", place.display());
    assert_eq!(failure(&end), ("could_not_start", message.as_str()));
}

#[tokio::test]
async fn a_command_reads_the_catalogue_s_stdin_in_place_of_its_params() {
    for (stdin, read) in [(None, "{}"), (Some(""), ""), (Some("Hello\nthere\n"), "Hello there")] {
        let task = CommandTask { stdin: stdin.map(str::to_owned), ..script("echo [$(cat)]") };
        assert_eq!(stdout(&run(&executor(task)).await), [format!("[{read}]")], "{stdin:?}");
    }
}

#[tokio::test]
async fn a_command_gets_the_variables_that_the_catalogue_passes_and_sets() {
    let mut task = script("echo $GREETING/$LC_MONETARY/$TOKEN/$PLAIN/$AMQP_URL");
    task.environment.inherit = vec!["GREETING".to_owned(), "AMQP_URL".to_owned()];
    task.environment.set = vec![
        ("TOKEN".to_owned(), Value::Secret(SecretRef::Env("GREETING".to_owned()))),
        ("PLAIN".to_owned(), Value::Plain("as it is".to_owned())),
    ];
    let end = run(&executor(task)).await;
    // The value of the secret is masked wherever it comes from.
    assert_eq!(stdout(&end), ["***//***/as it is/"]);
}

#[tokio::test]
async fn a_secret_is_read_anew_for_each_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let mut task = script("printf %s \"$TOKEN\" | wc -c");
    let token = Value::Secret(SecretRef::File(path.clone()));
    task.environment.set = vec![("TOKEN".to_owned(), token)];
    let executor = executor(task);
    let end = run(&executor).await;
    let (class, message) = failure(&end);
    assert_eq!(class, "secret_missing");
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    for (secret, length) in [("three\n", "5"), ("seventeen", "9")] {
        fs::write(&path, secret).unwrap();
        assert_eq!(stdout(&run(&executor).await)[0].trim(), length);
    }
}

#[tokio::test]
async fn a_command_runs_as_another_user_with_that_ones_rights_alone() {
    if !rustix::process::geteuid().is_root() {
        sexton_tests::untested::report_untested("only root can run a task as another user");
        return;
    }
    let account = Some(("nobody".to_owned(), "/nonexistent".to_owned()));
    let user = Some(TaskUser { uid: 65534, gid: 65534, account });
    let commands =
        "id -u; id -G; echo $HOME $USER; echo 7 >$SEXTON_RESULT_FILE; : >/root/forbidden";
    let end = run(&executor(CommandTask { user, ..script(commands) })).await;
    assert_eq!(stdout(&end), ["65534", "65534", "/nonexistent nobody"]);
    assert_ne!(end.exit_code, Some(0), "it could write where only root can");
    let account = None;
    let user = Some(TaskUser { uid: 65534, gid: 65534, account });
    let commands = "echo 7 >$SEXTON_RESULT_FILE; echo $HOME/$USER; echo err >/dev/stderr";
    let end = run(&executor(CommandTask { user, ..script(commands) })).await;
    assert_eq!(stdout(&end), ["//"]);
    assert_eq!((end.outcome, end.output.lines.len()), (Outcome::Succeeded, 2));
    assert_eq!(end.result, Some(json!(7)));
}

#[tokio::test]
async fn a_command_whose_secret_cannot_be_read_for_now_is_stopped_as_any_other() {
    let Some(disk) = HangingDisk::mount() else { return };
    let mut command = script("echo started");
    let secret = Value::Secret(SecretRef::File(disk.file()));
    command.environment.set = vec![("TOKEN".to_owned(), secret)];
    let executor = executor(command);
    let mut short = task(json!({}));
    short.timeout = Duration::from_millis(100);
    assert_eq!(run_task(&executor, &short).await.outcome, Outcome::TimedOut);
    let (supervisor, control) = long_lease();
    supervisor.stop(StopReason::Cancelled);
    let task = task(json!({}));
    let end = timeout(DEADLINE, executor.run(&task, control)).await.unwrap();
    assert_eq!(end.outcome, Outcome::Cancelled);
}
