//! A worker with a handler whose effects happen exactly once.

use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use sexton_worker::handler::Reason;
use sexton_worker::{Completion, Ctx, HandlerError, Worker, sqlx};

#[derive(Deserialize)]
struct Charge {
    account: i64,
    cents: i64,
}

#[derive(Serialize)]
struct Receipt {
    balance: i64,
}

async fn charge(ctx: Ctx, charge: Charge) -> Result<Completion<Receipt>, HandlerError> {
    let mut tx = ctx.begin().await?;
    let sql = "UPDATE accounts SET cents = cents - $2 WHERE id = $1 RETURNING cents";
    let balance = sqlx::query_scalar(sql)
        .bind(charge.account)
        .bind(charge.cents)
        .fetch_optional(&mut *tx)
        .await? // an error of the database: tried again
        .ok_or_else(|| HandlerError::permanent("there is no such account"))?;
    if balance < 0 {
        return Err(HandlerError::Permanent(Reason::new("not enough money").class("no_funds")));
    }
    Ok(ctx.complete_in(tx).with(Receipt { balance }))
}

fn main() -> ExitCode {
    Worker::builder().handler("charge", charge).run()
}
