//! The checks of held catch-up, and their bounds.

use sexton_model::job::MisfirePolicy;

use super::{Bounds, Fence, HeldCatchUp, Property};
use crate::explorer::Mutant;

const WHOLE: Bounds = Bounds {
    jobs: 1,
    planners: 2,
    operators: 1,
    jumps: 1,
    deaths: 0,
    policy: MisfirePolicy::FireOnce,
    without: None,
    discards_all: false,
};

/// In the test build.
pub const SMALL: [Bounds; 1] = [Bounds { planners: 1, deaths: 1, ..WHOLE }];

/// Within minutes.
pub const LARGE: [Bounds; 2] =
    [WHOLE, Bounds { planners: 1, policy: MisfirePolicy::FireAll, deaths: 1, ..WHOLE }];

/// Returns the model without `fence`, in the smallest bounds in which it is needed.
fn without_fence(fence: Fence) -> Mutant<HeldCatchUp> {
    let operators = 1 + usize::from(fence == Fence::ReadLocked);
    let deaths = u8::from(fence == Fence::WithCursor);
    let bounds = Bounds { without: Some(fence), operators, deaths, ..WHOLE };
    Mutant {
        heading: format!("Without {}", fence.title()),
        explanation: fence.explanation(),
        model: HeldCatchUp::new(bounds),
        breaks: fence.breaks(),
    }
}

/// Returns the models without each fence, and one violation that no fence prevents.
pub fn mutants() -> Vec<Mutant<HeldCatchUp>> {
    let limit = Mutant {
        heading: "A discard before the planners".to_owned(),
        explanation: "A limit, not a promise: a discard decides what is set aside, and the policies decide what became \
                      late and no planner has come to yet.",
        model: HeldCatchUp::new(Bounds { discards_all: true, ..SMALL[0] }),
        breaks: Property::NothingLateUnasked,
    };
    Fence::ALL.map(without_fence).into_iter().chain([limit]).collect()
}
