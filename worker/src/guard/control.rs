//! The guard's end of the control socket, which is its stdin.
//!
//! Reads ahead: bytes that arrive with the end of one part stay for the next one.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::stdio::stdin;

use super::fd_passing::receive_with_files;
use super::protocol::{LineBuffer, Report};

/// How much is received at once, in bytes.
const RECEIVE_BYTES: usize = 16 * 1024;

/// The worker's lines, parts and descriptors, in the order in which it sent them.
pub(super) struct Control {
    socket: BorrowedFd<'static>,
    lines: LineBuffer,
    files: VecDeque<OwnedFd>,
    /// `false` once the worker has ended; the socket would report that for ever.
    is_open: bool,
    piece: Vec<u8>,
}

impl Control {
    /// Takes over the socket, which never blocks from now on.
    pub(super) fn new() -> io::Result<Self> {
        let socket = stdin();
        let flags = fcntl_getfl(socket)?;
        fcntl_setfl(socket, flags | OFlags::NONBLOCK)?;
        Ok(Self {
            socket,
            lines: LineBuffer::default(),
            files: VecDeque::new(),
            is_open: true,
            piece: vec![0; RECEIVE_BYTES],
        })
    }

    /// Returns the socket, to wait for.
    pub(super) const fn socket(&self) -> BorrowedFd<'static> {
        self.socket
    }

    /// Returns whether the worker lives, as far as was received.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Receives what has arrived, without waiting.
    pub(super) fn receive(&mut self) {
        match receive_with_files(self.socket, &mut self.piece, &mut self.files) {
            Ok(count) if count > 0 => self.lines.extend(&self.piece[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => self.is_open = false,
        }
    }

    /// Waits until something has arrived, and receives it.
    fn wait(&mut self) {
        let mut sockets = [PollFd::from_borrowed_fd(self.socket, PollFlags::IN)];
        match poll(&mut sockets, None) {
            Ok(_) | Err(Errno::INTR) => self.receive(),
            Err(_) => self.is_open = false,
        }
    }

    /// Returns whether the worker sends a line without an end, which no worker does.
    pub(super) fn is_overlong(&self) -> bool {
        self.lines.is_overlong()
    }

    /// Returns the next line that has arrived.
    pub(super) fn next_line(&mut self) -> Option<String> {
        self.lines.next_line()
    }

    /// Waits for the next line; `None` if the worker has ended.
    pub(super) fn wait_for_line(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.next_line() {
                return Some(line);
            }
            if !self.is_open || self.is_overlong() {
                return None;
            }
            self.wait();
        }
    }

    /// Waits for exactly `count` bytes after the last line.
    pub(super) fn wait_for_bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        loop {
            if let Some(bytes) = self.lines.take(count) {
                return Ok(bytes);
            }
            if !self.is_open {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.wait();
        }
    }

    /// Takes the oldest descriptor that has arrived.
    pub(super) fn take_file(&mut self) -> Option<OwnedFd> {
        self.files.pop_front()
    }

    /// Returns whether the worker has ended, even with unread orders before its end.
    pub(super) fn worker_is_gone(&self) -> bool {
        let mut sockets = [PollFd::from_borrowed_fd(self.socket, PollFlags::empty())];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        !self.is_open
            || poll(&mut sockets, Some(&now)).is_ok()
                && sockets[0].revents().contains(PollFlags::HUP)
    }
}

/// Sends one line to the worker. If the worker has ended, the report is not needed.
pub(super) fn report(report: &Report) {
    let _ = rustix::io::write(stdin(), format!("{report}\n").as_bytes());
}
