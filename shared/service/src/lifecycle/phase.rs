//! The shutdown as a table of phases and events. Pure.

/// The phase of a program's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// At work.
    Running,
    /// Nothing new begins, running work may end.
    Stopping,
    /// Running work is ended.
    HardStopping,
}

/// An event that changes the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// SIGTERM, SIGINT, or the program's own request.
    Stop,
    /// The grace is over.
    GraceOver,
    /// A task ended without an error.
    TaskDone,
    /// A task ended with an error or panicked.
    TaskBroke,
}

impl Phase {
    /// Returns the next phase, and whether the event is a fault that the exit status must report.
    pub(super) fn next(self, event: Event) -> (Self, bool) {
        match (self, event) {
            (Self::Running, Event::Stop) => (Self::Stopping, false),
            (Self::Stopping, Event::Stop | Event::GraceOver) => (Self::HardStopping, false),
            // Tasks run as long as the program: one that ends by itself has left its work undone, whatever it
            // returned. A restart is better than going on without it.
            (Self::Running, Event::TaskDone | Event::TaskBroke) => (Self::Stopping, true),
            (_, Event::TaskBroke) => (self, true),
            (_, Event::TaskDone)
            | (Self::Running, Event::GraceOver)
            | (Self::HardStopping, Event::Stop | Event::GraceOver) => (self, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_in_every_phase() {
        use Event::{GraceOver, Stop, TaskBroke, TaskDone};
        use Phase::{HardStopping, Running, Stopping};
        for (phase, event, want) in [
            (Running, Stop, (Stopping, false)),
            (Running, GraceOver, (Running, false)),
            (Running, TaskDone, (Stopping, true)),
            (Running, TaskBroke, (Stopping, true)),
            (Stopping, Stop, (HardStopping, false)),
            (Stopping, GraceOver, (HardStopping, false)),
            (Stopping, TaskDone, (Stopping, false)),
            (Stopping, TaskBroke, (Stopping, true)),
            (HardStopping, Stop, (HardStopping, false)),
            (HardStopping, GraceOver, (HardStopping, false)),
            (HardStopping, TaskDone, (HardStopping, false)),
            (HardStopping, TaskBroke, (HardStopping, true)),
        ] {
            assert_eq!(phase.next(event), want, "{phase:?} {event:?}");
        }
    }
}
