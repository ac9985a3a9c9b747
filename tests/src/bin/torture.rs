//! `make torture`; what it does is in [`sexton_tests::torture`].

use std::process::ExitCode;

use clap::Parser as _;
use sexton_tests::torture::command::{Arguments, main as torture};

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    torture(Arguments::parse()).await
}
