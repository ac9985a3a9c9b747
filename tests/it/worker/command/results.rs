//! What a command is given, what it answers, and what of its output is kept.

use serde_json::json;
use sexton_worker::executor::{Outcome, TaskEnd};

use super::fixture::{Scene, command, run, run_task, stdout, task};

fn failure(end: &TaskEnd) -> (&str, &str) {
    match &end.outcome {
        Outcome::Retry { class, message, .. }
        | Outcome::Permanent { class, message }
        | Outcome::Failed { class, message } => (class, message),
        other => panic!("not a failure: {other:?}"),
    }
}

#[tokio::test]
async fn exit_codes_map_to_the_documented_outcomes() {
    let scene = Scene::new();
    let end = run(&scene.shell("echo fine")).await;
    assert_eq!((&end.outcome, end.exit_code), (&Outcome::Succeeded, Some(0)));

    let end = run(&scene.shell("echo busy >&2; exit 75")).await;
    assert!(matches!(end.outcome, Outcome::Retry { .. }), "{end:?}");
    assert_eq!(failure(&end), ("exit_75", "exit code 75: busy"));

    let end = run(&scene.shell("exit 65")).await;
    assert!(matches!(end.outcome, Outcome::Permanent { .. }), "{end:?}");
    assert_eq!(failure(&end), ("exit_65", "exit code 65"));

    let end = run(&scene.shell("exit 3")).await;
    assert!(matches!(end.outcome, Outcome::Failed { .. }), "{end:?}");
    assert_eq!((failure(&end).0, end.exit_code, end.signal), ("exit_3", Some(3), None));

    let end = run(&scene.shell("echo last words; kill -SEGV $$")).await;
    let message = "signal 11: last words".to_owned();
    assert_eq!(end.outcome, Outcome::Signalled { signal: 11, message });
    assert_eq!((end.exit_code, end.signal), (None, Some(11)));
}

#[tokio::test]
async fn a_command_finds_its_params_and_its_variables_but_not_the_workers() {
    let scene = Scene::new();
    let params = json!({"customer": 4891, "name": "Zoë"});
    let end = run_task(&scene.shell("cat; echo; env"), &task(params.clone())).await;
    let lines = stdout(&end);
    assert_eq!(serde_json::from_str::<serde_json::Value>(lines[0]).unwrap(), params);
    let mut variables: Vec<_> = lines.iter().filter(|line| line.starts_with("SEXTON_")).collect();
    variables.sort();
    // Another one for each attempt.
    let result_file = (*variables[6]).to_owned();
    assert!(result_file.starts_with("SEXTON_RESULT_FILE=/"), "{result_file}");
    assert_eq!(
        variables,
        [
            &"SEXTON_ATTEMPT=2",
            &"SEXTON_DEADLINE=2025-12-12T08:01:30Z",
            &"SEXTON_EXECUTION_ID=00000000-0000-0000-0000-000000000007",
            &"SEXTON_EXECUTION_KEY=cron-2025-12-12T08:00:00Z",
            &"SEXTON_IDEMPOTENCY_KEY=billing.invoices:cron-2025-12-12T08:00:00Z",
            &"SEXTON_JOB=billing.invoices",
            &result_file.as_str(),
            &"SEXTON_SCHEDULED_FOR=2025-12-12T08:00:00Z",
            &"SEXTON_TARGET=25",
        ]
    );
    assert!(lines.contains(&"LC_MONETARY=C"));
    for name in ["AMQP_URL=", "GREETING="] {
        assert!(!lines.iter().any(|line| line.starts_with(name)), "{name}");
    }

    let mut without_target = task(json!(null));
    without_target.target = None;
    let end = run_task(&scene.shell("echo ${SEXTON_TARGET-none}"), &without_target).await;
    assert_eq!(stdout(&end), ["none"]);
}

#[tokio::test]
async fn large_params_arrive_whole_and_may_be_left_unread() {
    let scene = Scene::new();
    let large = task(json!("x".repeat(1024 * 1024)));
    let end = run_task(&scene.shell("wc -c"), &large).await;
    assert_eq!(stdout(&end)[0].trim(), "1048578");
    for script in ["exit 0", "exec 0<&-; echo closed", "head -c 10 >/dev/null"] {
        let end = run_task(&scene.shell(script), &large).await;
        assert_eq!(end.outcome, Outcome::Succeeded, "{script}: {end:?}");
    }
}

#[tokio::test]
async fn fifty_megabytes_of_output_are_counted_and_their_head_and_tail_kept() {
    let scene = Scene::new();
    let script = "echo first; yes 0123456789abcde | head -c 50000000; echo last";
    let end = run(&scene.shell(script)).await;
    assert_eq!(end.outcome, Outcome::Succeeded);
    let lines = stdout(&end);
    assert_eq!((lines.first(), lines.last()), (Some(&"first"), Some(&"last")));
    let kept_bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    assert!(kept_bytes <= 64 * 1024, "{kept_bytes}");
    assert_eq!(kept_bytes as u64 + end.output.dropped_bytes, 50_000_000 + 6 + 5);
}

#[tokio::test]
async fn one_endless_line_is_bounded_too() {
    let scene = Scene::new();
    let end = run(&scene.shell("head -c 5000000 /dev/zero >&2")).await;
    let kept_chars: usize = end.output.lines.iter().map(|line| line.text.chars().count()).sum();
    assert_eq!(kept_chars as u64 + end.output.dropped_bytes, 5_000_000);
    assert!(!end.output.lines.iter().any(|line| line.text.contains('\0')));
}

#[tokio::test]
async fn a_line_of_a_hundred_megabytes_is_cut_and_counted() {
    let scene = Scene::new();
    let script = "head -c 100000000 /dev/zero | tr '\\000' x; echo end";
    let end = run(&scene.shell(script)).await;
    let lines = stdout(&end);
    assert!(lines.last().unwrap().ends_with("xend"), "{}", lines.len());
    let kept_bytes: usize = lines.iter().map(|line| line.len()).sum();
    assert_eq!(kept_bytes as u64 + 1 + end.output.dropped_bytes, 100_000_000 + 4);
    assert!(lines.iter().all(|line| line.len() <= 8 * 1024));
}

#[tokio::test]
async fn a_command_that_ends_while_its_children_write_ends_at_once_and_they_with_it() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    // One in the group, one that has become a daemon; both hold the pipes and never stop.
    let script = "mkfifo $1.left
        yes group &
        setsid sh -c 'echo >$1.left; exec yes daemon' sh $1 >&2 &
        read -r _left <$1.left
        echo last words >&2; exit 3";
    let end = run(&scene.shell(script)).await;
    assert_eq!(end.exit_code, Some(3));
    signs.all_gone().await;
    let kept_bytes: usize = end.output.lines.iter().map(|line| line.text.len() + 1).sum();
    assert!(kept_bytes <= 64 * 1024, "{kept_bytes}");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let missing = command("/no/such/program", Vec::new(), std::time::Duration::ZERO);
    match run(&missing).await.outcome {
        Outcome::CouldNotStart { message, retryable: true } => {
            assert!(message.contains("/no/such/program"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let mut impossible = task(json!({}));
    impossible.target = Some("a\0b".to_owned());
    let end = run_task(&Scene::new().shell("exit 0"), &impossible).await;
    assert!(matches!(end.outcome, Outcome::CouldNotStart { retryable: false, .. }), "{end:?}");
}

#[tokio::test]
async fn a_finished_command_leaves_no_process_behind() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    // One stays in the group, one has left it for a session of its own; both hold all pipes.
    let script = "echo $PPID >&3
        mkfifo $1.left
        sleep 1000 &
        setsid sh -c 'echo >$1.left; sleep 1000; :' sh $1 &
        read -r _left <$1.left
        echo done";
    let executor = std::sync::Arc::new(scene.shell(script));
    let running = std::sync::Arc::clone(&executor);
    let running = tokio::spawn(async move { run(&running).await });
    let guard = signs.line().await;
    let end = running.await.unwrap();
    assert_eq!(end.outcome, Outcome::Succeeded);
    assert_eq!(stdout(&end), ["done"]);
    signs.all_gone().await;
    // The guard waits for its next task, without a child.
    let children = std::fs::read_to_string(format!("/proc/{guard}/task/{guard}/children"));
    assert_eq!(children.unwrap(), "");
    drop(executor);
}
