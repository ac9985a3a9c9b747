//! The operators' console: each command, dead between what it did and its answer.

use std::os::unix::process::ExitStatusExt as _;

use sexton_tests::platform::CommandOutput;

use super::plan::SELDOM;
use super::{JOB, Scene, count};

const PARKED: &str = "state = 'failed' AND ticket_published_at IS NOT NULL";
const DONE: &str = "state = 'succeeded' AND attempt = 1";
const NOTHING_DONE: Option<i32> = Some(4);
const HOLD: &str = "INSERT INTO sexton.holds (reason, last_seen, noticed_at, noticed_by)
     VALUES ('forward', now() - interval '2 days', now(), 'test:1')";
const SET_ASIDE: &str =
    "INSERT INTO sexton.held_firings (job_id, first_firing, last_firing, count, held_at)
     SELECT id, '2024-02-29T00:00:00Z', '2024-02-29T00:00:00Z', 1, '2024-02-29T00:05:00Z' FROM sexton.jobs
     WHERE schedule_kind = 'cron'";

const APPROVE: [&str; 4] = ["approvals", "approve", "1", "--yes"];
/// As if another person had requested it.
const BY_ANOTHER: &str = "UPDATE sexton.approval_requests SET requested_by_names = '{somebody}'";
/// As two minutes do.
const LAPSED: &str =
    "UPDATE sexton.approval_requests SET claimed_at = claimed_at - interval '2 minutes'";

#[tokio::test]
async fn console_triggered() {
    let scene = Scene::plain().await;
    let command = ["jobs", "trigger", JOB, "--key", "struck"];
    scene.console_dies("console.triggered", &command).await;
    scene.holds("state = 'pending' AND ticket_published_at IS NULL", 1).await;
    // Who heard nothing asks again: the same key is the same execution.
    let again = scene.command(&command).await;
    assert!(again.status.success() && again.stdout.contains("used already"), "{again}");
    scene.ends(scene.successors(), "console.triggered", DONE, [1, 1]).await;
    scene.holds("true", 1).await;
}

#[tokio::test]
async fn console_caught_up() {
    let scene = Scene::new(SELDOM, ":").await;
    scene.sql(HOLD).await;
    assert_eq!(scene.sql(SET_ASIDE).await, 1);
    let command = ["jobs", "catch-up", "--release", "--yes"];
    scene.console_dies("console.caught_up", &command).await;
    scene.holds("state = 'pending' AND ticket_published_at IS NULL", 1).await;
    let again = scene.command(&command).await;
    assert_eq!(again.status.code(), NOTHING_DONE, "{again}");
    scene.ends(scene.successors(), "console.caught_up", DONE, [1, 1]).await;
    scene.holds("true", 1).await;
}

#[tokio::test]
async fn console_requeued() {
    let scene = Scene::plain().await;
    let ids = scene.parked(2).await;
    let command = ["failed", "requeue", &ids[0], &ids[1], "--yes"];
    scene.console_dies("console.requeued", &command).await;
    scene.holds("state = 'pending'", 1).await;
    scene.holds("state = 'failed'", 1).await;
    let again = scene.command(&command).await;
    assert_eq!(again.status.code(), NOTHING_DONE, "one was requeued before: {again}");
    scene.ends(scene.successors(), "console.requeued", DONE, [1, 1]).await;
    assert_eq!(scene.action_count("requeue").await, 2);
}

#[tokio::test]
async fn console_edited() {
    let scene = Scene::plain().await;
    let ids = scene.parked(1).await;
    let params = r#"{"customer": 7}"#;
    let command = ["failed", "edit", &*ids[0], "--params", params, "--reason", "typo", "--yes"];
    let command = [&["--json"], &command[..]].concat();
    scene.console_dies("console.edited", &command).await;
    scene.holds("state = 'pending' AND params ->> 'customer' = '7'", 1).await;
    assert_eq!(scene.command(&command).await.status.code(), NOTHING_DONE);
    scene.ends(scene.successors(), "console.edited", DONE, [1, 1]).await;
    assert_eq!((scene.action_count("edit").await, scene.action_count("requeue").await), (1, 1));
}

#[tokio::test]
async fn console_discarded() {
    let scene = Scene::plain().await;
    let ids = scene.parked(2).await;
    let command = ["failed", "discard", &ids[0], &ids[1], "--yes", "--reason", "in vain"];
    scene.console_dies("console.discarded", &command).await;
    scene.holds("state = 'discarded'", 1).await;
    scene.holds("state = 'failed'", 1).await;
    let again = scene.command(&command).await;
    assert_eq!(again.status.code(), NOTHING_DONE, "one was discarded before: {again}");
    let successors = scene.successors();
    scene.waits(scene.wire.failed(), 0).await;
    scene.ends(successors, "console.discarded", "state = 'discarded'", [0, 0]).await;
    assert_eq!(scene.action_count("discard").await, 2);
}

/// A discard that waits for an approval, and was requested by somebody else.
async fn discard_of_another_waits() -> Scene {
    let scene = Scene::plain().await;
    let ids = scene.parked(1).await;
    assert!(scene.command(&["approvals", "rules", "set", "all"]).await.status.success());
    let discard = ["failed", "discard", &*ids[0], "--yes", "--reason", "in vain"];
    assert_eq!(scene.command(&discard).await.status.code(), Some(11));
    scene.sql(BY_ANOTHER).await;
    scene
}

#[tokio::test]
async fn console_approved() {
    let scene = discard_of_another_waits().await;
    scene.console_dies("console.approved", &APPROVE).await;
    scene.holds("state = 'failed'", 1).await;
    let again = scene.command(&APPROVE).await;
    assert!(again.status.success() && again.stdout.contains("is carried out"), "{again}");
    assert_eq!(scene.command(&APPROVE).await.status.code(), NOTHING_DONE);
    let successors = scene.successors();
    scene.waits(scene.wire.failed(), 0).await;
    scene.ends(successors, "console.approved", "state = 'discarded'", [0, 0]).await;
    assert_eq!(scene.action_count("discard").await, 1);
}

#[tokio::test]
async fn console_claimed() {
    let scene = discard_of_another_waits().await;
    scene.console_dies("console.claimed", &APPROVE).await;
    // The process may still be at it.
    let waits = scene.command(&APPROVE).await;
    assert!(waits.status.success() && waits.stdout.contains("not carried out yet"), "{waits}");
    scene.holds("state = 'failed'", 1).await;
    scene.sql(LAPSED).await;
    let again = scene.command(&APPROVE).await;
    assert!(again.status.success() && again.stdout.contains("is carried out"), "{again}");
    let successors = scene.successors();
    scene.waits(scene.wire.failed(), 0).await;
    scene.ends(successors, "console.claimed", "state = 'discarded'", [0, 0]).await;
    assert_eq!(scene.action_count("discard").await, 1);
}

#[tokio::test]
async fn console_backfill_done() {
    let scene = Scene::plain().await;
    let file = scene.platform.folder().join("seldom.toml");
    let job =
        super::by_hand("a.seldom", "work", "every = \"24h\"\nmisfire = { policy = \"skip\" }");
    std::fs::write(&file, job).unwrap();
    assert!(scene.command(&["jobs", "apply", "-f", file.to_str().unwrap()]).await.status.success());
    assert!(scene.command(&["jobs", "pause", "a.seldom", "--reason", "x"]).await.status.success());
    let rule = ["approvals", "rules", "set", "all", "--above", "1"];
    assert!(scene.command(&rule).await.status.success());
    let backfill = ["jobs", "backfill", "a.seldom", "--since", "2d", "--yes"];
    assert_eq!(scene.command(&backfill).await.status.code(), Some(11));
    scene.sql(BY_ANOTHER).await;
    let command = ["approvals", "approve", "1", "--yes"];
    scene.console_dies("console.backfill_done", &command).await;
    scene.holds("backfill IS NOT NULL", 2).await;
    scene.sql(LAPSED).await;
    let again = scene.command(&command).await;
    assert!(again.status.success() && again.stdout.contains("is carried out"), "{again}");
    scene.holds("backfill IS NOT NULL", 2).await;
    assert_eq!(scene.action_count("backfill").await, 1);
    scene.ends(scene.successors(), "console.backfill_done", DONE, [1, 1]).await;
}

#[tokio::test]
async fn console_restored() {
    let scene = Scene::plain().await;
    let ids = scene.parked(2).await;
    let discard = ["failed", "discard", &ids[0], &ids[1], "--yes", "--reason", "in vain"];
    assert!(scene.command(&discard).await.status.success());
    let command = ["failed", "restore", &ids[0], &ids[1]];
    scene.console_dies("console.restored", &command).await;
    scene.holds("state = 'failed' AND ticket_published_at IS NULL", 1).await;
    scene.holds("state = 'discarded'", 1).await;
    let again = scene.command(&command).await;
    assert_eq!(again.status.code(), NOTHING_DONE, "one was restored before: {again}");
    scene.ends(scene.successors(), "console.restored", PARKED, [0, 0]).await;
    assert_eq!(scene.action_count("restore").await, 2);
}

#[tokio::test]
async fn console_cancelled() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    let id = scene.id().await;
    let command = ["executions", "cancel", &*id];
    scene.console_dies("console.cancelled", &command).await;
    scene.holds("state = 'cancelled'", 1).await;
    assert_eq!(scene.command(&command).await.status.code(), NOTHING_DONE);
    // Its ticket is still in the queue, and opens nothing.
    scene.waits(scene.wire.main(), 1).await;
    scene.ends(scene.successors(), "console.cancelled", "state = 'cancelled'", [0, 0]).await;
    assert_eq!(scene.action_count("cancel").await, 1);
}

#[tokio::test]
async fn console_applied() {
    let scene = Scene::plain().await;
    scene.trigger().await;
    let file = scene.platform.folder().join("more.toml");
    let job = |name: &str| super::by_hand(name, "work", "");
    std::fs::write(&file, [job("a.c"), job("a.d"), job("a.e")].concat()).unwrap();
    let command = ["jobs", "apply", "-f", file.to_str().unwrap()];
    scene.console_dies("console.applied", &command).await;
    assert_eq!(count(&scene.platform, "sexton.jobs").await, 4, "all of them");
    let again = scene.command(&command).await;
    assert!(again.stdout.contains("3 unchanged"), "{again}");
    assert_eq!(scene.action_count("apply").await, 4, "each job once");
    scene.ends(scene.successors(), "console.applied", DONE, [1, 1]).await;
}

#[tokio::test]
async fn console_paused() {
    let scene = Scene::plain().await;
    scene.trigger().await;
    let command = ["jobs", "pause", JOB, "--reason", "a change"];
    scene.console_dies("console.paused", &command).await;
    assert_eq!(count(&scene.platform, "sexton.jobs WHERE status = 'paused'").await, 1);
    assert_eq!(scene.command(&command).await.status.code(), NOTHING_DONE);
    assert_eq!(scene.action_count("pause").await, 1);
    // What was under way goes on.
    scene.ends(scene.successors(), "console.paused", DONE, [1, 1]).await;
}

#[tokio::test]
async fn console_resumed() {
    let scene = Scene::plain().await;
    scene.trigger().await;
    assert!(scene.command(&["jobs", "pause", JOB, "--reason", "a change"]).await.status.success());
    let command = ["jobs", "resume", JOB];
    scene.console_dies("console.resumed", &command).await;
    assert_eq!(count(&scene.platform, "sexton.jobs WHERE status = 'active'").await, 1);
    assert_eq!(scene.command(&command).await.status.code(), NOTHING_DONE);
    assert_eq!(scene.action_count("resume").await, 1);
    scene.ends(scene.successors(), "console.resumed", DONE, [1, 1]).await;
}

#[tokio::test]
async fn console_backfilled() {
    let scene = Scene::plain().await;
    let file = scene.platform.folder().join("seldom.toml");
    // Two batches, and so seldom that no firing of the schedule's own comes between.
    let job =
        super::by_hand("a.seldom", "work", "every = \"24h\"\nmisfire = { policy = \"skip\" }");
    std::fs::write(&file, job).unwrap();
    assert!(scene.command(&["jobs", "apply", "-f", file.to_str().unwrap()]).await.status.success());
    assert!(scene.command(&["jobs", "pause", "a.seldom", "--reason", "x"]).await.status.success());
    let command = ["jobs", "backfill", "a.seldom", "--since", "505d", "--yes", "--rate", "1/d"];
    scene.console_dies("console.backfilled", &command).await;
    scene.holds("backfill IS NOT NULL AND state = 'pending'", 500).await;
    // The rest, and nothing twice.
    let again = scene.command(&command).await;
    assert!(again.stdout.contains("5 firings are claimed, 500 had an execution"), "{again}");
    scene.holds("backfill IS NOT NULL", 505).await;
    assert_eq!(scene.action_count("backfill").await, 2);
    assert_eq!(scene.command(&command).await.status.code(), NOTHING_DONE);
    // One a day from each of the two: the first of each is due, the others are given up here.
    let rest = "DELETE FROM sexton.executions WHERE state = 'pending' AND next_attempt_at > now()";
    sqlx::query(rest).execute(scene.platform.store().pool()).await.unwrap();
    scene.ends(scene.successors(), "console.backfilled", DONE, [1, 1]).await;
    scene.holds("true", 2).await;
}

#[tokio::test]
async fn console_deleted() {
    let scene = Scene::plain().await;
    scene.ticket().await;
    let command = ["jobs", "delete", JOB, "--cancel", "--reason", "in vain", "--yes"];
    scene.console_dies("console.deleted", &command).await;
    scene.holds("state = 'cancelled'", 1).await;
    assert_eq!(scene.command(&command).await.status.code(), Some(3), "it is gone");
    assert_eq!(scene.action_count("delete").await, 1);
    // Its ticket is still in the queue, and opens nothing.
    scene.waits(scene.wire.main(), 1).await;
    scene.ends(scene.successors(), "console.deleted", "state = 'cancelled'", [0, 0]).await;
}

#[tokio::test]
async fn console_grouped() {
    let scene = Scene::plain().await;
    scene.parked(1).await;
    let group: String = sqlx::query_scalar("SELECT fingerprint FROM sexton.failures")
        .fetch_one(scene.platform.store().pool())
        .await
        .unwrap();
    let command = ["groups", "mute", &group, "--reason", "known"];
    scene.console_dies("console.grouped", &command).await;
    assert_eq!(count(&scene.platform, "sexton.failure_groups WHERE state = 'muted'").await, 1);
    assert_eq!(scene.command(&command).await.status.code(), NOTHING_DONE);
    assert_eq!(scene.action_count("group_mute").await, 1);
    scene.ends(scene.successors(), "console.grouped", "state = 'failed'", [0, 0]).await;
}

#[tokio::test]
async fn console_keys_assigned() {
    let scene = Scene::plain().await;
    scene.parked(1).await;
    let command = ["keys", "assign", "billing", "--reason", "new service"];
    scene.console_dies("console.keys_assigned", &command).await;
    assert_eq!(count(&scene.platform, "sexton.lock_key_ranges WHERE first_key = 1000").await, 1);
    assert_eq!(scene.command(&command).await.status.code(), NOTHING_DONE);
    assert_eq!(scene.action_count("assign_keys").await, 1);
    scene.ends(scene.successors(), "console.keys_assigned", "state = 'failed'", [0, 0]).await;
}

impl Scene {
    pub(super) async fn command(&self, args: &[&str]) -> CommandOutput {
        self.platform.sexton(args).await
    }

    /// Runs a command that dies at `point`, before it has answered anything.
    pub(super) async fn console_dies(&self, point: &str, args: &[&str]) {
        let output = self.platform.sexton_with(&[("FAULT_POINT", point)], args).await;
        assert_eq!(output.status.signal(), Some(9), "{output}");
        let line = format!("fault point {point}: killing this process");
        assert!(output.stderr.contains(&line) && output.stdout.is_empty(), "{output}");
    }

    /// What the audit says was done so often.
    pub(super) async fn action_count(&self, action: &str) -> i64 {
        count(&self.platform, &format!("sexton.operator_actions WHERE action = '{action}'")).await
    }
}
