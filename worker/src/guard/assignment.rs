//! Receives the guard's assignments.

use std::io;
use std::os::fd::OwnedFd;

use super::Setup;
use super::control::Control;
use super::protocol::{Order, Start};

/// One task to guard.
pub(super) struct GuardAssignment {
    pub(super) start: Start,
    pub(super) setup: Setup,
    pub(super) params: Vec<u8>,
    /// The writing ends of the task's output.
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// The instance lock: held until nothing of the task runs any more.
    pub(super) lock_file: Option<OwnedFd>,
}

/// Waits for the next assignment; `None`: the worker has ended without one.
pub(super) fn receive_assignment(control: &mut Control) -> io::Result<Option<GuardAssignment>> {
    let start = loop {
        let Some(line) = control.wait_for_line() else { return Ok(None) };
        match Start::parse(&line) {
            Some(start) => break start,
            // It crossed with the report of the end of the task that it was for.
            None if Order::parse(&line).is_some() => {}
            None => return Err(io::Error::other("the worker's first line is unreadable")),
        }
    };
    let setup = Setup::decode(&control.wait_for_bytes(start.setup_bytes)?)
        .ok_or_else(|| io::Error::other("what the worker wants started is unreadable"))?;
    let params = control.wait_for_bytes(start.stdin_bytes)?;
    let missing = || io::Error::other("the worker sent no pipes for the output");
    let stdout = control.take_file().ok_or_else(missing)?;
    let stderr = control.take_file().ok_or_else(missing)?;
    let lock_file = control.take_file();
    Ok(Some(GuardAssignment { start, setup, params, stdout, stderr, lock_file }))
}
