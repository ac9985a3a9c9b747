//! Overlap: what a firing does while earlier executions of its job are under way.
//!
//! Decided in the transaction that claims the firing, with the job's row locked, and written there: as
//! a row that runs, a row that waits, or a row that is skipped with the reason.
//!
//! * `allow`: it runs beside them.
//! * `skip`: it is skipped.
//! * `queue`: it waits until the job is free. One firing waits; a further one is skipped, for it would
//!   only say again what the one that waits says already.
//! * `replace`: it takes the place of all of them. What has not been begun is cancelled at once, what
//!   runs is cancelled and cannot succeed any more; until it has ended, the firing waits. Of several
//!   firings that are claimed at once only the newest counts, and of several that come one after the
//!   other while one still waits, too.
//!
//! An execution that waits is a *waiter*: pending, its ticket published by nobody. It is *admitted* when
//! no other execution of the job is under way but waiters. What people ask for (a trigger, a requeue)
//! never replaces anything and is never skipped or replaced while it waits: on a job with `queue` or
//! `replace` it waits for its turn, first come, first served. On other jobs it runs at once, as ever.

use serde::{Deserialize, Serialize};

use crate::job::{Overlap, text_enum};
use crate::plan::{Disposition, SkipReason};

/// How an execution ended whose place a newer firing took.
pub const REPLACED_REASON: &str = "replaced";

/// Why an execution waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// A firing of a job whose policy is `queue`.
    Queue,
    /// A firing that replaced what still runs.
    Replace,
    /// A person triggered it, of a job whose executions run one at a time.
    Turn,
}

text_enum!(WaitReason { Queue => "queue", Replace => "replace", Turn => "turn" });

/// What of a job has not ended when a firing comes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four kinds of rows, each there or not")]
pub struct UnderWay {
    /// One with an open attempt.
    pub running: bool,
    /// One whose ticket may be opened, or whose next attempt will be due.
    pub ready: bool,
    /// A firing that waits.
    pub firing_waits: bool,
    /// A triggered execution that waits.
    pub trigger_waits: bool,
}

impl UnderWay {
    /// Whether there is anything.
    pub const fn any(self) -> bool {
        self.running || self.ready || self.firing_waits || self.trigger_waits
    }
}

impl Overlap {
    /// Whether the job's executions run one at a time, whether fired or triggered: only then may any wait.
    pub const fn one_at_a_time(self) -> bool {
        matches!(self, Self::Queue | Self::Replace)
    }

    /// Whether a firing that is claimed takes the place of what is under way.
    pub const fn replaces(self, under_way: UnderWay) -> bool {
        matches!(self, Self::Replace) && under_way.any()
    }

    /// What becomes of a firing that runs as far as its misfire policy goes. `newest`: none that is
    /// newer is claimed with it. Leaves in `under_way` what the next firing finds.
    pub const fn disposition(self, under_way: &mut UnderWay, newest: bool) -> Disposition {
        let waits = match self {
            Self::Skip if under_way.any() => return Disposition::Skipped(SkipReason::Overlap),
            Self::Queue if under_way.firing_waits => {
                return Disposition::Skipped(SkipReason::Overlap);
            }
            Self::Queue => under_way.any(),
            Self::Replace if !newest => return Disposition::Skipped(SkipReason::Replaced),
            // The others that are under way end with the claim.
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

    /// Every one there is.
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
        // A triggered execution waits in front of it, and does not take its place.
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
