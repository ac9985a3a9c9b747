//! The sweep of the failed queue, as in `scheduler/src/sweep/batch.rs`, in batches of one: take a message,
//! *then* read its row, judge with the real function, put the message back at the tail or remove it.

use sexton_model::sweep::{MessageAttempt, SweepDecision, judge_batch};
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::parked_messages::{self, ScanPosition, mark_unseen_unpublished};

use super::broker::Message;
use super::case::Simulation;
use super::invariants::invariant;
use super::op::Cut;
use super::stop::Stop;

/// A pass under way.
#[derive(Debug)]
pub(super) struct Pass {
    lock: ExclusiveLock,
    /// The messages that were there at its beginning and that it has not taken yet.
    left: usize,
    /// Whether messages before it were removed: it may then reach its own copies.
    pub(super) disturbed: bool,
    /// The message that it holds, judged or not.
    pub(super) hand: Option<(Message, Option<SweepDecision>)>,
}

impl Simulation<'_> {
    /// Performs its next effect.
    pub(super) async fn sweep(&mut self, cut: Cut) -> Result<(), Stop> {
        if cut == Cut::Before {
            return Ok(());
        }
        let Some(mut pass) = self.sweep.take() else { return self.begin_pass().await };
        match pass.hand.take() {
            None if pass.left == 0 || self.broker.failed.is_empty() => {
                return self.finish_pass(pass, cut).await;
            }
            None => pass.hand = Some((self.broker.failed.remove(0), None)),
            Some((message, None)) => {
                let judged = self.judge(&mut pass, &message).await;
                pass.hand = Some((message, judged.as_ref().ok().copied()));
                self.sweep = Some(pass);
                return judged.map(|_| ());
            }
            Some((message, Some(verdict))) => {
                if verdict == SweepDecision::Keep {
                    self.broker.failed.push(message.copied());
                }
                if cut == Cut::After {
                    // The acknowledgement was lost: the pass breaks off, the message returns.
                    self.broker.failed.insert(0, message);
                    return Ok(pass.lock.release().await?);
                }
                if let Some((id, attempt)) = message.ticket()
                    && verdict != SweepDecision::Keep
                    && (pass.disturbed || self.ledger.misplaced.contains(&(id, attempt)))
                {
                    self.ledger.excused.insert(id);
                }
                pass.left -= 1;
            }
        }
        self.sweep = Some(pass);
        Ok(())
    }

    async fn begin_pass(&mut self) -> Result<(), Stop> {
        let lock =
            ExclusiveLock::try_acquire(self.store, ExclusiveTask::Sweep, Some(self.now)).await?;
        invariant!(lock.is_some(), "the sweep's lock is held by nobody");
        let left = self.broker.failed.len();
        if let Some(lock) = &lock {
            parked_messages::begin_pass(self.store, lock.acquired_at()).await?;
        }
        self.sweep = lock.map(|lock| Pass { lock, left, disturbed: false, hand: None });
        Ok(())
    }

    async fn judge(&mut self, pass: &mut Pass, message: &Message) -> Result<SweepDecision, Stop> {
        let Some((id, attempt)) = message.ticket() else { return Ok(SweepDecision::Keep) };
        let rows = parked_messages::read_rows(&mut pass.lock, &[id]).await?;
        let claim = MessageAttempt { id, attempt, last_death: message.note };
        let judged = judge_batch(&[Some(claim)], &rows).pop().flatten();
        let Some(verdict) = judged else { return Ok(SweepDecision::Keep) };
        if let SweepDecision::Fail(class) = verdict {
            self.fail_unopened(id, attempt, class).await?;
        }
        if verdict == SweepDecision::Republish {
            parked_messages::mark_unpublished(self.writes(), &[(id, attempt)], Some(self.now))
                .await?;
        }
        if verdict == SweepDecision::Keep {
            parked_messages::record_kept(self.writes(), pass.lock.acquired_at(), &[id]).await?;
        }
        Ok(verdict)
    }

    async fn finish_pass(&mut self, pass: Pass, cut: Cut) -> Result<(), Stop> {
        if pass.left == 0 && cut == Cut::No && self.parts.sweep_republishes {
            let (began, mut after) = (pass.lock.acquired_at(), ScanPosition::START);
            while let Some(unpublished) =
                mark_unseen_unpublished(self.writes(), began, false, after, 1_000, Some(self.now))
                    .await?
            {
                after = unpublished.upto;
            }
        }
        pass.lock.release().await?;
        Ok(())
    }

    /// Returns the message that the pass holds to its former place.
    pub(super) async fn stop_sweep(&mut self) -> Result<(), Stop> {
        if let Some(pass) = self.sweep.take() {
            if let Some((message, _)) = pass.hand {
                self.broker.failed.insert(0, message);
            }
            pass.lock.release().await?;
        }
        Ok(())
    }
}
