//! A handler moves money between accounts while its workers are killed again and again; a small
//! version of `it::process::sql::transfers`.

use super::Shop;
use crate::process::accounts::{RETRY, SCHEMA, Transfers};

const KILLS: i64 = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_of_a_handler_under_repeated_kills_of_its_workers_happen_once_each() {
    let shop = Shop::new(RETRY).await;
    sqlx::raw_sql(SCHEMA).execute(shop.platform.store().pool()).await.unwrap();
    let transfers = Transfers::claim(&shop.platform, "a.transfer", "transfer", 1_200).await;
    let env = [("WORKER_SLOTS", "16"), ("LEASE_MS", "5000")];
    let start = |name: &str| shop.platform.start_handlers(name, &env).unwrap();
    assert_eq!(transfers.run(KILLS, start).await, KILLS);
    transfers.happened_once_each().await;
}
