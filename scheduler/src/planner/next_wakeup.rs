//! Computes when the planner wakes. Pure.

use std::time::Duration;

use sexton_store::firing::NextClaim;

use super::report::PlannerReport;

/// The sleep while all due jobs are locked, mostly by another replica that is claiming them: the round just
/// before found none that it could claim.
const LOCKED_JOBS_PAUSE: Duration = Duration::from_millis(50);

/// Returns how long to sleep after a round whose query for the next claim took `round_trip`. A job that can be
/// claimed now became so during the round if the round claimed something, or read the rows before that instant;
/// otherwise another replica holds it.
pub(crate) fn sleep_after_round(
    next: NextClaim,
    report: &PlannerReport,
    round_trip: Duration,
    poll: Duration,
) -> Duration {
    let meanwhile = report.found() > 0 || next.at > report.looked_at;
    let overdue = if meanwhile { Duration::ZERO } else { LOCKED_JOBS_PAUSE };
    sleep_until(next, round_trip, poll).unwrap_or(overdue)
}

/// Returns how long to sleep after an answer that took `round_trip`; `None` if a job can be claimed by now. The
/// database read its clock about halfway through it.
fn sleep_until(next: NextClaim, round_trip: Duration, poll: Duration) -> Option<Duration> {
    let Some(at) = next.at else { return Some(poll) };
    match (at - next.now).to_std() {
        Ok(Duration::ZERO) | Err(_) => None,
        Ok(left) => Some(left.saturating_sub(round_trip / 2).min(poll)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Duration = Duration::from_secs(5);

    #[test]
    fn the_sleep_ends_when_the_next_firing_is_due_by_the_databases_clock() {
        let now = "2026-01-01T08:00:00Z".parse().unwrap();
        let ms = Duration::from_millis;
        let due = |in_ms| NextClaim { now, at: Some(now + chrono::Duration::milliseconds(in_ms)) };
        assert_eq!(sleep_until(due(800), ms(2), ms(5_000)), Some(ms(799)));
        assert_eq!(sleep_until(due(90_000), ms(2), ms(5_000)), Some(ms(5_000)));
        assert_eq!(sleep_until(due(1), ms(4), ms(5_000)), Some(ms(0)));
        assert_eq!(sleep_until(NextClaim { now, at: None }, ms(2), ms(5_000)), Some(ms(5_000)));
    }

    #[test]
    fn a_job_that_is_due_now_is_distinguished_from_one_due_later() {
        let now = "2026-01-01T08:00:00Z".parse().unwrap();
        for at in [now, now - chrono::Duration::seconds(5)] {
            let due = NextClaim { now, at: Some(at) };
            assert_eq!(sleep_until(due, Duration::ZERO, POLL), None);
        }
    }

    #[test]
    fn what_became_due_since_the_look_is_claimed_at_once_and_what_others_have_is_waited_for() {
        let at = "2026-01-01T08:00:00Z".parse().unwrap();
        let due = NextClaim { now: at + chrono::Duration::milliseconds(1), at: Some(at) };
        let round = |claimed, looked_ms| PlannerReport {
            claimed,
            looked_at: Some(at + chrono::Duration::milliseconds(looked_ms)),
            ..PlannerReport::default()
        };
        let sleep_after_round = |report| sleep_after_round(due, &report, Duration::ZERO, POLL);
        assert_eq!(sleep_after_round(round(0, -1)), Duration::ZERO, "woken a little too early");
        assert_eq!(sleep_after_round(round(1, 0)), Duration::ZERO);
        assert_eq!(sleep_after_round(round(0, 0)), LOCKED_JOBS_PAUSE);
    }
}
