//! A job as a producer and a worker share it: its type, the producer's call, the worker's handler.
//!
//! The guide on enqueueing from Rust shows this code, the worker `handlers` runs it, and `tests/it/enqueue/typed.rs` tests
//! it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sexton_client::{Client, Enqueue, Error, Job};
use sexton_worker::{Ctx, HandlerError};
use sqlx::postgres::PgConnection;

/// Charges a customer for an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    /// The order.
    pub order: i64,
    /// How much.
    pub cents: i64,
}

impl Job for Charge {
    const NAME: &'static str = "billing.charge";
    const TASK: &'static str = "charge";
    const PARAMS_SCHEMA: Option<&'static str> = Some(
        r#"{"required": ["order", "cents"], "properties": {"cents": {"type": "integer", "minimum": 1}}}"#,
    );
}

/// Places an order, and enqueues its charge for the end of the time in which the customer may withdraw it.
pub async fn place_order(
    connection: &mut PgConnection,
    cents: i64,
    grace: Duration,
) -> Result<i64, Error> {
    let insert = "INSERT INTO orders (cents) VALUES ($1) RETURNING id";
    let order: i64 = sqlx::query_scalar(insert).bind(cents).fetch_one(&mut *connection).await?;
    let charge = Enqueue::job(&Charge { order, cents })?.key(format!("order-{order}")).delay(grace);
    Client::new().enqueue(connection, &charge).await?;
    Ok(order)
}

/// What the bank answered.
#[derive(Debug, Serialize)]
pub struct Receipt {
    /// The order.
    pub order: i64,
    /// The key by which the bank knows a repetition.
    pub key: String,
}

#[expect(clippy::unused_async, reason = "a handler is async, and this one calls no bank")]
/// Charges a customer; a repetition has the same key.
pub async fn charge(ctx: Ctx, charge: Charge) -> Result<Receipt, HandlerError> {
    if charge.cents > 1_000_000 {
        return Err(HandlerError::permanent("a person decides about more than 10,000.00"));
    }
    ctx.log(format_args!("order {}: {} cents", charge.order, charge.cents));
    Ok(Receipt { order: charge.order, key: ctx.idempotency_key().to_owned() })
}
