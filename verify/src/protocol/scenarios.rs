//! The checks of the protocol, and their bounds.

use crate::explorer::Mutant;
use crate::protocol::fences::{Fence, Fences, Part};
use crate::protocol::properties::Property;
use crate::protocol::{Bounds, Protocol};

const FIRING: Bounds = Bounds {
    name: "",
    about: "",
    foreign: false,
    schedulers: 1,
    offers: [true, true],
    budgets: false,
    snoozes: false,
    stale: false,
    faults: 0,
    people: 0,
    copies: 4,
};

/// In the test build, within a minute.
pub const SMALL: [Protocol; 8] = [
    whole(Bounds { name: "faults", about: "one scheduler, any two faults", faults: 2, ..FIRING }),
    whole(Bounds {
        name: "schedulers",
        about: "two schedulers claim and relay, any fault, up to five copies",
        schedulers: 2,
        faults: 1,
        copies: 5,
        ..FIRING
    }),
    whole(Bounds { name: "people", about: "any one action of people", people: 1, ..FIRING }),
    whole(Bounds {
        name: "foreign",
        about: "a foreign message, twice, any fault",
        foreign: true,
        faults: 1,
        ..FIRING
    }),
    whole(CATALOGUES),
    whole(BUDGETS),
    whole(SNOOZES),
    whole(STALE),
];

/// Worker B lacks the task type.
const CATALOGUES: Bounds = Bounds {
    name: "catalogues",
    about: "one worker lacks the task type, any fault",
    offers: [true, false],
    faults: 1,
    ..FIRING
};

/// Attempts end in every possible way.
const BUDGETS: Bounds = Bounds {
    name: "budgets",
    about: "tasks fail, take too long and run out of memory, any fault",
    budgets: true,
    faults: 1,
    ..FIRING
};

/// Tasks snooze, which uses only the snooze budget.
const SNOOZES: Bounds = Bounds {
    name: "snoozes",
    about: "tasks ask to be run later, any fault",
    snoozes: true,
    faults: 1,
    ..FIRING
};

/// The firing may become stale.
const STALE: Bounds = Bounds {
    name: "stale",
    about: "a firing that may come too late to be begun, any fault",
    stale: true,
    faults: 1,
    ..FIRING
};

/// Within some minutes and gigabytes.
pub const LARGE: [Protocol; 8] = [
    whole(Bounds { name: "faults", about: "one scheduler, any three faults", faults: 3, ..FIRING }),
    whole(Bounds {
        name: "schedulers",
        about: "two schedulers claim and relay, any two faults",
        schedulers: 2,
        faults: 2,
        ..FIRING
    }),
    whole(Bounds {
        name: "people",
        about: "any fault and any action of people",
        faults: 1,
        people: 1,
        ..FIRING
    }),
    whole(Bounds { name: "actions", about: "any two actions of people", people: 2, ..FIRING }),
    whole(Bounds {
        name: "foreign",
        about: "a foreign message, twice, any two faults",
        foreign: true,
        faults: 2,
        ..FIRING
    }),
    whole(Bounds {
        about: "one worker lacks the task type, any two faults",
        faults: 2,
        ..CATALOGUES
    }),
    whole(Bounds {
        about: "tasks fail, take too long and run out of memory, any two faults",
        faults: 2,
        ..BUDGETS
    }),
    whole(Bounds {
        about: "a firing that may come too late to be begun, any fault and any action of people",
        people: 1,
        ..STALE
    }),
];

const fn whole(bounds: Bounds) -> Protocol {
    Protocol { bounds, fences: Fences::ALL }
}

/// Returns the protocol without `fence`, within the bounds in which that shows.
pub fn without_fence(fence: Fence) -> Mutant<Protocol> {
    let bounds = Bounds { schedulers: 2, faults: 1, ..FIRING };
    let (bounds, breaks) = match fence {
        Fence::AttemptNumber | Fence::State => (bounds, Property::OpenedOnce),
        Fence::Worker
        | Fence::Lease
        | Fence::Observation
        | Fence::OwnClock
        | Fence::RenewalFirst => (bounds, Property::OneLiveRun),
        Fence::DueTime => (bounds, Property::NeverEarly),
        Fence::UniqueKey => (bounds, Property::OneExecution),
        Fence::TicketPublishedAt => (bounds, Property::PublishedIsThere),
        Fence::NewRevision => {
            (Bounds { offers: [true, false], ..bounds }, Property::PublishedIsThere)
        }
        Fence::NewNumber => (Bounds { faults: 2, schedulers: 1, ..bounds }, Property::FailedStays),
    };
    let model = Protocol { bounds, fences: Fences::ALL.without(fence) };
    let heading = format!("Without {}", fence.title());
    Mutant { heading, explanation: fence.explanation(), model, breaks }
}

/// Returns the platform without `part`, within the bounds in which that shows.
pub fn without_part(part: Part) -> Mutant<Protocol> {
    let bounds = Bounds { faults: 1, ..FIRING };
    let (bounds, breaks) = match part {
        Part::Relay | Part::Reconciler | Part::Rescuer | Part::SweepRepublishes => {
            (bounds, Property::EndReachable)
        }
        Part::SweepRemoves => (bounds, Property::FailedQueueAgrees),
        Part::Budget => (bounds, Property::NoEndlessExchange),
        Part::Patience => {
            (Bounds { snoozes: true, faults: 0, ..bounds }, Property::NoEndlessExchange)
        }
    };
    let model = Protocol { bounds, fences: Fences::ALL.missing(part) };
    let heading = format!("Without {}", part.title());
    Mutant { heading, explanation: part.explanation(), model, breaks }
}

/// Returns all mutants, each without one fence or part.
pub fn mutants() -> Vec<Mutant<Protocol>> {
    let fences = Fence::ALL.into_iter().map(without_fence);
    fences.chain(Part::ALL.into_iter().map(without_part)).collect()
}
