//! SIGTERM and SIGINT.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals, caught from the moment this exists.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches both. Call it first: a program that runs as process 1 of a container ignores signals it does not
    /// catch, and others would die in the middle of their start.
    ///
    /// # Errors
    ///
    /// If the system refuses, which leaves the program without an orderly end.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and returns its name. Cancel-safe: a dropped wait loses no signal.
    pub async fn next(&mut self) -> &'static str {
        // An ended stream yields nothing again, so the future waits forever: the end must not look like a signal.
        tokio::select! {
            Some(()) = self.terminate.recv() => "SIGTERM",
            Some(()) = self.interrupt.recv() => "SIGINT",
            else => std::future::pending().await,
        }
    }
}
