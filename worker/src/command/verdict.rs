//! What the end of a command means: a pure function of what the guard said and what was asked.

use rustix::process::Signal;
use sexton_model::duration;

use crate::catalogue::format_size;
use crate::executor::{Outcome, StopReason, TaskEnd};
use crate::guard::TaskLimits;
use crate::guard::protocol::{Refusal, SHELL_SIGNALLED, Status, Stopped};

/// `EX_TEMPFAIL`: the task asks to be tried again later.
const EXIT_RETRY: i32 = 75;

/// `EX_DATAERR`: trying again cannot help.
const EXIT_PERMANENT: i32 = 65;

/// Why the worker told the guard to stop the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Timeout,
    Stop(StopReason),
}

/// The last that was heard of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LastWord {
    /// The guard reported its end.
    Ended { status: Status, stopped: Stopped },
    /// It was never started.
    Refused { why: Refusal, text: String },
    /// The guard is gone, or had to be given up, without a word about the task's end.
    Silence(String),
}

/// Judges a task's end. `asked` counts only if the task did not end by itself before.
///
/// `said` is what the task said last; part of the reason of a failure.
pub(super) fn verdict(
    last: LastWord,
    asked: Option<Asked>,
    said: Option<&str>,
    limits: &TaskLimits,
) -> TaskEnd {
    let (exit_code, signal) = match last {
        LastWord::Ended { status: Status::Exited(code), .. } => (Some(code), None),
        LastWord::Ended { status: Status::Signalled(signal), .. } => (None, Some(signal)),
        LastWord::Refused { .. } | LastWord::Silence(_) => (None, None),
    };
    let outcome = match last {
        LastWord::Ended { status, stopped: Stopped::No } => by_itself(status, said, limits),
        LastWord::Ended { stopped: Stopped::Asked, status } => {
            asked.map_or_else(|| by_itself(status, said, limits), stopped_for)
        }
        LastWord::Ended { stopped: Stopped::Memory, .. } => {
            let limit = limits.memory.map_or_else(String::new, format_size);
            Outcome::OutOfMemory { message: format!("it used more than {limit} of memory") }
        }
        LastWord::Ended { stopped: Stopped::Kernel, .. } => {
            let message = "the system was out of memory and killed it".to_owned();
            Outcome::OutOfMemory { message }
        }
        LastWord::Ended { stopped: Stopped::Lease, .. }
        | LastWord::Refused { why: Refusal::Lease, .. } => Outcome::LeaseLost,
        LastWord::Refused { why, text } => {
            Outcome::CouldNotStart { message: text, retryable: why == Refusal::Retry }
        }
        LastWord::Silence(text) => asked.map_or(Outcome::GuardLost { message: text }, stopped_for),
    };
    TaskEnd { exit_code, signal, ..TaskEnd::new(outcome) }
}

fn stopped_for(asked: Asked) -> Outcome {
    match asked {
        Asked::Timeout => Outcome::TimedOut,
        Asked::Stop(StopReason::Cancelled) => Outcome::Cancelled,
        Asked::Stop(StopReason::Interrupted) => Outcome::Interrupted,
        Asked::Stop(StopReason::LeaseLost) => Outcome::LeaseLost,
    }
}

fn by_itself(status: Status, said: Option<&str>, limits: &TaskLimits) -> Outcome {
    let said = |event: String| match said {
        Some(words) => format!("{event}: {words}"),
        None => event,
    };
    let cpu = Signal::XCPU.as_raw();
    let cpu_time = match status {
        Status::Signalled(signal) => signal == cpu,
        // A shell between the task and its program, which has the limit, too.
        Status::Exited(code) => limits.cpu_time.is_some() && code == SHELL_SIGNALLED + cpu,
    };
    let code = match status {
        _ if cpu_time => {
            let limit = limits.cpu_time.map_or("a limit".to_owned(), duration::format);
            let event = format!("a process used up its processor time, {limit}");
            return Outcome::Failed { class: "cpu_time".to_owned(), message: said(event) };
        }
        Status::Exited(0) => return Outcome::Succeeded,
        Status::Exited(code) => code,
        Status::Signalled(signal) => {
            return Outcome::Signalled { signal, message: said(format!("signal {signal}")) };
        }
    };
    let (class, message) = (format!("exit_{code}"), said(format!("exit code {code}")));
    match code {
        EXIT_RETRY => Outcome::Retry { class, message, after: None },
        EXIT_PERMANENT => Outcome::Permanent { class, message },
        _ => Outcome::Failed { class, message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TaskLimits = TaskLimits {
        memory: Some(64 << 20),
        cpu_time: Some(std::time::Duration::from_secs(10)),
        open_files: None,
    };

    fn judged(status: Status, stopped: Stopped, asked: Option<Asked>) -> Outcome {
        verdict(LastWord::Ended { status, stopped }, asked, None, &LIMITS).outcome
    }

    #[test]
    fn a_task_that_ended_by_itself_gets_its_own_result_whatever_was_asked() {
        for asked in [None, Some(Asked::Timeout), Some(Asked::Stop(StopReason::LeaseLost))] {
            let outcome = judged(Status::Exited(0), Stopped::No, asked);
            assert_eq!(outcome, Outcome::Succeeded);
        }
    }

    #[test]
    fn an_exit_code_of_zero_after_a_stop_is_no_success() {
        let stop = |reason| judged(Status::Exited(0), Stopped::Asked, Some(reason));
        assert_eq!(stop(Asked::Timeout), Outcome::TimedOut);
        assert_eq!(stop(Asked::Stop(StopReason::Cancelled)), Outcome::Cancelled);
        assert_eq!(stop(Asked::Stop(StopReason::Interrupted)), Outcome::Interrupted);
        let lease = judged(Status::Signalled(9), Stopped::Lease, Some(Asked::Timeout));
        assert_eq!(lease, Outcome::LeaseLost);
    }

    #[test]
    fn the_limit_that_a_task_died_of_is_told() {
        let memory = judged(Status::Signalled(9), Stopped::Memory, None);
        let message = "it used more than 64MiB of memory".to_owned();
        assert_eq!(memory, Outcome::OutOfMemory { message });
        let kernel = judged(Status::Signalled(9), Stopped::Kernel, None);
        assert!(matches!(kernel, Outcome::OutOfMemory { .. }));
        let Outcome::Failed { class, message } = judged(Status::Signalled(24), Stopped::No, None)
        else {
            panic!("no failure");
        };
        assert_eq!(class, "cpu_time");
        assert_eq!(message, "a process used up its processor time, 10s");
        let class = |limits| {
            let last = LastWord::Ended { status: Status::Exited(152), stopped: Stopped::No };
            match verdict(last, None, None, limits).outcome {
                Outcome::Failed { class, .. } => class,
                other => panic!("no failure: {other:?}"),
            }
        };
        assert_eq!(class(&LIMITS), "cpu_time");
        assert_eq!(class(&TaskLimits::default()), "exit_152");
        let signal = judged(Status::Signalled(9), Stopped::No, None);
        assert!(matches!(signal, Outcome::Signalled { signal: 9, .. }));
    }

    #[test]
    fn silence_is_a_crash_unless_the_task_was_to_be_stopped() {
        let silence = || LastWord::Silence("gone".to_owned());
        let crash = verdict(silence(), None, None, &LIMITS).outcome;
        assert_eq!(crash, Outcome::GuardLost { message: "gone".to_owned() });
        let stopped = verdict(silence(), Some(Asked::Timeout), None, &LIMITS).outcome;
        assert_eq!(stopped, Outcome::TimedOut);
    }

    #[test]
    fn a_refusal_says_whether_trying_again_may_help() {
        let refused = |why| {
            let last = LastWord::Refused { why, text: "no".to_owned() };
            verdict(last, None, None, &LIMITS).outcome
        };
        let message = "no".to_owned();
        let retry = Outcome::CouldNotStart { message: message.clone(), retryable: true };
        assert_eq!(refused(Refusal::Retry), retry);
        let never = Outcome::CouldNotStart { message, retryable: false };
        assert_eq!(refused(Refusal::Permanent), never);
        assert_eq!(refused(Refusal::Lease), Outcome::LeaseLost);
    }
}
