//! Whether monitors reported what missed its deadline, and nothing else. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::Violation;

/// So long an execution must have been late under the eyes of schedulers before its monitor has to have noticed.
const PATIENCE: TimeDelta = TimeDelta::seconds(20);
/// Between two looks further apart, no scheduler that reached the database was alive for certain.
const LONGEST_ABSENCE: TimeDelta = TimeDelta::seconds(8);

/// An execution of a job that has to succeed in time, and what its monitor made of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// The execution.
    pub execution: Uuid,
    /// By when it had to succeed.
    pub deadline: DateTime<Utc>,
    /// From when on its monitor could know that it had not: the deadline, or when it was claimed after that, or had failed.
    pub from: DateTime<Utc>,
    /// When it came out of the state that has to be noticed; `None`: it is in it.
    pub until: Option<DateTime<Utc>>,
    /// When it succeeded, if it did in the end.
    pub succeeded_at: Option<DateTime<Utc>>,
    /// Whether its monitor counted it for a limit.
    pub counted_late: bool,
    /// Whether its monitor counted it for a failure.
    pub counted_failed: bool,
    /// Whether no incident was open when it was counted.
    pub silent: bool,
}

/// What monitors made of all executions, for the report.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Noticed {
    /// Executions that ended in time.
    pub in_time: u64,
    /// Executions that had to be noticed.
    pub late: u64,
}

/// Judges; `looks` are instants at which a planner reached the database, in order.
pub fn judge(
    deadlines: &[Deadline],
    looks: &[DateTime<Utc>],
    now: DateTime<Utc>,
) -> Vec<Violation> {
    deadlines.iter().filter_map(|one| judge_one(one, looks, now)).collect()
}

/// Counts them.
pub fn count(deadlines: &[Deadline], looks: &[DateTime<Utc>], now: DateTime<Utc>) -> Noticed {
    let is_late = |one: &&Deadline| must_be_noticed(one, looks, now);
    Noticed {
        in_time: deadlines.iter().filter(|one| is_in_time(one)).count() as u64,
        late: deadlines.iter().filter(is_late).count() as u64,
    }
}

fn judge_one(one: &Deadline, looks: &[DateTime<Utc>], now: DateTime<Utc>) -> Option<Violation> {
    let execution = one.execution;
    let is_counted = one.counted_late || one.counted_failed;
    if is_in_time(one) && one.counted_late {
        return Some(Violation::FalseAlarm { execution });
    }
    let is_unnoticed = !is_counted && must_be_noticed(one, looks, now);
    (is_unnoticed || one.silent).then_some(Violation::Unnoticed { execution })
}

fn is_in_time(one: &Deadline) -> bool {
    one.succeeded_at.is_some_and(|at| at < one.deadline)
}

fn must_be_noticed(one: &Deadline, looks: &[DateTime<Utc>], now: DateTime<Utc>) -> bool {
    let until = one.until.unwrap_or(now);
    let first = looks.partition_point(|at| *at < one.from);
    let seen = looks[first..].iter().take_while(|at| **at <= until);
    let watched: TimeDelta = seen
        .clone()
        .zip(seen.skip(1))
        .map(|(one, next)| *next - *one)
        .filter(|gap| *gap <= LONGEST_ABSENCE)
        .sum();
    watched >= PATIENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn every(seconds: std::ops::Range<i64>) -> Vec<DateTime<Utc>> {
        seconds.step_by(5).map(at).collect()
    }

    /// Due by second 10.
    fn ended(second: i64) -> Deadline {
        Deadline {
            execution: Uuid::nil(),
            deadline: at(10),
            from: at(10),
            until: Some(at(second)),
            succeeded_at: Some(at(second)),
            counted_late: false,
            counted_failed: false,
            silent: false,
        }
    }

    fn of(one: Deadline, looks: &[DateTime<Utc>]) -> Vec<&'static str> {
        judge(&[one], looks, at(1_000)).iter().map(Violation::kind).collect()
    }

    #[test]
    fn what_ended_in_time_must_not_be_counted_and_what_was_late_for_long_must() {
        let looks = every(0..100);
        assert_eq!(of(ended(9), &looks), Vec::<&str>::new());
        assert_eq!(of(Deadline { counted_late: true, ..ended(9) }, &looks), ["false alarm"]);
        // It failed, somebody requeued it, and it succeeded in time.
        assert_eq!(of(Deadline { counted_failed: true, ..ended(9) }, &looks), Vec::<&str>::new());
        assert_eq!(of(ended(12), &looks), Vec::<&str>::new(), "nobody can look that soon");
        assert_eq!(of(ended(40), &looks), ["unnoticed"]);
        assert_eq!(of(Deadline { counted_late: true, ..ended(40) }, &looks), Vec::<&str>::new());
        let open = Deadline { until: None, succeeded_at: None, ..ended(0) };
        assert_eq!(of(open.clone(), &looks), ["unnoticed"]);
        let silent = Deadline { counted_late: true, silent: true, ..open };
        assert_eq!(of(silent, &looks), ["unnoticed"]);
    }

    #[test]
    fn what_was_late_while_no_scheduler_lived_need_not_be_noticed() {
        let away = [every(0..15), every(36..60)].concat();
        assert_eq!(of(ended(40), &away), Vec::<&str>::new());
        assert_eq!(of(ended(60), &away), ["unnoticed"]);
        assert_eq!(count(&[ended(9), ended(60)], &away, at(99)), Noticed { in_time: 1, late: 1 });
    }
}
