//! Counts what a pass did, and logs it.

/// What a pass did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Messages of failed rows that stayed.
    pub kept: u64,
    /// Messages that stayed because no row knows them.
    pub unknown: u64,
    /// Messages that were removed.
    pub removed: u64,
    /// Number of removed messages that no row knew and that an operator had discarded.
    pub discarded: u64,
    /// Messages that stayed without a record, because the limit of records was reached.
    pub unrecorded: u64,
    /// Executions that were failed because the broker had parked their ticket; their own message is now
    /// unpublished, and the broker's was removed.
    pub failed: u64,
    /// Tickets of waiting executions that a policy had removed from their main queue; they are unpublished
    /// again, and the parked messages were removed.
    pub returned: u64,
    /// Failed rows whose message is unpublished again.
    pub marked_unpublished: u64,
    /// Whether the pass saw all messages that were in the queue when it began.
    pub complete: bool,
}

impl Tally {
    /// Returns the number of settled messages.
    pub(super) const fn settled(&self) -> u64 {
        self.kept + self.unknown + self.removed
    }

    pub(super) fn log(&self) {
        if self.marked_unpublished > 0 {
            tracing::warn!(
                sexton_unaccounted_executions = self.marked_unpublished,
                "{} failed executions had no message in the failed queue; they are published again",
                self.marked_unpublished
            );
        }
        if self.returned > 0 {
            tracing::warn!(
                tickets.marked_unpublished = self.returned,
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
                "{} messages of the failed queue belong to no row and could not be recorded: the limit of \
                 records is reached; they stay in the queue",
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
