//! Ten thousand members before one.

use std::time::Instant;

use sexton_model::retry::Decision;
use sexton_store::lease::AttemptFence;
use sexton_store::open::{Offer, OpenRequest, open};
use sexton_store::settle::settle;

use super::{Fixture, after, later};
use crate::store::{LEASE, request, settlement};

const CHILDREN: usize = 10_000;
/// As a worker with many slots does it.
const BATCH: usize = 64;

#[tokio::test]
async fn the_last_of_ten_thousand_frees_the_member_after_them_and_no_other_does() {
    let f = Fixture::new().await;
    let names: Vec<String> = (0..CHILDREN).map(|number| format!("m{number}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut members: Vec<_> = all.iter().map(|name| after(name, &[])).collect();
    members.push(after("sum", &all));
    let begun = Instant::now();
    f.begin(&members).await;
    let begun = begun.elapsed();
    let ids: Vec<uuid::Uuid> =
        sqlx::query_scalar("SELECT id FROM sexton.executions WHERE waits IS NULL ORDER BY id")
            .fetch_all(f.pool())
            .await
            .unwrap();
    assert_eq!(ids.len(), CHILDREN);
    let ids: Vec<_> = ids.into_iter().map(sexton_model::id::ExecutionId::new).collect();
    let (mut opening, mut settling) = (std::time::Duration::ZERO, std::time::Duration::ZERO);
    for (place, batch) in ids.chunks(BATCH).enumerate() {
        let requests: Vec<OpenRequest> = batch.iter().map(|id| request(*id, 1)).collect();
        let started = Instant::now();
        let offers = [Offer::new("work")];
        let opened =
            open(f.rows.store(), f.rows.worker, "w:1", &offers, &requests, LEASE, later(0))
                .await
                .unwrap();
        assert_eq!(opened.opened.len(), batch.len());
        opening += started.elapsed();
        if place == 100 {
            f.run("VACUUM sexton.flow_members").await;
            assert_eq!(f.rows.open(request(f.id("sum").await, 1), 0).await, None);
        }
        let ends: Vec<_> = requests
            .iter()
            .map(|one| AttemptFence {
                execution_id: one.execution_id,
                attempt: one.attempt,
                token: one.token,
            })
            .map(|held| settlement(held, Decision::Succeed))
            .collect();
        let started = Instant::now();
        settle(f.rows.store(), &ends, later(1)).await.unwrap();
        settling += started.elapsed();
    }
    println!("MEASURED begun in {begun:?}; opened in {opening:?}, settled in {settling:?}");
    assert_eq!(f.open().await, (1, false));
    f.succeed("sum").await;
    assert_eq!(f.open().await, (0, true));
}
