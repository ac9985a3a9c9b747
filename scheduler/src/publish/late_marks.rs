//! Published tickets that are marked a moment later.
//!
//! A worker opens a ticket within milliseconds, and finds the row locked if it is being marked just then. Opened, a ticket needs
//! no mark. A crash before the mark publishes it again after half a minute, if no worker has opened it by then.

use std::time::{Duration, Instant};

use sexton_engine::outbox::PublishedTicket;

/// How long a worker has to open a ticket before it is marked; far shorter than the 5 s that the relay leaves a claimed one to
/// the process that claimed it, and the 30 s for which a round hides its batch.
pub(super) const MARK_DELAY: Duration = Duration::from_millis(250);
/// The most tickets whose marks wait; workers do not open more than these at once.
const MAX_LATE_MARKS: usize = 64;

/// Tickets that wait for their marks, and since when, the first first.
#[derive(Debug, Default)]
pub(super) struct LateMarks(Vec<(Instant, PublishedTicket)>);

impl LateMarks {
    /// Adds tickets that were published at `now`, and returns those to mark at once: of those that have waited for `delay`, or
    /// all if there are many.
    pub(super) fn exchange(
        &mut self,
        published: Vec<PublishedTicket>,
        delay: Duration,
        now: Instant,
    ) -> Vec<PublishedTicket> {
        self.0.extend(published.into_iter().map(|ticket| (now, ticket)));
        let due = if self.0.len() > MAX_LATE_MARKS {
            self.0.len()
        } else {
            self.0.partition_point(|(since, _)| now.saturating_duration_since(*since) >= delay)
        };
        self.0.drain(..due).map(|(_, ticket)| ticket).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::id::ExecutionId;
    use uuid::Uuid;

    use super::*;

    fn tickets(number: usize) -> Vec<PublishedTicket> {
        let ticket = |_| (ExecutionId::new(Uuid::nil()), 1);
        (0..number).map(ticket).collect()
    }

    #[test]
    fn a_mark_waits_for_the_delay_unless_there_are_many() {
        let start = Instant::now();
        let mut late = LateMarks::default();
        let mut exchange = |number, after_ms| {
            let now = start + Duration::from_millis(after_ms);
            late.exchange(tickets(number), MARK_DELAY, now).len()
        };
        assert_eq!(exchange(2, 0), 0);
        assert_eq!(exchange(1, 100), 0);
        assert_eq!(exchange(0, 250), 2);
        assert_eq!(exchange(0, 349), 0);
        assert_eq!(exchange(0, 350), 1);
        assert_eq!(exchange(65, 400), 65);
        assert!(late.is_empty());
    }
}
