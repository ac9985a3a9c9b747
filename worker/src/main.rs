//! The worker: runs the tasks of opened attempts.

use std::process::ExitCode;

use sexton_worker::Worker;

fn main() -> ExitCode {
    Worker::builder().run()
}
