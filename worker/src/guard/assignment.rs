//! Receives the guard's assignment.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{getpid, set_child_subreaper, setsid};

use super::Setup;
use super::fd_passing::receive_with_fd;
use super::protocol::{LINE_MAX_BYTES, Start};

/// The assignment of a guard.
pub(super) struct GuardAssignment {
    pub(super) start: Start,
    pub(super) setup: Setup,
    pub(super) params: Vec<u8>,
    /// The instance lock: held until nothing of the task runs any more.
    pub(super) lock_file: Option<OwnedFd>,
}

/// Waits for the assignment; `None`: the worker has ended without one.
pub(super) fn receive_assignment() -> io::Result<Option<GuardAssignment>> {
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let Some((start, lock_file)) = read_start()? else { return Ok(None) };
    let setup = Setup::decode(&read_exactly(start.setup_bytes)?)
        .ok_or_else(|| io::Error::other("what the worker wants started is unreadable"))?;
    let params = read_exactly(start.stdin_bytes)?;
    Ok(Some(GuardAssignment { start, setup, params, lock_file }))
}

/// Reads the first line, and the instance lock that comes with it; `None`: the worker has ended.
fn read_start() -> io::Result<Option<(Start, Option<OwnedFd>)>> {
    let mut line = Vec::with_capacity(64);
    let mut lock_file = None;
    // Byte by byte, because the bytes after the line belong to the next part; the line is short.
    while line.len() < LINE_MAX_BYTES {
        match receive_with_fd(io::stdin()) {
            Ok(Some((byte, with))) => {
                lock_file = lock_file.or(with);
                if byte == b'\n' {
                    break;
                }
                line.push(byte);
            }
            Ok(None) if line.is_empty() => return Ok(None),
            Ok(None) => return Err(ErrorKind::UnexpectedEof.into()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let start = std::str::from_utf8(&line).ok().and_then(Start::parse);
    let start = start.ok_or_else(|| io::Error::other("the worker's first line is unreadable"))?;
    Ok(Some((start, lock_file)))
}

/// Reads exactly `count` bytes after the first line.
fn read_exactly(count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    let mut filled = 0;
    // Not through the standard library's buffer, which would swallow the orders that follow.
    while filled < count {
        match rustix::io::read(io::stdin(), &mut bytes[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}
