//! Translates the end of a command into its outcome: a pure function of the guard's report and the worker's
//! orders.

use rustix::process::Signal;
use sexton_model::duration;

use crate::executor::{Outcome, StopReason, TaskEnd};
use crate::guard::TaskLimits;
use crate::guard::protocol::{SHELL_SIGNAL_BASE, StartRefusal, Status, StoppedBy};
use sexton_model::size;

/// `EX_TEMPFAIL`: the task wants to be retried later.
const EXIT_RETRY: i32 = 75;

/// `EX_DATAERR`: a retry cannot help.
const EXIT_PERMANENT: i32 = 65;

/// Why the worker ordered the guard to stop the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopRequest {
    Timeout,
    Stop(StopReason),
}

/// The last report about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FinalReport {
    /// The guard reported its end.
    Ended { status: Status, stopped: StoppedBy },
    /// The task was never started.
    Refused { why: StartRefusal, text: String },
    /// The guard has vanished, or was given up, without a report of the task's end.
    NoReport(String),
}

/// Returns the outcome of a task. `stop_request` counts only if the task did not end by itself before.
///
/// `last_line` is the task's last line of output, which the reason of a failure repeats.
pub(super) fn verdict(
    last: FinalReport,
    stop_request: Option<StopRequest>,
    last_line: Option<&str>,
    limits: &TaskLimits,
) -> TaskEnd {
    let (exit_code, signal) = match last {
        FinalReport::Ended { status: Status::Exited(code), .. } => (Some(code), None),
        FinalReport::Ended { status: Status::Signalled(signal), .. } => (None, Some(signal)),
        FinalReport::Refused { .. } | FinalReport::NoReport(_) => (None, None),
    };
    let outcome = match last {
        FinalReport::Ended { status, stopped: StoppedBy::Nobody } => {
            outcome_of_exit(status, last_line, limits)
        }
        FinalReport::Ended { stopped: StoppedBy::Worker, status } => {
            stop_request.map_or_else(|| outcome_of_exit(status, last_line, limits), outcome_of_stop)
        }
        FinalReport::Ended { stopped: StoppedBy::Memory, .. } => {
            let limit = limits.memory.map_or_else(String::new, size::format);
            Outcome::OutOfMemory { message: format!("it used more than {limit} of memory") }
        }
        FinalReport::Ended { stopped: StoppedBy::Kernel, .. } => {
            let message = "the system was out of memory and killed it".to_owned();
            Outcome::OutOfMemory { message }
        }
        FinalReport::Ended { stopped: StoppedBy::Lease, .. }
        | FinalReport::Refused { why: StartRefusal::Lease, .. } => Outcome::LeaseLost,
        FinalReport::Refused { why, text } => {
            Outcome::CouldNotStart { message: text, retryable: why == StartRefusal::Retry }
        }
        FinalReport::NoReport(text) => {
            stop_request.map_or(Outcome::GuardLost { message: text }, outcome_of_stop)
        }
    };
    TaskEnd { exit_code, signal, ..TaskEnd::new(outcome) }
}

fn outcome_of_stop(stop_request: StopRequest) -> Outcome {
    match stop_request {
        StopRequest::Timeout => Outcome::TimedOut,
        StopRequest::Stop(StopReason::Cancelled) => Outcome::Cancelled,
        StopRequest::Stop(StopReason::Interrupted) => Outcome::Interrupted,
        StopRequest::Stop(StopReason::LeaseLost) => Outcome::LeaseLost,
    }
}

fn outcome_of_exit(status: Status, last_line: Option<&str>, limits: &TaskLimits) -> Outcome {
    let with_output = |event: String| match last_line {
        Some(line) => format!("{event}: {line}"),
        None => event,
    };
    let cpu = Signal::XCPU.as_raw();
    let cpu_time = match status {
        Status::Signalled(signal) => signal == cpu,
        // A shell between the guard and the program, which has the limit, too.
        Status::Exited(code) => limits.cpu_time.is_some() && code == SHELL_SIGNAL_BASE + cpu,
    };
    let code = match status {
        _ if cpu_time => {
            let limit = limits.cpu_time.map_or("a limit".to_owned(), duration::format);
            let event = format!("a process used up its processor time, {limit}");
            return Outcome::Failed { class: "cpu_time".to_owned(), message: with_output(event) };
        }
        Status::Exited(0) => return Outcome::Succeeded,
        Status::Exited(code) => code,
        Status::Signalled(signal) => {
            return Outcome::Signalled { signal, message: with_output(format!("signal {signal}")) };
        }
    };
    let (class, message) = (format!("exit_{code}"), with_output(format!("exit code {code}")));
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

    fn judged(status: Status, stopped: StoppedBy, stop_request: Option<StopRequest>) -> Outcome {
        verdict(FinalReport::Ended { status, stopped }, stop_request, None, &LIMITS).outcome
    }

    #[test]
    fn a_task_that_ended_by_itself_keeps_its_own_result_after_any_stop_request() {
        for stop_request in
            [None, Some(StopRequest::Timeout), Some(StopRequest::Stop(StopReason::LeaseLost))]
        {
            let outcome = judged(Status::Exited(0), StoppedBy::Nobody, stop_request);
            assert_eq!(outcome, Outcome::Succeeded);
        }
    }

    #[test]
    fn an_exit_code_of_zero_after_a_stop_is_no_success() {
        let stop = |reason| judged(Status::Exited(0), StoppedBy::Worker, Some(reason));
        assert_eq!(stop(StopRequest::Timeout), Outcome::TimedOut);
        assert_eq!(stop(StopRequest::Stop(StopReason::Cancelled)), Outcome::Cancelled);
        assert_eq!(stop(StopRequest::Stop(StopReason::Interrupted)), Outcome::Interrupted);
        let lease = judged(Status::Signalled(9), StoppedBy::Lease, Some(StopRequest::Timeout));
        assert_eq!(lease, Outcome::LeaseLost);
    }

    #[test]
    fn the_limit_that_killed_a_task_is_named() {
        let memory = judged(Status::Signalled(9), StoppedBy::Memory, None);
        let message = "it used more than 64MiB of memory".to_owned();
        assert_eq!(memory, Outcome::OutOfMemory { message });
        let kernel = judged(Status::Signalled(9), StoppedBy::Kernel, None);
        assert!(matches!(kernel, Outcome::OutOfMemory { .. }));
        let Outcome::Failed { class, message } =
            judged(Status::Signalled(24), StoppedBy::Nobody, None)
        else {
            panic!("no failure");
        };
        assert_eq!(class, "cpu_time");
        assert_eq!(message, "a process used up its processor time, 10s");
        let class = |limits| {
            let last =
                FinalReport::Ended { status: Status::Exited(152), stopped: StoppedBy::Nobody };
            match verdict(last, None, None, limits).outcome {
                Outcome::Failed { class, .. } => class,
                other => panic!("no failure: {other:?}"),
            }
        };
        assert_eq!(class(&LIMITS), "cpu_time");
        assert_eq!(class(&TaskLimits::default()), "exit_152");
        let signal = judged(Status::Signalled(9), StoppedBy::Nobody, None);
        assert!(matches!(signal, Outcome::Signalled { signal: 9, .. }));
    }

    #[test]
    fn silence_is_a_crash_unless_the_task_was_to_be_stopped() {
        let silence = || FinalReport::NoReport("gone".to_owned());
        let crash = verdict(silence(), None, None, &LIMITS).outcome;
        assert_eq!(crash, Outcome::GuardLost { message: "gone".to_owned() });
        let stopped = verdict(silence(), Some(StopRequest::Timeout), None, &LIMITS).outcome;
        assert_eq!(stopped, Outcome::TimedOut);
    }

    #[test]
    fn a_refusal_says_whether_trying_again_may_help() {
        let refused = |why| {
            let last = FinalReport::Refused { why, text: "no".to_owned() };
            verdict(last, None, None, &LIMITS).outcome
        };
        let message = "no".to_owned();
        let retry = Outcome::CouldNotStart { message: message.clone(), retryable: true };
        assert_eq!(refused(StartRefusal::Retry), retry);
        let never = Outcome::CouldNotStart { message, retryable: false };
        assert_eq!(refused(StartRefusal::Permanent), never);
        assert_eq!(refused(StartRefusal::Lease), Outcome::LeaseLost);
    }
}
