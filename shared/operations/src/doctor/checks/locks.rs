//! Checks for locks of jobs that are held for too long, by the dead, or by a session that nobody uses.
//!
//! PostgreSQL does not say when an advisory lock was taken. So only what is certain counts: the session took a tick with
//! it, the attempt that holds it was opened, or the session has done nothing since.

use chrono::{DateTime, Utc};
use sexton_store::locks::{
    AdvisoryLock, LockAttempt, LockJobs, LockRow, RowState, Since, SinceBasis,
};

use super::join_first;
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};
use crate::locks::{describe_attempt, describe_jobs, describe_session};
use crate::text::{ago, duration, line};

/// What a worker may take to kill a task after its timeout, and to record that, in milliseconds.
const GRACE_MS: i64 = 60_000;
/// A session that has done nothing for this long is nobody's, in milliseconds.
const STRANDED_AFTER_MS: i64 = 86_400_000;
/// Maximum length of a name that another program wrote, in characters.
const MAX_NAME_CHARS: usize = 100;

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let Some(rows) = facts.rows() else { return };
    let locks = &rows.locks;
    judge(&locks.advisory.items, &locks.rows.items, rows.overview.now, found);
}

fn judge(
    advisory: &[AdvisoryLock],
    rows: &[LockRow],
    now: DateTime<Utc>,
    found: &mut Vec<Finding>,
) {
    let held = || advisory.iter().filter(|lock| lock.is_held);
    let stranded = held().filter_map(|lock| describe_stranded(lock, now));
    let long_keys = held()
        .filter(|lock| describe_stranded(lock, now).is_none())
        .filter_map(|lock| describe_long_key(lock, now));
    let left = rows.iter().filter_map(|row| describe_left_behind(row, now));
    let long_rows = rows
        .iter()
        .filter(|row| describe_left_behind(row, now).is_none())
        .filter_map(|row| describe_long_row(row, now));
    let evidence: [(Code, Vec<String>); 3] = [
        (Code::LockHeldTooLong, long_keys.chain(long_rows).collect()),
        (Code::LockLeftBehind, left.collect()),
        (Code::LockStranded, stranded.collect()),
    ];
    for (code, texts) in evidence.into_iter().filter(|(_, texts)| !texts.is_empty()) {
        found.push(Finding::new(code, join_first(texts)));
    }
}

/// For how long the session has done nothing.
fn idle_ms(lock: &AdvisoryLock, now: DateTime<Utc>) -> Option<i64> {
    let since = lock.session.as_ref()?.idle_since?;
    Some((now - since).num_milliseconds())
}

/// The shortest time for which the lock can be held.
fn held_ms(lock: &AdvisoryLock, now: DateTime<Utc>) -> Option<i64> {
    match lock.since {
        Some(Since { at, basis: SinceBasis::Tick | SinceBasis::Attempt }) => {
            Some((now - at).num_milliseconds())
        }
        _ => idle_ms(lock, now),
    }
}

fn describe_stranded(lock: &AdvisoryLock, now: DateTime<Utc>) -> Option<String> {
    let session = lock.session.as_ref()?;
    let idle_ms = idle_ms(lock, now).filter(|ms| *ms > STRANDED_AFTER_MS)?;
    let is_known = session.worker.is_some() || lock.tick.is_some();
    (!is_known).then(|| {
        let who = describe_session(Some(session));
        format!(
            "key {} of {} by {who}, idle for {}",
            lock.key,
            job_name(lock.attempt.as_ref(), &lock.jobs),
            duration(idle_ms)
        )
    })
}

fn describe_long_key(lock: &AdvisoryLock, now: DateTime<Utc>) -> Option<String> {
    let timeout_ms = timeout_ms(lock.attempt.as_ref(), &lock.jobs)?;
    let held_ms = held_ms(lock, now).filter(|ms| *ms > timeout_ms.saturating_add(GRACE_MS))?;
    let who = match &lock.attempt {
        Some(attempt) => describe_attempt(attempt),
        None => describe_session(lock.session.as_ref()),
    };
    Some(format!(
        "key {} of {} for {}, timeout {}: {who}",
        lock.key,
        job_name(lock.attempt.as_ref(), &lock.jobs),
        duration(held_ms),
        duration(timeout_ms)
    ))
}

fn describe_left_behind(row: &LockRow, now: DateTime<Utc>) -> Option<String> {
    let attempt = row.attempt.as_ref().filter(|_| row.state == RowState::Held)?;
    // A worker releases the row after it has recorded the end.
    attempt.finished_at.filter(|at| (now - *at).num_milliseconds() > GRACE_MS)?;
    let name = line(&row.name, MAX_NAME_CHARS);
    Some(format!(
        "{name}: {}, its time ends {}",
        describe_attempt(attempt),
        ago(row.lock_until, now)
    ))
}

fn describe_long_row(row: &LockRow, now: DateTime<Utc>) -> Option<String> {
    let timeout_ms = timeout_ms(row.attempt.as_ref(), &row.jobs)?;
    let held_ms = (now - row.locked_at).num_milliseconds();
    let is_long = row.state == RowState::Held && held_ms > timeout_ms.saturating_add(GRACE_MS);
    is_long.then(|| {
        let who = match &row.attempt {
            Some(attempt) => describe_attempt(attempt),
            None => line(&row.locked_by, MAX_NAME_CHARS),
        };
        format!(
            "row {} of {} for {}, timeout {}: {who}",
            line(&row.name, MAX_NAME_CHARS),
            job_name(row.attempt.as_ref(), &row.jobs),
            duration(held_ms),
            duration(timeout_ms)
        )
    })
}

fn job_name(attempt: Option<&LockAttempt>, jobs: &LockJobs) -> String {
    let job = attempt.map(|attempt| attempt.job.clone());
    job.or_else(|| describe_jobs(jobs)).unwrap_or_default()
}

fn timeout_ms(attempt: Option<&LockAttempt>, jobs: &LockJobs) -> Option<i64> {
    attempt.map(|attempt| attempt.timeout_ms).or(jobs.timeout_ms)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use sexton_store::locks::{LockKey, LockSession};

    use super::*;

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn minutes_ago(minutes: i64) -> DateTime<Utc> {
        NOW - TimeDelta::minutes(minutes)
    }

    /// Key 5101 of a job with a timeout of one minute, in a session that has been idle for as many minutes.
    fn lock(idle_minutes: Option<i64>) -> AdvisoryLock {
        AdvisoryLock {
            key: LockKey::Number(5101),
            purpose: None,
            is_shared: false,
            is_held: true,
            since: Some(Since { at: minutes_ago(100_000), basis: SinceBasis::Session }),
            session: Some(LockSession {
                pid: 4123,
                login: Some("ann".to_owned()),
                application: "billing-api".to_owned(),
                worker: None,
                client_address: None,
                state: Some("idle".to_owned()),
                idle_since: idle_minutes.map(minutes_ago),
                query: None,
            }),
            jobs: LockJobs { names: vec!["a.b".to_owned()], count: 1, timeout_ms: Some(60_000) },
            attempt: None,
            tick: None,
            executions_waiting: 0,
        }
    }

    fn findings(lock: &AdvisoryLock) -> Vec<Code> {
        let mut found = Vec::new();
        judge(std::slice::from_ref(lock), &[], NOW, &mut found);
        found.iter().map(|one| one.code).collect()
    }

    #[test]
    fn a_lock_is_stranded_in_a_session_of_nobody_after_a_day() {
        let day = 24 * 60;
        assert_eq!(findings(&lock(Some(day + 1))), [Code::LockStranded]);
        // A day may be a pause, which is too long for the job all the same.
        assert_eq!(findings(&lock(Some(day))), [Code::LockHeldTooLong]);
        let took_tick = AdvisoryLock { tick: Some(minutes_ago(day)), ..lock(Some(day + 1)) };
        assert_eq!(findings(&took_tick), [Code::LockHeldTooLong]);
        let mut of_worker = lock(Some(day + 1));
        of_worker.session.as_mut().unwrap().worker = Some("w1".to_owned());
        assert_eq!(findings(&of_worker), [Code::LockHeldTooLong]);
        let waits = AdvisoryLock { is_held: false, ..lock(Some(day + 1)) };
        assert_eq!(findings(&waits), []);
    }

    /// A session that is at work may have taken its lock just now, however old it is.
    #[test]
    fn a_key_counts_as_long_only_from_what_is_certain() {
        assert_eq!(findings(&lock(None)), []);
        assert_eq!(findings(&lock(Some(2))), [], "within the grace");
        assert_eq!(findings(&lock(Some(3))), [Code::LockHeldTooLong]);
        for basis in [SinceBasis::Tick, SinceBasis::Attempt] {
            let since = |minutes| Some(Since { at: minutes_ago(minutes), basis });
            let long = AdvisoryLock { since: since(3), ..lock(None) };
            assert_eq!(findings(&long), [Code::LockHeldTooLong]);
            assert_eq!(findings(&AdvisoryLock { since: since(2), ..lock(None) }), []);
        }
        let unnamed = AdvisoryLock { jobs: LockJobs::default(), ..lock(Some(60)) };
        assert_eq!(findings(&unnamed), [], "nobody knows how long it may take");
    }
}
