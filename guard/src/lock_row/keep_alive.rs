//! Keeps a lock row alive while its work runs, and cancels the work when that fails.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::statements;
use super::times::Times;
use crate::lease::Lease;
use crate::moment::Moment;

/// For a statement, within what is left of the row's time.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest sleep. A timer stands still while the host is suspended, and the row does not.
const MAX_SLEEP: Duration = Duration::from_secs(2);

/// A row that is held.
#[derive(Clone, Debug)]
pub(super) struct HeldRow {
    pub(super) pool: PgPool,
    pub(super) table: String,
    pub(super) name: String,
    pub(super) holder: String,
    pub(super) times: Times,
}

impl HeldRow {
    /// How long the row is certain, if the statement that took it was sent at `sent_at`.
    pub(super) fn lease(&self, sent_at: Moment) -> Lease {
        Lease::new(sent_at, self.times.at_most.saturating_sub(self.times.margin()))
    }

    /// Extends the row, and renews the lease by it, until `stop` is cancelled; cancels `lost` if the lock is. When this
    /// returns no statement of it runs any more.
    ///
    /// The lock is lost when the row is another holder's, and when no extension was answered before the row is about to end.
    pub(super) async fn keep_alive(
        self,
        lease: Lease,
        stop: CancellationToken,
        lost: CancellationToken,
    ) {
        let mut next = lease.after(self.times.extend_interval());
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep_until(next.min(lease.end()).min(Instant::now() + MAX_SLEEP)) => {}
            }
            let name = &self.name;
            if lease.is_over() {
                tracing::error!(
                    name,
                    "the lock {name} could not be extended in time; its work is cancelled"
                );
                break;
            }
            if Instant::now() < next {
                continue;
            }
            let sent_at = Moment::now();
            match self.extend(lease.end().min(Instant::now() + STATEMENT_TIMEOUT)).await {
                Ok(true) => {
                    lease.renew(sent_at);
                    next = lease.after(self.times.extend_interval());
                }
                Ok(false) => {
                    tracing::error!(
                        name,
                        "the lock {name} has ended, or has another holder; its work is cancelled"
                    );
                    break;
                }
                Err(error) => {
                    tracing::warn!(
                        name,
                        error,
                        "failed to extend the lock {name}, which is tried again: {error}"
                    );
                    next = Instant::now() + self.times.retry_interval();
                }
            }
        }
        lost.cancel();
    }

    /// Extends the row. A statement that is given up may have been carried out; then the row only lasts longer.
    async fn extend(&self, deadline: Instant) -> Result<bool, String> {
        let statement = statements::extend(&self.table, &self.name, &self.holder, self.times);
        match timeout_at(deadline, statements::run(&self.pool, statement)).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}
