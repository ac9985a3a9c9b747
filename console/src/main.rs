//! The command `sexton`.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    Ok(sexton_console::main()?.into())
}
