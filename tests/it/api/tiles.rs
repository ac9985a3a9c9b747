//! The tiles of the overview.

use sexton_model::access::Role;
use sexton_model::id::ExecutionId;
use sexton_model::retry::Decision;
use sexton_store::settle::{SettleOutcome, settle};
use sexton_store::status::{DueExecutions, due_since};

use super::Fixture;
use crate::store::settlement;

const HOUR_S: i64 = 3_600;

/// Moves the claim and the nominal time of an execution.
async fn move_execution(f: &Fixture, id: ExecutionId, minutes: i32) {
    let moved = "UPDATE sexton.executions SET claimed_at = claimed_at + $2 * interval '1 minute',
        scheduled_for = scheduled_for + $2 * interval '1 minute' WHERE id = $1";
    let update = sqlx::query(moved).bind(id.get()).bind(minutes);
    let done = update.execute(f.console.store().pool()).await.unwrap();
    assert_eq!(done.rows_affected(), 1);
}

#[tokio::test]
async fn the_overview_counts_what_was_due_within_the_last_hour_and_what_of_it_has_succeeded() {
    let f = Fixture::with_local_role(Some(Role::Viewer)).await;
    f.console.failed().await;
    let done = f.console.trigger("shop.charge").await;
    let settlement = settlement(f.console.open(done, 1).await, Decision::Succeed);
    let settled = settle(f.console.store(), &[settlement], None).await.unwrap();
    assert!(matches!(settled[0], SettleOutcome::Done { .. }));
    move_execution(&f, f.console.trigger("shop.mail").await, -61).await;
    move_execution(&f, f.console.trigger("shop.mail").await, 2).await;
    let page = f.send_to("GET", "/", &["Host: localhost"], "").await.expect(200);
    let page = page.as_str().unwrap();
    let (_, tile) = page.split_once("id=\"tile-due-lately\"").unwrap();
    let (tile, _) = tile.split_once("</li>").unwrap();
    assert!(tile.contains("href=\"/executions?since=1h&#38;until=now\""), "{tile}");
    assert!(tile.contains("<strong class=\"tile-value\">2</strong>"), "{tile}");
    assert!(tile.contains("1 of them have succeeded"), "{tile}");
    // The list behind the link has the same.
    let listed = f.send_to("GET", "/executions?since=1h&until=now", &["Host: localhost"], "").await;
    assert_eq!(listed.expect(200).as_str().unwrap().matches("<tr id=\"e-").count(), 2);
    // A count that looks at fewer executions than the hour has.
    let count = async |most: i64| due_since(f.console.store(), HOUR_S, most, None).await.unwrap();
    let whole = DueExecutions { due: 2, succeeded: 1, is_cut_short: false };
    assert_eq!((count(4).await, count(10_000).await), (whole, whole));
    let part = DueExecutions { due: 1, succeeded: 1, is_cut_short: true };
    assert_eq!(count(3).await, part);
    assert_eq!(count(0).await, DueExecutions { due: 0, succeeded: 0, is_cut_short: true });
}
