//! The queues: bounded multisets, so that every order of arrival is covered.
//!
//! A put beyond the bound is refused, and the whole action with it; the graph counts those, so that a report shows
//! whether a bound cut anything off.

use crate::explorer::{Refused, take};
use crate::protocol::world::{FailedQueue, Number, Parked, Queue, Sweep, Tickets, World};

impl Tickets {
    /// Puts one in. Older numbers are counted to one only: a worker handles each alike, without effect.
    pub(crate) fn put(&mut self, number: Number, limit: u8) -> Result<(), Refused> {
        match number {
            Number::Overtaken => self.overtaken = 1,
            Number::Current if self.current >= limit => return Err(Refused),
            Number::Current => self.current += 1,
        }
        Ok(())
    }

    pub(crate) fn of(&mut self, number: Number) -> &mut u8 {
        match number {
            Number::Current => &mut self.current,
            Number::Overtaken => &mut self.overtaken,
        }
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.current == 0 && self.overtaken == 0
    }
}

impl FailedQueue {
    pub(crate) fn of(&mut self, kind: Parked) -> &mut u8 {
        match kind {
            Parked::Plain => &mut self.plain,
            Parked::Noted => &mut self.noted,
            Parked::Overtaken => &mut self.overtaken,
        }
    }

    /// Counts older messages to two only: the sweep removes each alike.
    pub(crate) fn forget(&mut self) {
        self.overtaken = self.overtaken.min(2);
    }

    pub(crate) const fn len(self) -> u8 {
        self.plain + self.noted + self.overtaken
    }

    /// Returns the number of copies of the row's own ticket.
    pub(crate) const fn current(self) -> u8 {
        self.plain + self.noted
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            plain: self.plain + other.plain,
            noted: self.noted + other.noted,
            overtaken: self.overtaken + other.overtaken,
        }
    }
}

impl World {
    /// Publishes a ticket.
    pub(crate) fn publish(&mut self, to: Queue, number: Number, limit: u8) -> Result<(), Refused> {
        match to {
            Queue::Main => self.main.put(number, limit),
            Queue::Delay => self.delayed.put(number, limit),
            Queue::Failed => {
                let kind = match number {
                    Number::Current => Parked::Plain,
                    Number::Overtaken => Parked::Overtaken,
                };
                self.put_parked(kind, limit)
            }
        }
    }

    /// Puts a message at the tail of the failed queue.
    pub(crate) fn put_parked(&mut self, kind: Parked, limit: u8) -> Result<(), Refused> {
        if kind != Parked::Overtaken && self.failed.and(self.tail).current() >= limit {
            return Err(Refused);
        }
        let in_pass = self.sweep != Sweep::Idle;
        let queue = if in_pass { &mut self.tail } else { &mut self.failed };
        *queue.of(kind) += 1;
        if kind == Parked::Overtaken {
            queue.forget();
        }
        Ok(())
    }

    /// Takes a message out of the failed queue, from any position.
    pub(crate) fn take_parked(&mut self, kind: Parked) -> bool {
        take(self.failed.of(kind)) || take(self.tail.of(kind))
    }
}
