//! What a guard waits for before it does anything.

use std::io::{self, ErrorKind};

use rustix::io::Errno;
use rustix::process::{getpid, set_child_subreaper, setsid};

use super::Setup;
use super::protocol::{LINE_MAX_BYTES, Start};

/// What a guard was started for.
pub(super) struct Assigned {
    pub(super) start: Start,
    pub(super) setup: Setup,
    pub(super) params: Vec<u8>,
}

/// Waits for the first orders; `None`: the worker has gone without any.
pub(super) fn assigned() -> io::Result<Option<Assigned>> {
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let Some(start) = read_start()? else { return Ok(None) };
    let setup = Setup::decode(&read_exactly(start.setup_bytes)?)
        .ok_or_else(|| io::Error::other("what the worker wants started is unreadable"))?;
    let params = read_exactly(start.stdin_bytes)?;
    Ok(Some(Assigned { start, setup, params }))
}

/// Reads the first line; `None`: there is none.
fn read_start() -> io::Result<Option<Start>> {
    let mut line = Vec::with_capacity(64);
    let mut byte = [0];
    // Byte by byte, because what follows the line's end is not the line's; it is a short line.
    while line.len() < LINE_MAX_BYTES {
        match rustix::io::read(io::stdin(), &mut byte) {
            Ok(1) if byte[0] == b'\n' => break,
            Ok(1) => line.push(byte[0]),
            Ok(_) if line.is_empty() => return Ok(None),
            Ok(_) => return Err(ErrorKind::UnexpectedEof.into()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let start = std::str::from_utf8(&line).ok().and_then(Start::parse);
    start.map(Some).ok_or_else(|| io::Error::other("the worker's first line is unreadable"))
}

/// Reads so many bytes of what follows the first line.
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
