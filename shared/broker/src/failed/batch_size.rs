//! How many messages a pass asks for at once. Pure.
//!
//! A broker tells how long a message is only by sending it, and what was sent is held in memory. So a pass
//! takes the last messages that came for what the next ones are like: short ones it asks for in growing numbers,
//! long ones one by one. Where long ones follow short ones it holds [`BatchSize::MAX_MESSAGES`] of them, and begins anew
//! with one.

/// As many bytes of bodies as are held at once, as far as can be foreseen; one message is always taken.
pub(super) const MAX_HELD_BYTES: usize = 2 * 1024 * 1024;

/// What is remembered of the messages that came last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BatchSize {
    next: usize,
    largest: usize,
}

impl BatchSize {
    /// The most messages in one batch.
    pub(super) const MAX_MESSAGES: usize = 32;

    /// Nothing is known yet.
    pub(super) const INITIAL: Self = Self { next: 1, largest: 0 };

    /// The size of the next batch, at most `wanted`, while the pass holds `held` messages of `bytes` bytes.
    pub(super) fn next_size(self, wanted: usize, held: usize, bytes: usize) -> usize {
        let room = MAX_HELD_BYTES.saturating_sub(bytes) / self.largest.max(1);
        let at_least = usize::from(held == 0);
        self.next.min(room).max(at_least).min(wanted)
    }

    /// Records a batch of `count` messages, the longest of `largest` bytes.
    pub(super) fn record_batch(&mut self, count: usize, largest: usize) {
        // Not where a batch had no use for more.
        let next = if count * largest > MAX_HELD_BYTES {
            1
        } else if count >= self.next {
            (count * 2).min(Self::MAX_MESSAGES)
        } else {
            self.next
        };
        *self = Self { next, largest };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_are_asked_for_in_growing_numbers_and_long_ones_one_by_one() {
        let mut batch_size = BatchSize::INITIAL;
        for expected in [1, 2, 4, 8, 16, 32, 32] {
            assert_eq!(batch_size.next_size(100, 0, 0), expected);
            batch_size.record_batch(expected, 300);
        }
        assert_eq!(batch_size.next_size(5, 0, 0), 5);
        batch_size.record_batch(5, 300);
        assert_eq!(batch_size.next_size(100, 5, 1_500), 32, "five were all that was wanted");
        batch_size.record_batch(32, MAX_HELD_BYTES / 32);
        assert_eq!(batch_size.next_size(100, 0, 0), 32);
        assert_eq!(batch_size.next_size(100, 16, MAX_HELD_BYTES / 2), 16);
        batch_size.record_batch(32, MAX_HELD_BYTES / 8);
        assert_eq!(batch_size.next_size(100, 0, 0), 1, "long ones among short ones");
        batch_size.record_batch(1, 300);
        assert_eq!(
            batch_size.next_size(100, 0, 0),
            2,
            "not many at once again, however short this one was"
        );
        batch_size.record_batch(1, 100 * MAX_HELD_BYTES);
        assert_eq!(batch_size.next_size(100, 0, 0), 1, "whatever its length, it is taken");
        assert_eq!(batch_size.next_size(100, 1, 100 * MAX_HELD_BYTES), 0);
        assert_eq!(batch_size.next_size(0, 0, 0), 0);
    }
}
