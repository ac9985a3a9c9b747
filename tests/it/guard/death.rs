//! Holders that die or stand still.

use sexton_tests::platform::{Platform, Program};

use super::{KEY, OVERLAPS, PATIENCE, RUNS, SOON, is_free};

const SESSION: (&str, &str) = ("LOCK", "session:5101");

struct Fleet {
    platform: Platform,
}

impl Fleet {
    async fn new() -> Self {
        let platform = Platform::new().await.unwrap();
        sqlx::raw_sql(RUNS).execute(platform.store().pool()).await.unwrap();
        Self { platform }
    }

    fn start(&self, name: &str, env: &[(&str, &str)]) -> Program {
        self.platform.start_lock_holder(name, env).unwrap()
    }

    async fn logged(&self, program: &Program, line: &str) {
        let is_logged = async || program.log().lines().any(|it| it == line).then_some(());
        self.platform.eventually(line, PATIENCE, is_logged).await;
    }

    async fn free(&self, what: &str) {
        let is_free = async || is_free(self.platform.store().pool(), KEY).await.then_some(());
        self.platform.eventually(what, SOON, is_free).await;
    }

    async fn overlaps(&self) -> i64 {
        sqlx::query_scalar(OVERLAPS).fetch_one(self.platform.store().pool()).await.unwrap()
    }
}

#[tokio::test]
async fn sigkill_frees_a_lock_of_a_session_at_once() {
    let fleet = Fleet::new().await;
    let mut first = fleet.start("first", &[SESSION]);
    fleet.logged(&first, "began").await;
    let second = fleet.start("second", &[SESSION]);
    fleet.logged(&second, "ready").await;
    assert!(!is_free(fleet.platform.store().pool(), KEY).await);
    first.kill();
    fleet.logged(&second, "began").await;
    assert_eq!(fleet.overlaps().await, 0);
    let mut second = second;
    second.kill();
    fleet.free("the second was killed, too").await;
}

/// The kernel answers for it, so the server holds its lock; when it wakes it ends the work, since it cannot know.
#[tokio::test]
async fn a_frozen_holder_has_the_lock_and_takes_no_step_when_it_wakes() {
    let fleet = Fleet::new().await;
    let first = fleet.start("first", &[SESSION]);
    fleet.logged(&first, "began").await;
    let second = fleet.start("second", &[SESSION, ("STEPS", "1")]);
    fleet.logged(&second, "ready").await;
    first.pause();
    // Longer than the server would wait for a client that is gone.
    tokio::time::sleep(std::time::Duration::from_secs(16)).await;
    assert!(!is_free(fleet.platform.store().pool(), KEY).await);
    assert!(!second.log().contains("began"));
    first.resume();
    fleet.logged(&first, "lost").await;
    fleet.logged(&second, "done").await;
    assert_eq!(fleet.overlaps().await, 0);
}

/// A row is free when its time has passed, whatever became of its holder.
#[tokio::test]
async fn a_row_of_a_holder_that_was_killed_or_frozen_is_free_after_its_time() {
    let fleet = Fleet::new().await;
    sqlx::raw_sql(sexton_guard::CREATE_SHEDLOCK)
        .execute(fleet.platform.store().pool())
        .await
        .unwrap();
    let row = ("LOCK", "row:cleanup:2000");
    let mut first = fleet.start("first", &[row]);
    fleet.logged(&first, "began").await;
    let second = fleet.start("second", &[row]);
    fleet.logged(&second, "ready").await;
    first.kill();
    fleet.logged(&second, "began").await;
    second.pause();
    let third = fleet.start("third", &[row]);
    fleet.logged(&third, "began").await;
    second.resume();
    fleet.logged(&second, "lost").await;
    let mut third = third;
    third.kill();
    assert_eq!(fleet.overlaps().await, 0, "a work went on when its lock was another's");
    let rows = "SELECT count(*) FROM shedlock";
    let rows: i64 =
        sqlx::query_scalar(rows).fetch_one(fleet.platform.store().pool()).await.unwrap();
    assert_eq!(rows, 1, "the row stays");
}
