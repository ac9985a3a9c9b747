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
    let (old, new_state) = (before.planners[who], after.planners[who]);
    let held = |held| if held { "a hold" } else { "no hold" };
    match old.phase {
        Phase::Idle => format!("begins a transaction at hour {}", new_state.now),
        Phase::Begun if new_state.phase == Phase::HalfRead => {
            format!("reads {}", held(new_state.held))
        }
        Phase::Begun => format!(
            "reads that hour {} was seen last, and {}",
            new_state.seen,
            held(new_state.held)
        ),
        Phase::HalfRead => format!("reads that hour {} was seen last", new_state.seen),
        Phase::Read => match (new_state.phase, new_state.clock) {
            (Phase::Asks(_), _) => "finds a jump, and asks for the clock's row".to_owned(),
            (_, Some(Some(at))) => {
                format!("finds no jump, and writes hour {at}, not yet committed")
            }
            _ => "finds no jump".to_owned(),
        },
        Phase::Asks(_) | Phase::AsksAnew => "locks the clock's row".to_owned(),
        Phase::Locked(at) if new_state.phase == Phase::Looked => {
            format!("judges hour {at}: somebody has noticed the jump")
        }
        Phase::Locked(at) if new_state.phase == Phase::Behind => {
            format!("commits that hour {at} was seen")
        }
        Phase::Locked(at) => format!(
            "writes {} and hour {at}, not yet committed",
            if new_state.opens { "a hold" } else { "no second hold" }
        ),
        Phase::Behind => "writes a hold, not yet committed".to_owned(),
        Phase::Noticed | Phase::Looked => match (new_state.keeps, new_state.held) {
            (true, _) => "keeps the hold from ending".to_owned(),
            (_, true) if new_state.opens && !old.opens => {
                "finds it ended, and writes another".to_owned()
            }
            (_, true) => "goes on with the hold".to_owned(),
            _ if old.held => "finds the hold ended".to_owned(),
            _ => "goes on without a hold".to_owned(),
        },
        Phase::Ready if new_state.phase == Phase::Idle => "finds nothing to do".to_owned(),
        Phase::Ready => format!("locks {}", jobs(new_state.jobs)),
        Phase::Planned => format!("commits: {}", became(before, after)),
        Phase::Aside => format!("commits the rest: {}", became(before, after)),
    }
}

fn operator(who: usize, before: &World, after: &World) -> String {
    let (old, new_state) = (before.operators[who].turn, after.operators[who].turn);
    match (old, new_state) {
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

/// Returns the changes in the rows, over all jobs.
fn became(before: &World, after: &World) -> String {
    let mut changes = Vec::new();
    if after.holds > before.holds {
        changes.push("a hold begins".to_owned());
    }
    if after.seen != before.seen {
        changes.push(format!("hour {} was seen", after.seen));
    }
    for (number, (old, new_state)) in before.jobs.iter().zip(&after.jobs).enumerate() {
        let of = |name: &str, mask: fn(&Job) -> u8| {
            let new = mask(new_state) & !mask(old);
            (new != 0).then(|| format!("{name} {}", hours(new)))
        };
        let all = [
            of("executions of", |job| job.executed),
            of("a gap of", |job| job.gaps),
            of("set aside", Job::held),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        if !all.is_empty() {
            changes.push(format!("of job {}: {}", number + 1, all.join(", ")));
        }
        if new_state.cursor != old.cursor && all.is_empty() {
            changes.push(format!("the cursor of job {} moves", number + 1));
        }
        if new_state.twice && !old.twice {
            changes.push(format!("of job {} what is in a gap already", number + 1));
        }
    }
    if changes.is_empty() { "nothing new".to_owned() } else { changes.join("; ") }
}

fn hours(mask: u8) -> String {
    let all: Vec<String> = (0..8)
        .filter(|firing| mask & (1_u8 << firing) != 0)
        .map(|firing: u8| (firing + 1).to_string())
        .collect();
    format!("the firing{} of hour {}", if all.len() == 1 { "" } else { "s" }, all.join(", "))
}
