//! The shutdown as a table: what an event makes of a phase. Pure.

/// How far a program is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// At work.
    Running,
    /// Nothing new is begun, running work may end.
    Stopping,
    /// Running work is ended.
    HardStopping,
}

/// What moves it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// SIGTERM, SIGINT, or the program's own wish.
    Stop,
    /// The grace is used up.
    GraceOver,
    /// A task ended well.
    TaskDone,
    /// A task ended with an error or panicked.
    TaskBroke,
}

impl Phase {
    /// The next phase, and whether the event is a fault that the exit status must tell.
    pub(super) fn next(self, event: Event) -> (Self, bool) {
        match (self, event) {
            (Self::Running, Event::Stop) => (Self::Stopping, false),
            (Self::Stopping, Event::Stop | Event::GraceOver) => (Self::HardStopping, false),
            // Tasks run for as long as the program: one that ends by itself has left its work
            // undone, whatever it returned. Better to be restarted whole than to go on without it.
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
