//! The armed fault point of this process, and its action.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use super::POINTS;

const VARIABLE: &str = "FAULT_POINT";

/// The variable with the action at the point: [`KILL`], also the default, or [`STOP`].
const ACTION: &str = "FAULT_ACTION";
const KILL: &str = "kill";
/// The process stops until it receives SIGCONT: time for a test to strike elsewhere while the process is inside the
/// step.
const STOP: &str = "stop";

/// By then the signal has arrived, even on a busy machine.
const SIGNAL_DELIVERY_TIME: Duration = Duration::from_millis(200);

#[derive(Debug)]
struct Armed {
    name: String,
    passes_left: AtomicU32,
    stops: bool,
}

static ARMED: OnceLock<Result<Option<Armed>, String>> = OnceLock::new();

fn armed() -> &'static Result<Option<Armed>, String> {
    ARMED.get_or_init(|| {
        let action = std::env::var_os(ACTION);
        let action = action.as_ref().map_or(KILL.into(), |text| text.to_string_lossy());
        std::env::var(VARIABLE).ok().map(|text| parse(&text, &action)).transpose()
    })
}

fn parse(text: &str, action: &str) -> Result<Armed, String> {
    if ![KILL, STOP].contains(&action) {
        return Err(format!("{ACTION}: there is no action {action}; write {KILL} or {STOP}"));
    }
    let (name, count) = text.rsplit_once(':').unwrap_or((text, "1"));
    if !is_known(name) {
        let known: Vec<_> = POINTS.iter().map(|point| point.name).collect();
        return Err(format!(
            "{VARIABLE}: there is no point {name}; write one of {}",
            known.join(", ")
        ));
    }
    match count.parse() {
        Ok(passes @ 1..) => {
            let passes_left = AtomicU32::new(passes);
            Ok(Armed { name: name.to_owned(), passes_left, stops: action == STOP })
        }
        _ => Err(format!("{VARIABLE}: {count} is no count of passes; write {name}:1 or more")),
    }
}

fn is_known(name: &str) -> bool {
    POINTS.iter().any(|point| point.name == name)
}

pub(super) fn arm() -> Result<(), String> {
    armed().as_ref().map(|_| ()).map_err(Clone::clone)
}

pub(super) fn point(name: &str) {
    assert!(is_known(name), "{name} is missing in the list of points");
    if let Ok(Some(armed)) = armed()
        && armed.name == name
        && armed.passes_left.fetch_sub(1, Ordering::SeqCst) == 1
    {
        if armed.stops {
            eprintln!("fault point {name}: stopping this process");
            let _ = kill_process(getpid(), Signal::STOP);
            // Another thread may receive it, and this one must not go on meanwhile.
            std::thread::sleep(SIGNAL_DELIVERY_TIME);
            return;
        }
        // Written without the logger: the line must be out before the process ends.
        eprintln!("fault point {name}: killing this process");
        let _ = kill_process(getpid(), Signal::KILL);
        // The signal may take a moment to arrive; nothing after this point may happen.
        loop {
            std::thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_named_alone_or_with_the_pass_at_which_to_die() {
        for (text, name, passes) in
            [("worker.opened", "worker.opened", 1), ("worker.ran:3", "worker.ran", 3)]
        {
            let armed = parse(text, KILL).unwrap();
            assert_eq!((&*armed.name, armed.passes_left.into_inner()), (name, passes));
        }
    }

    #[test]
    fn what_names_no_point_is_refused_with_those_there_are() {
        let message = parse("worker.opend", KILL).unwrap_err();
        assert!(
            message.contains("no point worker.opend; write one of ")
                && message.contains("worker.opened"),
            "{message}"
        );
        for count in ["0", "-1", "often", ""] {
            let message = parse(&format!("worker.opened:{count}"), KILL).unwrap_err();
            assert!(message.contains("write worker.opened:1 or more"), "{message}");
        }
    }
    #[test]
    fn an_action_is_one_of_two_and_never_guessed() {
        assert!(!parse("worker.opened", KILL).unwrap().stops);
        assert!(parse("worker.opened", STOP).unwrap().stops);
        for action in ["", "Stop", "stp"] {
            let message = parse("worker.opened", action).unwrap_err();
            assert!(message.ends_with("write kill or stop"), "{message}");
        }
    }
}
