//! Judges a check.

use chrono::{DateTime, TimeDelta, Utc};

use super::expected::{Expected, Missed};
use super::runs::{OpenRun, open_runs};
use super::{Check, CheckMemory, Endpoint, Ping, PingKind, delta, last_ping, sentences};
use crate::monitor::next_check::recovery_poll;
use crate::monitor::settle::{Limits, Tally, Violation, settle};
use crate::monitor::{Cause, Change};

/// How long after its last sign a process that accepts pings counts as up: longer than the time between two signs.
const ENDPOINT_SILENCE: TimeDelta = TimeDelta::seconds(5);
/// When a check is looked at again whose deadline has passed while nobody accepts pings: soon at first, and seldom after a minute without
/// pings, so that a hundred thousand checks cost little while a server is down for long.
const BLIND_POLL: (TimeDelta, TimeDelta) = (TimeDelta::seconds(1), TimeDelta::minutes(1));

/// Why an incident of a check may be open.
pub const CAUSES: [Cause; 4] = [Cause::Missed, Cause::TooLong, Cause::Failed, Cause::NeverRan];

/// What a judgement found.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckJudgement {
    /// What the check remembers from now on.
    pub memory: CheckMemory,
    /// The next instant at which something can be found without a ping; `None`: only a ping or a person can change anything.
    pub next_check: Option<DateTime<Utc>>,
    /// What happened; `None`: nothing that an incident has to say.
    pub change: Option<Change>,
}

/// Judges a check at `now`. Repeated with what it returned, it finds nothing new.
pub fn judge(check: &Check, memory: &CheckMemory, now: DateTime<Utc>) -> CheckJudgement {
    let mut memory = memory.clone();
    if check.is_paused || check.deleted_at.is_some() {
        let detail = if check.is_paused { sentences::paused() } else { sentences::deleted() };
        let change = memory.is_open.then_some(Change::Recovered { detail });
        return CheckJudgement { memory: CheckMemory::default(), next_check: None, change };
    }
    memory.counted.retain(|id| check.pings.iter().any(|ping| ping.id == *id));
    let mut violations = failures(check, &mut memory);
    let limit = check.spec.max_runtime.unwrap_or(check.spec.grace);
    let observed = check.endpoint.map(|endpoint| observed_until(endpoint, now));
    let (over, under_way) = runs(check, delta(limit), observed);
    for run in over.iter().filter(|run| run.at >= check.changed_at) {
        let deadline = run.at + delta(limit);
        if memory.counted.contains(&run.start) {
            continue;
        }
        let is_swallowed =
            check.endpoint.is_some_and(|endpoint| endpoint.pause().touches(run.at, deadline));
        let is_forgiven = is_swallowed && can_be_forgiven(check, &memory, run);
        memory.counted.push(run.start);
        if !is_forgiven {
            let detail = sentences::too_long(run.at, limit);
            violations.push(violation(deadline, Cause::TooLong, detail, 1));
        }
    }
    let not_before = over.iter().map(|run| run.at + delta(limit)).max();
    // While a run is under way, its end is expected, and nothing else.
    if under_way.is_empty()
        && let (Some(observed), Some(endpoint)) = (observed, check.endpoint)
        && let Some(settled) =
            Expected::of(check, &memory, not_before).settle(observed, endpoint.pause())
    {
        memory.settled_to = Some(settled.to);
        violations.extend(settled.missed.map(|missed| missed_violation(check, &missed)));
    }
    violations.sort_by_key(|violation| violation.at);
    let change = count(check, &mut memory, violations);
    let deadlines = if under_way.is_empty() {
        let next = Expected::of(check, &memory, not_before).next();
        next.map(|next| next + delta(check.spec.grace)).into_iter().collect()
    } else {
        under_way.iter().map(|run| run.at + delta(limit)).collect()
    };
    let next_check = next_check(check, &memory, deadlines, now);
    CheckJudgement { memory, next_check, change }
}

fn violation(at: DateTime<Utc>, cause: Cause, detail: String, occurrences: u32) -> Violation {
    debug_assert!(CAUSES.contains(&cause), "{cause:?}");
    Violation { at, cause, detail, execution: None, occurrences }
}

/// The failures that are not counted yet; counts them.
fn failures(check: &Check, memory: &mut CheckMemory) -> Vec<Violation> {
    let is_new = |ping: &&Ping| {
        ping.kind == PingKind::Fail
            && ping.at >= check.changed_at
            && !memory.counted.contains(&ping.id)
    };
    let new: Vec<&Ping> = check.pings.iter().filter(is_new).collect();
    memory.counted.extend(new.iter().map(|ping| ping.id));
    new.into_iter()
        .map(|ping| violation(ping.at, Cause::Failed, sentences::failed(ping), 1))
        .collect()
}

/// Whether the run before it has ended, as far as anybody knows: a job that never ends is not forgiven again and again.
fn can_be_forgiven(check: &Check, memory: &CheckMemory, run: &OpenRun) -> bool {
    let before = check.pings.iter().rev().skip_while(|ping| ping.id != run.start).skip(1);
    let mut before = before.filter(|ping| ping.kind != PingKind::Log);
    before
        .find(|ping| ping.kind != PingKind::Start || memory.counted.contains(&ping.id))
        .is_none_or(|ping| ping.kind != PingKind::Start)
}

/// The runs whose time is over, and those that are under way as far as anybody knows.
fn runs(
    check: &Check,
    limit: TimeDelta,
    observed: Option<DateTime<Utc>>,
) -> (Vec<OpenRun>, Vec<OpenRun>) {
    let is_over = |run: &OpenRun| observed.is_some_and(|observed| run.at + limit <= observed);
    open_runs(&check.pings, limit).into_iter().partition(is_over)
}

/// Until when a ping that was sent has been accepted, but for those of the last pause.
fn observed_until(endpoint: Endpoint, now: DateTime<Utc>) -> DateTime<Utc> {
    if now - endpoint.seen_at <= ENDPOINT_SILENCE { now } else { endpoint.seen_at }
}

fn missed_violation(check: &Check, missed: &Missed) -> Violation {
    let last = last_ping(check).map(|ping| ping.at);
    let cause = if last.is_some() { Cause::Missed } else { Cause::NeverRan };
    let number = u32::try_from(missed.number).unwrap_or(u32::MAX);
    let detail = sentences::missed(missed.last, number, check.spec.grace, last);
    // At the expected instant: a ping in time that becomes visible after its deadline ends the incident.
    violation(missed.last, cause, detail, number)
}

/// Counts the violations, and decides what becomes of the incident.
fn count(check: &Check, memory: &mut CheckMemory, violations: Vec<Violation>) -> Option<Change> {
    let succeeded = check.pings.iter().filter(|ping| ping.kind == PingKind::Success);
    let successes: Vec<DateTime<Utc>> = succeeded.map(|ping| ping.at).collect();
    let CheckMemory { violations: before, violated_at, is_open, .. } = *memory;
    let mut tally = Tally { violations: before, violated_at, is_open };
    let limits = Limits {
        alert_after: check.spec.alert_after.unwrap_or(1),
        recover_after: check.spec.recover_after.unwrap_or(1),
    };
    let change = settle(&mut tally, limits, &successes, violations);
    let Tally { violations, violated_at, is_open } = tally;
    (memory.violations, memory.violated_at, memory.is_open) = (violations, violated_at, is_open);
    change
}

fn next_check(
    check: &Check,
    memory: &CheckMemory,
    deadlines: Vec<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let later = |at: DateTime<Utc>| if at > now { at } else { now + blind_poll(check, now) };
    let mut instants: Vec<DateTime<Utc>> = deadlines.into_iter().map(later).collect();
    if memory.is_open {
        let age = memory.violated_at.map_or(TimeDelta::zero(), |at| now - at);
        instants.push(now + recovery_poll(age));
    }
    instants.into_iter().min()
}

fn blind_poll(check: &Check, now: DateTime<Utc>) -> TimeDelta {
    let (soon, seldom) = BLIND_POLL;
    let is_short = check.endpoint.is_some_and(|up| now - up.seen_at < TimeDelta::minutes(1));
    if is_short { soon } else { seldom }
}
