//! Overlap: the disposition of a firing while earlier executions of its job are under way.
//!
//! Decided in the transaction that claims the firing, with the job's row locked, and written there: as a row that
//! runs, a row that waits, or a row that is skipped with the reason.
//!
//! * `allow`: it runs beside them.
//! * `skip`: it is skipped.
//! * `queue`: it waits until the job is free. One firing waits; a further one is skipped, because it would add
//!   nothing to the waiting one.
//! * `replace`: it replaces all of them. Executions that have not begun are cancelled at once, a running one is
//!   cancelled and cannot succeed any more; until it has ended, the firing waits. Of several firings that are claimed
//!   at once, or of several that come while one still waits, only the newest counts.
//!
//! An execution that waits is a *waiter*: pending, with an unpublished ticket that relays skip. It is *admitted* when
//! all other executions of the job under way are waiters. Executions that people request (a trigger, a requeue) never
//! replace others and are never skipped or replaced while they wait: on a job with `queue` or `replace` they wait for
//! their turn, first come, first served. On other jobs they run at once.

use serde::{Deserialize, Serialize};

use super::{Disposition, SkipReason};
use crate::job::Overlap;
use crate::text_enum::text_enum;

/// The reason of an execution that a newer firing has replaced.
pub const REPLACED_REASON: &str = "replaced";

/// Why an execution waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// A firing of a job whose policy is `queue`.
    Queue,
    /// A firing that replaced a running execution.
    Replace,
    /// A trigger, for a job whose executions run one at a time.
    Turn,
}

text_enum!(WaitReason { Queue => "queue", Replace => "replace", Turn => "turn" });

/// The job's executions that have not ended when a firing comes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four kinds of rows, each there or not")]
pub struct UnderWay {
    /// Whether one has an open attempt.
    pub running: bool,
    /// Whether one has a ticket that may be opened, or a next attempt.
    pub ready: bool,
    /// Whether a firing waits.
    pub firing_waits: bool,
    /// Whether a triggered execution waits.
    pub trigger_waits: bool,
}

impl UnderWay {
    /// Returns whether there is any.
    pub const fn any(self) -> bool {
        self.running || self.ready || self.firing_waits || self.trigger_waits
    }
}

impl Overlap {
    /// Returns whether the job's executions run one at a time, whether fired or triggered: only then may any wait.
    pub const fn one_at_a_time(self) -> bool {
        matches!(self, Self::Queue | Self::Replace)
    }

    /// Returns whether a claimed firing replaces the executions under way.
    pub const fn replaces(self, under_way: UnderWay) -> bool {
        matches!(self, Self::Replace) && under_way.any()
    }

    /// Returns the disposition of a firing that the misfire policy lets run. `newest`: no newer one is claimed with
    /// it. Updates `under_way` for the next firing.
    pub const fn disposition(self, under_way: &mut UnderWay, newest: bool) -> Disposition {
        let waits = match self {
            Self::Skip if under_way.any() => return Disposition::Skipped(SkipReason::Overlap),
            Self::Queue if under_way.firing_waits => {
                return Disposition::Skipped(SkipReason::Overlap);
            }
            Self::Queue => under_way.any(),
            Self::Replace if !newest => return Disposition::Skipped(SkipReason::Replaced),
            // The others under way end with the claim.
            Self::Replace => under_way.running || under_way.trigger_waits,
            Self::Allow | Self::Skip => false,
        };
        if waits {
            under_way.firing_waits = true;
            let why =
                if matches!(self, Self::Queue) { WaitReason::Queue } else { WaitReason::Replace };
            Disposition::Waits(why)
        } else {
            under_way.ready = true;
            Disposition::Run
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: UnderWay =
        UnderWay { running: false, ready: false, firing_waits: false, trigger_waits: false };
    const RUNNING: UnderWay = UnderWay { running: true, ..NOTHING };
    const READY: UnderWay = UnderWay { ready: true, ..NOTHING };
    const OVERLAP: Disposition = Disposition::Skipped(SkipReason::Overlap);

    /// Yields all combinations.
    fn all() -> impl Iterator<Item = UnderWay> {
        (0..16_u8).map(|bits| UnderWay {
            running: bits & 1 > 0,
            ready: bits & 2 > 0,
            firing_waits: bits & 4 > 0,
            trigger_waits: bits & 8 > 0,
        })
    }

    fn of(policy: Overlap, mut under_way: UnderWay) -> Disposition {
        policy.disposition(&mut under_way, true)
    }

    #[test]
    fn a_free_job_runs_whatever_its_policy() {
        for policy in [Overlap::Allow, Overlap::Skip, Overlap::Queue, Overlap::Replace] {
            assert_eq!(of(policy, NOTHING), Disposition::Run, "{policy:?}");
            assert!(!policy.replaces(NOTHING));
        }
    }

    #[test]
    fn one_firing_is_queued_and_those_behind_it_are_skipped() {
        let mut under_way = RUNNING;
        let each = [(); 3].map(|()| Overlap::Queue.disposition(&mut under_way, false));
        assert_eq!(each, [Disposition::Waits(WaitReason::Queue), OVERLAP, OVERLAP]);
        // A triggered execution waits in front of it, and is not replaced.
        let triggered = UnderWay { trigger_waits: true, ..NOTHING };
        assert_eq!(of(Overlap::Queue, triggered), Disposition::Waits(WaitReason::Queue));
    }

    #[test]
    fn a_replacement_waits_only_for_what_the_claim_cannot_end() {
        let waits = Disposition::Waits(WaitReason::Replace);
        assert_eq!(of(Overlap::Replace, RUNNING), waits);
        assert_eq!(of(Overlap::Replace, READY), Disposition::Run);
        assert_eq!(
            of(Overlap::Replace, UnderWay { firing_waits: true, ..NOTHING }),
            Disposition::Run
        );
        assert_eq!(of(Overlap::Replace, UnderWay { trigger_waits: true, ..NOTHING }), waits);
        let older = Overlap::Replace.disposition(&mut RUNNING.clone(), false);
        assert_eq!(older, Disposition::Skipped(SkipReason::Replaced));
    }

    #[test]
    fn no_policy_but_allow_lets_a_firing_run_beside_what_runs() {
        for under_way in all() {
            let runs = |policy| of(policy, under_way) == Disposition::Run;
            assert!(runs(Overlap::Allow));
            assert_eq!(runs(Overlap::Skip), !under_way.any());
            assert_eq!(runs(Overlap::Queue), !under_way.any());
            assert!(!(runs(Overlap::Replace) && under_way.running));
            assert!(!matches!(of(Overlap::Skip, under_way), Disposition::Waits(_)));
        }
    }
}
