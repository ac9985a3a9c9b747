//! What was enqueued of a job, and what a test asserts of it.

use std::fmt;
use std::ops::Deref;

use chrono::{DateTime, Utc};

use super::EnqueuedExecution;

/// The most executions that a message lists.
const MAX_SHOWN: usize = 20;

/// What was enqueued of one job, in the order of the calls, as it was when it was read.
///
/// It is a slice for everything else: `len()`, `is_empty()`, `iter()`. Its text lists what is there, for the message
/// of an assertion: `assert_eq!(charges.len(), 2, "{charges}")`.
#[derive(Clone, Debug, PartialEq)]
pub struct EnqueuedList<P> {
    job: String,
    all: Vec<EnqueuedExecution<P>>,
    /// How many were enqueued of other jobs, for messages.
    others: Vec<(String, i64)>,
    read_at: DateTime<Utc>,
}

impl<P> EnqueuedList<P> {
    pub(super) fn new(
        job: &str,
        all: Vec<EnqueuedExecution<P>>,
        others: Vec<(String, i64)>,
        read_at: DateTime<Utc>,
    ) -> Self {
        Self { job: job.to_owned(), all, others, read_at }
    }

    /// Returns when it was read, by the database's clock.
    pub fn read_at(&self) -> DateTime<Utc> {
        self.read_at
    }

    /// Returns the one execution that `matches`.
    ///
    /// # Panics
    ///
    /// If none or several match. The message lists what was enqueued, of this job and how much of others.
    #[track_caller]
    pub fn require_one(
        &self,
        mut matches: impl FnMut(&EnqueuedExecution<P>) -> bool,
    ) -> &EnqueuedExecution<P> {
        let found: Vec<_> = self.all.iter().filter(|execution| matches(execution)).collect();
        match found[..] {
            [one] => one,
            _ => panic!("executions that match: {}, expected: 1; {self}", found.len()),
        }
    }

    /// Asserts that no execution `matches`.
    ///
    /// # Panics
    ///
    /// If one does. The message lists what was enqueued.
    #[track_caller]
    pub fn require_none(&self, matches: impl FnMut(&EnqueuedExecution<P>) -> bool) {
        let found = self.all.iter().map(matches).filter(|is_match| *is_match).count();
        assert!(found == 0, "executions that match: {found}, expected: 0; {self}");
    }

    /// Returns those that wait for an attempt that is due at `instant`, in the order in which they are due.
    ///
    /// It reads the times that the rows have, and nothing else: see [the clock](super#the-clock).
    pub fn due_at(&self, instant: DateTime<Utc>) -> Vec<&EnqueuedExecution<P>> {
        let mut due: Vec<_> = self.all.iter().filter(|it| it.is_due_at(instant)).collect();
        // Stable, so those due at the same instant stay in the order of their calls.
        due.sort_by_key(|execution| execution.next_attempt_at);
        due
    }

    /// Runs what was due when the list was read: hands each to `handler`, one after the other, and returns what that
    /// returned.
    ///
    /// ```no_run
    /// # use sexton_client::testing::{self, ReadError};
    /// # async fn charge_card(_: serde_json::Value) -> Result<(), String> { Ok(()) }
    /// # async fn test(connection: &mut sqlx::PgConnection) -> Result<(), ReadError> {
    /// let charges = testing::enqueued_of(connection, "billing.charge").await?;
    /// let ended = charges.run_now(async |charge| charge_card(charge.params).await).await;
    /// assert_eq!(ended, [Ok(())]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Nothing is written: the executions wait as before, without an attempt or an end, and a second call runs them
    /// again. If the future is dropped, so is the handler's, where it waits.
    pub async fn run_now<R>(self, handler: impl AsyncFnMut(EnqueuedExecution<P>) -> R) -> Vec<R> {
        let now = self.read_at;
        self.run_due_at(now, handler).await
    }

    /// Runs what [is due](Self::due_at) at `instant`, as [`Self::run_now`] does.
    pub async fn run_due_at<R>(
        mut self,
        instant: DateTime<Utc>,
        mut handler: impl AsyncFnMut(EnqueuedExecution<P>) -> R,
    ) -> Vec<R> {
        self.all.retain(|execution| execution.is_due_at(instant));
        self.all.sort_by_key(|execution| execution.next_attempt_at);
        let mut answers = Vec::with_capacity(self.all.len());
        for execution in self.all {
            answers.push(handler(execution).await);
        }
        answers
    }
}

impl<P> Deref for EnqueuedList<P> {
    type Target = [EnqueuedExecution<P>];

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl<P> IntoIterator for EnqueuedList<P> {
    type Item = EnqueuedExecution<P>;
    type IntoIter = std::vec::IntoIter<EnqueuedExecution<P>>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.into_iter()
    }
}

impl<'a, P> IntoIterator for &'a EnqueuedList<P> {
    type Item = &'a EnqueuedExecution<P>;
    type IntoIter = std::slice::Iter<'a, EnqueuedExecution<P>>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl<P> fmt::Display for EnqueuedList<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.all.len() {
            0 => write!(f, "nothing of {} is enqueued", self.job)?,
            1 => write!(f, "1 execution of {} is enqueued:", self.job)?,
            count => write!(f, "{count} executions of {} are enqueued:", self.job)?,
        }
        for execution in self.all.iter().take(MAX_SHOWN) {
            write!(f, "\n  {execution}")?;
        }
        if self.all.len() > MAX_SHOWN {
            write!(f, "\n  and {} more", self.all.len() - MAX_SHOWN)?;
        }
        for (nth, (job, count)) in self.others.iter().enumerate() {
            let before = if nth == 0 { "\nof other jobs: " } else { ", " };
            write!(f, "{before}{count} of {job}")?;
        }
        Ok(())
    }
}
