//! Counts how often the server of a proxy has sent a pattern.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is counted, over all connections; nothing, if the pattern is empty.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pattern: Arc<[u8]>,
    count: Arc<AtomicUsize>,
}

impl Counter {
    pub(super) fn of(pattern: &[u8]) -> Self {
        Self { pattern: pattern.into(), count: Arc::default() }
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// One connection's listener.
    pub(super) fn listen(&self) -> Listener {
        Listener { counter: self.clone(), tail: Vec::new() }
    }
}

/// Listens to one connection.
#[derive(Debug)]
pub(super) struct Listener {
    counter: Counter,
    /// What may still be the beginning of the pattern.
    tail: Vec<u8>,
}

impl Listener {
    pub(super) fn hear(&mut self, piece: &[u8]) {
        let pattern = &self.counter.pattern;
        if pattern.is_empty() {
            return;
        }
        self.tail.extend_from_slice(piece);
        let found = self.tail.windows(pattern.len()).filter(|window| *window == &**pattern).count();
        self.counter.count.fetch_add(found, Ordering::Relaxed);
        // Shorter than the pattern, so that nothing is counted twice.
        let tail_bytes = self.tail.len().min(pattern.len() - 1);
        self.tail.drain(..self.tail.len() - tail_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_occurrence_is_counted_once_however_it_is_cut() {
        let counter = Counter::of(b"abc");
        let text = b"abcxxabcab";
        for cut in 0..text.len() {
            let mut listener = counter.listen();
            listener.hear(&text[..cut]);
            listener.hear(&text[cut..]);
        }
        assert_eq!(counter.count(), 2 * text.len());
    }
}
