//! The parts that heal, as data: without any of them something waits for ever.
//!
//! Fences keep wrong things from happening; their absence shows in a single state. That a right thing
//! happens in the end is the work of these, and their absence shows only in where states lead. So
//! they are what the checks of reachability and of endless exchanges are tried on.

/// One part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// The relay, which publishes what its debtor could not.
    Relay,
    /// The reconciler, which misses tickets that are gone.
    Reconciler,
    /// The rescuer, which ends the attempts of workers that are not heard of.
    Rescuer,
    /// The end of the sweep's pass, which owes again what was not seen.
    SweepOwes,
    /// The sweep's removal of messages that are not true.
    SweepRemoves,
    /// The counting of retries.
    Budget,
    /// The counting of snoozes.
    Patience,
}
