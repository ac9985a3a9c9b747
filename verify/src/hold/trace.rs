//! Histories of held catch-up in words.

use super::{Action, HeldCatchUp, JOBS, Job, Phase, Turn, Verdict, World};
use crate::explorer::History;

/// One line for each action.
pub(super) fn describe(history: &History<HeldCatchUp>) -> Vec<String> {
    let mut before = history.start;
    let mut lines = Vec::with_capacity(history.steps.len());
    for (action, after) in &history.steps {
        lines.push(line(*action, &before, after));
        before = *after;
    }
    lines
}

fn line(action: Action, before: &World, after: &World) -> String {
    match action {
        Action::Plan(who) => format!("planner {} {}", who + 1, planner(who, before, after)),
        Action::PlannerDies(who) => {
            format!("planner {} dies, and its transaction with it", who + 1)
        }
        Action::Decide(who, verdict, only) => {
            let what = match verdict {
                Verdict::Release => "release",
                Verdict::Discard => "discard",
            };
            let of = only.map_or("everything".to_owned(), |job| format!("job {}", job + 1));
            format!("operator {} begins to {what} {of}", who + 1)
        }
        Action::Settle(who) => format!("operator {} {}", who + 1, operator(who, before, after)),
        Action::OperatorDies(who) => format!("the program of operator {} dies", who + 1),
        Action::Passes => format!("an hour passes: it is hour {}", after.clock),
        Action::Jump(to) if to > before.clock => format!("the clock jumps ahead to hour {to}"),
        Action::Jump(to) => format!("the clock jumps back to hour {to}"),
    }
}

fn planner(who: usize, before: &World, after: &World) -> String {
    let (was, is) = (before.planners[who], after.planners[who]);
    let held = |held| if held { "a hold" } else { "no hold" };
    match was.phase {
        Phase::Idle => format!("begins a transaction at hour {}", is.now),
        Phase::Begun if is.phase == Phase::HalfRead => format!("reads {}", held(is.held)),
        Phase::Begun => format!("reads that hour {} was seen last, and {}", is.seen, held(is.held)),
        Phase::HalfRead => format!("reads that hour {} was seen last", is.seen),
        Phase::Read => match (is.phase, is.clock) {
            (Phase::Asks(_), _) => "finds a jump, and asks for the clock's row".to_owned(),
            (_, Some(Some(at))) => {
                format!("finds no jump, and writes hour {at}, not yet committed")
            }
            _ => "finds no jump".to_owned(),
        },
        Phase::Asks(_) | Phase::AsksAnew => "locks the clock's row".to_owned(),
        Phase::Locked(at) if is.phase == Phase::Looked => {
            format!("judges hour {at}: somebody has noticed the jump")
        }
        Phase::Locked(at) if is.phase == Phase::Behind => {
            format!("commits that hour {at} was seen")
        }
        Phase::Locked(at) => format!(
            "writes {} and hour {at}, not yet committed",
            if is.opens { "a hold" } else { "no second hold" }
        ),
        Phase::Behind => "writes a hold, not yet committed".to_owned(),
        Phase::Noticed | Phase::Looked => match (is.keeps, is.held) {
            (true, _) => "keeps the hold from ending".to_owned(),
            (_, true) if is.opens && !was.opens => "finds it ended, and writes another".to_owned(),
            (_, true) => "goes on with the hold".to_owned(),
            _ if was.held => "finds the hold ended".to_owned(),
            _ => "goes on without a hold".to_owned(),
        },
        Phase::Ready if is.phase == Phase::Idle => "finds nothing to do".to_owned(),
        Phase::Ready => format!("locks {}", jobs(is.jobs)),
        Phase::Planned => format!("commits: {}", became(before, after)),
        Phase::Aside => format!("commits the rest: {}", became(before, after)),
    }
}

fn operator(who: usize, before: &World, after: &World) -> String {
    let (was, is) = (before.operators[who].turn, after.operators[who].turn);
    match (was, is) {
        (Turn::Next(_), Turn::Locked(job)) => format!("locks job {}", job + 1),
        (Turn::Next(_), Turn::Next(job)) => format!("reads what is set aside of job {}", job + 1),
        (Turn::Next(_), _) => "finds nothing else set aside".to_owned(),
        (Turn::Locked(_), _) => format!("commits: {}", became(before, after)),
        (Turn::Ending, Turn::EndLocked) => "locks the hold".to_owned(),
        (Turn::Ending, Turn::SawNothing) => "sees that nothing is set aside".to_owned(),
        _ if after.holds < before.holds => "ends the hold".to_owned(),
        _ => "leaves the hold as it is".to_owned(),
    }
}

fn jobs(mask: u8) -> String {
    let all: Vec<String> = (0..JOBS)
        .filter(|job| mask & (1 << job) != 0)
        .map(|job| format!("job {}", job + 1))
        .collect();
    if all.is_empty() { "no job".to_owned() } else { all.join(" and ") }
}

/// What is new in the rows, over all jobs.
fn became(before: &World, after: &World) -> String {
    let mut told = Vec::new();
    if after.holds > before.holds {
        told.push("a hold begins".to_owned());
    }
    if after.seen != before.seen {
        told.push(format!("hour {} was seen", after.seen));
    }
    for (number, (was, is)) in before.jobs.iter().zip(&after.jobs).enumerate() {
        let of = |name: &str, mask: fn(&Job) -> u8| {
            let new = mask(is) & !mask(was);
            (new != 0).then(|| format!("{name} {}", hours(new)))
        };
        let all = [
            of("executions of", |job| job.executed),
            of("a gap of", |job| job.gaps),
            of("set aside", Job::held),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        if !all.is_empty() {
            told.push(format!("of job {}: {}", number + 1, all.join(", ")));
        }
        if is.cursor != was.cursor && all.is_empty() {
            told.push(format!("the cursor of job {} moves", number + 1));
        }
        if is.twice && !was.twice {
            told.push(format!("of job {} what is in a gap already", number + 1));
        }
    }
    if told.is_empty() { "nothing new".to_owned() } else { told.join("; ") }
}

fn hours(mask: u8) -> String {
    let all: Vec<String> = (0..8)
        .filter(|firing| mask & (1_u8 << firing) != 0)
        .map(|firing: u8| (firing + 1).to_string())
        .collect();
    format!("the firing{} of hour {}", if all.len() == 1 { "" } else { "s" }, all.join(", "))
}
