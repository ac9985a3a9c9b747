//! The signals that stop the demo.

use std::io;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM and SIGHUP.
#[derive(Debug)]
pub(super) struct StopSignal {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl StopSignal {
    /// Handles the signals from now on, so that none of them ends the process by itself.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal; returns the exit status that shells give to a process that it ended.
    pub(super) async fn exit_code(&mut self) -> ExitCode {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        };
        ExitCode::from((128 + kind.as_raw_value()) as u8)
    }
}
