//! Decides how many messages a pass gets at once. Pure.
//!
//! A broker reveals a message's length only by sending it, and received messages are held in memory. So a pass
//! predicts the next messages from the latest ones: short ones it gets in growing numbers, long ones one by one.
//! Where long ones follow short ones it holds [`BatchSize::MAX_MESSAGES`] of them, and starts again with one.

/// Maximum number of bytes of bodies held at once, as far as can be predicted; one message is always taken.
pub(super) const MAX_HELD_BYTES: usize = 2 * 1024 * 1024;

/// The sizes of the latest messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BatchSize {
    next: usize,
    largest: usize,
}

impl BatchSize {
    /// Maximum number of messages in one batch.
    pub(super) const MAX_MESSAGES: usize = 32;

    /// Before the first message.
    pub(super) const INITIAL: Self = Self { next: 1, largest: 0 };

    /// Returns the size of the next batch, at most `wanted`, while the pass holds `held` messages of `bytes` bytes.
    pub(super) fn next_size(self, wanted: usize, held: usize, bytes: usize) -> usize {
        let room = MAX_HELD_BYTES.saturating_sub(bytes) / self.largest.max(1);
        let at_least = usize::from(held == 0);
        self.next.min(room).max(at_least).min(wanted)
    }

    /// Records a batch of `count` messages, the longest of `largest` bytes.
    pub(super) fn record_batch(&mut self, count: usize, largest: usize) {
        // Unchanged if the batch could not use more.
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
