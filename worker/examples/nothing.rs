//! The smallest worker: a handler that does nothing. It shows what every attempt costs.

use std::process::ExitCode;

use serde_json::Value;
use sexton_worker::{Ctx, HandlerError, Worker};

async fn nothing(_: Ctx, _: Value) -> Result<(), HandlerError> {
    Ok(())
}

fn main() -> ExitCode {
    Worker::builder().handler("nothing", nothing).run()
}
