//! A round of sending, whatever is sent: claims what is due, destination by destination, and sends to several at the same time.
//!
//! One claim is under way to each destination, so a receiver that hangs delays its destination alone. Of the destinations that are
//! sent to at the same time, at most half are some whose last claim was not accepted.

use std::collections::HashSet;
use std::future::ready;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use sexton_store::Now;
use sexton_store::alerts::claim::ClaimFilter;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::background_loop::LoopError;

/// Destinations that are sent to at the same time.
const MAX_IN_FLIGHT: usize = 8;
/// Of these, destinations whose last claim was not accepted.
const MAX_FAILING: usize = 4;
/// How often a round looks for further work while it sends.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Claims and looks for further work in one round.
const MAX_CLAIMS: usize = 10_000;

/// What a claim found.
pub(super) enum Claimed<C> {
    /// Nothing is due.
    Nothing,
    /// Something was dropped or put off; there may be more.
    Dropped,
    /// Something is to be sent.
    Delivery(C),
}

/// What is sent: how it is claimed, sent and recorded.
pub(super) trait Deliveries: Sync {
    /// What is sent to a destination at once.
    type Claim: Send;
    /// What became of it.
    type Settled: Send;
    /// What a round did.
    type Report: Default + Send;
    /// Passes the fault point between a claim and its sending.
    fn pass_claimed();

    /// Passes the fault point behind the record of what became of it.
    fn pass_recorded();

    /// Does what is due beside the sending, in a bounded step. A round does it before each claim, since one that is busy may last for
    /// hours. An error holds up no sending; the round reports it at its end.
    fn tidy(
        &self,
        _now: Now,
        _report: &mut Self::Report,
    ) -> impl Future<Output = Result<(), LoopError>> + Send {
        ready(Ok(()))
    }

    /// Claims what is due to a destination that `filter` allows.
    fn claim(
        &self,
        filter: ClaimFilter<'_>,
        now: Now,
        report: &mut Self::Report,
    ) -> impl Future<Output = Result<Claimed<Self::Claim>, LoopError>> + Send;

    /// Returns a claim's destination, and whether its last claim was not accepted.
    fn destination(claim: &Self::Claim) -> (String, bool);

    /// Sends a claim, and records what became of it.
    fn deliver(&self, claim: Self::Claim, now: Now) -> impl Future<Output = Self::Settled> + Send;

    /// Adds to the report. An error: it could not be recorded.
    fn add(report: &mut Self::Report, settled: Self::Settled) -> Result<(), LoopError>;
}

/// Sends everything that is due. Once `stop` is cancelled, nothing more is claimed.
pub(super) async fn run_round<D: Deliveries>(
    deliveries: &D,
    stop: &CancellationToken,
    now: Now,
) -> Result<D::Report, LoopError> {
    let mut report = D::Report::default();
    let (mut outcome, mut tidied) = (Ok(()), Ok(()));
    let mut in_flight = FuturesUnordered::new();
    let mut busy: HashSet<String> = HashSet::new();
    let mut failing: HashSet<String> = HashSet::new();
    // A round ends when nothing is left; one that claims without end would never report.
    for _ in 0..MAX_CLAIMS {
        if !stop.is_cancelled() {
            tidied = tidied.and(deliveries.tidy(now, &mut report).await);
        }
        let may_claim = in_flight.len() < MAX_IN_FLIGHT && !stop.is_cancelled();
        let claimed = if may_claim && outcome.is_ok() {
            let names: Vec<String> = busy.iter().cloned().collect();
            let allows_failing = failing.len() < MAX_FAILING;
            let filter = ClaimFilter { busy: &names, allows_failing };
            deliveries.claim(filter, now, &mut report).await
        } else {
            Ok(Claimed::Nothing)
        };
        match claimed {
            Ok(Claimed::Delivery(claim)) => {
                D::pass_claimed();
                let (name, fails) = D::destination(&claim);
                busy.insert(name.clone());
                if fails {
                    failing.insert(name.clone());
                }
                in_flight.push(async move { (name, deliveries.deliver(claim, now).await) });
                continue;
            }
            Ok(Claimed::Dropped) => continue,
            Ok(Claimed::Nothing) => {}
            // What is under way ends and is recorded first.
            Err(error) => outcome = Err(error),
        }
        let settled = tokio::select! {
            settled = in_flight.next() => settled,
            () = sleep(LOOK_INTERVAL), if !in_flight.is_empty() => continue,
        };
        let Some((name, settled)) = settled else { break };
        busy.remove(&name);
        failing.remove(&name);
        let added = D::add(&mut report, settled);
        outcome = outcome.and(added);
        if outcome.is_ok() {
            D::pass_recorded();
        }
    }
    while let Some((_, settled)) = in_flight.next().await {
        outcome = outcome.and(D::add(&mut report, settled));
    }
    outcome.and(tidied).map(|()| report)
}
