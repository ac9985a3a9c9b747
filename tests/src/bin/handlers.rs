//! A worker with handlers, for the tests in `tests/it/process/handlers`: what a user's program
//! looks like, and its possible mistakes.

use std::process::ExitCode;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use sexton_tests::charge::charge;
use sexton_worker::handler::{HandlerOptions, Reason};
use sexton_worker::sqlx::Connection as _;
use sexton_worker::{Completion, Ctx, HandlerError, Worker, sqlx};

/// What a handler does at its first attempt, if that is something bad; the next attempt succeeds.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Order {
    ReportProgress,
    Fail,
    FailWithWait,
    FailForGood,
    /// Answers three times that it is too early.
    Snooze,
    Panic,
    /// Waits for the stop signal, cleans up, and fails.
    Obey,
    /// Ignores every signal.
    Hang,
    /// Waits and blocks its thread.
    Block {
        ms: u64,
    },
    /// Blocks its thread until the file `release` exists.
    Hold,
}

const RELEASE: &str = "release";

fn hold_thread() {
    while !std::path::Path::new(RELEASE).exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

async fn obey(ctx: Ctx, order: Order) -> Result<Value, HandlerError> {
    ctx.log(format_args!("begin {}", ctx.attempt()));
    match order {
        Order::Block { ms } => std::thread::sleep(Duration::from_millis(ms)),
        Order::Hold => hold_thread(),
        Order::FailForGood => {
            return Err(HandlerError::Permanent(Reason::new("it is closed").class("closed")));
        }
        Order::Snooze if ctx.attempt() <= 3 => {
            return Err(HandlerError::Snooze(Duration::from_secs(1)));
        }
        _ if ctx.attempt() > 1 => {}
        Order::ReportProgress | Order::Snooze => ctx.progress(40.0, [("records", 1200)]),
        Order::Fail => std::fs::read("/nowhere").map(drop)?,
        Order::FailWithWait => {
            return Err(HandlerError::retry_after(Duration::from_secs(4), "the till is shut"));
        }
        Order::Panic => panic!("no such {}", "luck"),
        Order::Obey => {
            let cause = ctx.stopped().await;
            std::fs::write("cleared", cause.to_string())?;
            return Err("stopped in the middle")?;
        }
        Order::Hang => std::future::pending().await,
    }
    Ok(json!({"key": ctx.idempotency_key(), "attempt": ctx.attempt()}))
}

#[derive(Deserialize)]
struct Transfer {
    giver: i32,
    taker: i32,
    cents: i64,
}

async fn transfer(ctx: Ctx, transfer: Transfer) -> Result<Completion<i64>, HandlerError> {
    let Transfer { giver, taker, cents } = transfer;
    let mut tx = ctx.begin().await?;
    sqlx::query("SELECT FROM accounts WHERE id IN ($1, $2) ORDER BY id FOR UPDATE")
        .bind(giver)
        .bind(taker)
        .execute(&mut *tx)
        .await?;
    for (account, cents) in [(giver, -cents), (taker, cents)] {
        sqlx::query("UPDATE accounts SET cents = cents + $2 WHERE id = $1")
            .bind(account)
            .bind(cents)
            .execute(&mut *tx)
            .await?;
    }
    sqlx::query("INSERT INTO transfers VALUES ($1, $2, $3, $4)")
        .bind(ctx.idempotency_key())
        .bind(giver)
        .bind(taker)
        .bind(cents)
        .execute(&mut *tx)
        .await?;
    Ok(ctx.complete_in(tx).with(cents))
}

/// Runs the statements one by one in its transaction, and completes in it unless it must fail.
#[derive(Deserialize)]
struct Statements {
    run: Vec<String>,
    #[serde(default)]
    fail: bool,
    /// Runs first, in a nested transaction that is committed.
    nested: Option<String>,
    /// Runs first, in a nested transaction that is dropped.
    dropped: Option<String>,
    /// Leaves something behind that holds its thread until the file `release` exists.
    #[serde(default)]
    hold: bool,
}

async fn statements(ctx: Ctx, statements: Statements) -> Result<Completion, HandlerError> {
    let mut tx = ctx.begin().await?;
    if let Some(statement) = statements.nested {
        let mut nested = tx.begin().await?;
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut *nested).await?;
        nested.commit().await?;
    }
    if let Some(statement) = statements.dropped {
        let mut nested = tx.begin().await?;
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut *nested).await?;
    }
    for statement in statements.run {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut *tx).await?;
    }
    if statements.hold {
        tokio::spawn(async { hold_thread() });
    }
    if statements.fail { Err("not after all")? } else { Ok(ctx.complete_in(tx)) }
}

/// Begins a transaction and does not complete in it.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Careless {
    Forget {
        run: Vec<String>,
    },
    /// Moves the transaction into a separate task, whose end the file `detached` records, and
    /// answers when the file `release` exists.
    Detach {
        run: Vec<String>,
    },
}

async fn careless(ctx: Ctx, careless: Careless) -> Result<(), HandlerError> {
    let mut tx = ctx.begin().await?;
    let (Careless::Forget { run } | Careless::Detach { run }) = &careless;
    let run = run.clone();
    let all = async move {
        for statement in run {
            sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut *tx).await?;
        }
        Ok::<_, sqlx::Error>(())
    };
    match careless {
        Careless::Forget { .. } => all.await?,
        Careless::Detach { .. } => {
            tokio::spawn(async move {
                let message = all.await.err().map(|error| error.to_string());
                std::fs::write("detached", message.unwrap_or_else(|| "done".to_owned()))
            });
            while !std::path::Path::new(RELEASE).exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    Ok(())
}

/// The schema of the params of `ship`.
const PARCEL: &str = r#"{
    "type": "object",
    "required": ["parcel", "to"],
    "properties": {
        "parcel": {"type": "object", "properties": {"grams": {"type": "integer", "minimum": 1}}},
        "to": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}
    }
}"#;

async fn ship(_: Ctx, _: serde_json::Value) -> Result<(), HandlerError> {
    Ok(())
}

fn main() -> ExitCode {
    let hurried = HandlerOptions { grace: Duration::from_millis(500), ..HandlerOptions::default() };
    Worker::builder()
        .handler_with("obey", hurried, obey)
        .handler("transfer", transfer)
        .handler("statements", statements)
        .handler("careless", careless)
        .handler("ship", ship)
        .params_schema("ship", PARCEL)
        .job(charge)
        .run()
}
