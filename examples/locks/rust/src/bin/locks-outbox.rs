//! Takes new orders: writes an event for each into the outbox, and enqueues its charge. The lock, the events and the
//! executions are of one transaction, so they end together.

use std::error::Error;

use serde_json::json;
use sexton_client::{Client, Enqueue};
use sexton_guard::TransactionLock;
use sqlx::postgres::PgPool;

const KEY: i64 = 5102;

/// How many orders were taken; `None`: another instance takes them.
async fn take_orders(pool: &PgPool) -> Result<Option<usize>, Box<dyn Error>> {
    let Some(mut tx) = TransactionLock::new(KEY).try_begin(pool).await? else { return Ok(None) };
    let orders: Vec<(i64, i32)> = sqlx::query_as(
        "UPDATE orders SET taken_at = now()
         WHERE id IN (SELECT id FROM orders WHERE taken_at IS NULL ORDER BY id LIMIT 1000)
         RETURNING id, cents",
    )
    .fetch_all(&mut *tx)
    .await?;
    let mut charges = Vec::with_capacity(orders.len());
    for (order, cents) in &orders {
        let event = json!({"event": "order taken", "order": order});
        sqlx::query("INSERT INTO outbox (event) VALUES ($1)").bind(event).execute(&mut *tx).await?;
        let params = json!({"order": order, "cents": cents});
        charges.push(Enqueue::new("billing.charge").params(&params)?.key(format!("order-{order}")));
    }
    Client::new().enqueue_many(&mut tx, &charges).await?;
    tx.commit().await?;
    Ok(Some(orders.len()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
    match take_orders(&pool).await? {
        Some(count) => println!("took {count} orders"),
        None => println!("another instance takes the orders"),
    }
    Ok(())
}
