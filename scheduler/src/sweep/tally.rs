//! What a pass did, and how it is told.

/// What a pass did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Messages that stayed: of failed rows.
    pub kept: u64,
    /// Messages that stayed because no row says what they are.
    pub unknown: u64,
    /// Messages that went.
    pub removed: u64,
    /// Of those, the ones that no row knew and that an operator had discarded.
    pub discarded: u64,
    /// Messages that stayed without being written down, since there was no room.
    pub unrecorded: u64,
    /// Executions that were failed because the broker had parked their ticket, and that owe a message
    /// of their own now. What the broker had parked was removed.
    pub failed: u64,
    /// Tickets of waiting executions that a policy had taken out of their main queue, and that are owed again. What
    /// came of them was removed.
    pub returned: u64,
    /// Failed rows that owe their message again.
    pub owed_again: u64,
    /// Whether it saw all that was in the queue when it began.
    pub complete: bool,
}

impl Tally {
    /// Messages that are settled.
    pub(super) const fn settled(&self) -> u64 {
        self.kept + self.unknown + self.removed
    }

    pub(super) fn log(&self) {
        if self.owed_again > 0 {
            tracing::warn!(
                sexton_unaccounted_executions = self.owed_again,
                "{} failed executions had no message in the failed queue; they are published again",
                self.owed_again
            );
        }
        if self.returned > 0 {
            tracing::warn!(
                tickets.owed_again = self.returned,
                "{} tickets expired or were dropped in their queues, probably by a policy of RabbitMQ; they are \
                 published again, see `sexton doctor`",
                self.returned
            );
        }
        if self.failed > 0 {
            tracing::warn!(
                executions.failed = self.failed,
                "{} executions failed because the broker had parked their tickets",
                self.failed
            );
        }
        if self.unrecorded > 0 {
            tracing::warn!(
                messages.unrecorded = self.unrecorded,
                "{} messages of the failed queue are nobody's and could not be written down: too many are \
                 already; they stay in the queue",
                self.unrecorded
            );
        }
        if self.discarded > 0 {
            tracing::info!(
                messages.discarded = self.discarded,
                "removed {} messages from the failed queue that an operator had discarded",
                self.discarded
            );
        }
        tracing::debug!(
            messages.kept = self.kept,
            messages.unowned = self.unknown,
            messages.removed = self.removed,
            sweep.complete = self.complete,
            "went through the failed queue and removed {} messages",
            self.removed
        );
    }
}
